package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// ResultLimit is the size in bytes up to which the result of a call is kept exactly in the history.
const ResultLimit = 256 << 10

// Keep makes of a call's result what is kept of it: the value itself up to limit bytes, else the values at the given
// paths, exactly and in their places, and the digest (SHA-256, hexadecimal) for the rest. A path that leads to nothing
// is left out; the empty path is the value itself.
func Keep(raw json.RawMessage, paths []string, limit int) *Kept {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil
	}
	sum := sha256.Sum256(raw)
	kept := &Kept{Digest: hex.EncodeToString(sum[:]), Size: len(raw)}
	if len(raw) <= limit || slices.Contains(paths, "") {
		kept.Value = raw
		return kept
	}
	kept.Reduced = true
	var tree any
	for _, text := range paths {
		elems, err := ParseElems(text)
		if err != nil {
			continue
		}
		value, err := Lookup(raw, elems)
		if err != nil {
			continue
		}
		tree = plant(tree, elems, value)
	}
	if tree != nil {
		value, err := json.Marshal(tree)
		if err != nil {
			panic(fmt.Errorf("keep of a result: %w", err)) // a tree of raw values that were just read
		}
		if len(value) > len(raw) { // an item far down a long list of short ones
			value, kept.Reduced = raw, false
		}
		kept.Value = value
	}
	return kept
}

// plant puts value at elems in the tree; items before an index become null.
func plant(tree any, elems []Elem, value json.RawMessage) any {
	if len(elems) == 0 {
		return value
	}
	if whole, ok := tree.(json.RawMessage); ok {
		return whole // an outer value is kept already
	}
	if e := elems[0]; e.IsItem {
		items, _ := tree.([]any)
		for len(items) <= e.Index {
			items = append(items, nil)
		}
		items[e.Index] = plant(items[e.Index], elems[1:], value)
		return items
	}
	members, _ := tree.(map[string]any)
	if members == nil {
		members = map[string]any{}
	}
	members[elems[0].Member] = plant(members[elems[0].Member], elems[1:], value)
	return members
}

// Raw is the kept value, or JSON null where nothing was kept.
func (k *Kept) Raw() json.RawMessage {
	if k == nil || len(k.Value) == 0 {
		return json.RawMessage("null")
	}
	return k.Value
}

// Slim returns the value reduced to the given paths when it is larger than limit; smaller ones stay as they are.
func (k *Kept) Slim(paths []string, limit int) *Kept {
	if k == nil || len(k.Value) <= limit {
		return k
	}
	slim := Keep(k.Value, paths, limit)
	slim.Digest, slim.Size, slim.Reduced = k.Digest, k.Size, k.Reduced || slim.Reduced
	return slim
}

// Holds tells whether the value at elems is as exact as it was in the result: nothing was left out, or one of the paths
// that were kept leads to it.
func (k *Kept) Holds(elems []Elem, paths []string) bool {
	if k == nil || !k.Reduced {
		return true
	}
	return slices.ContainsFunc(paths, func(text string) bool {
		kept, err := ParseElems(text)
		return err == nil && len(kept) <= len(elems) && slices.Equal(kept, elems[:len(kept)])
	})
}
