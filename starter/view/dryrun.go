package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpx-go/mcpx/contract"
)

// Redacted is shown in the place of a secret.
const Redacted = "[REDACTED]"

// DryRun is what a plan would do: computed from its definition and an input, without touching anything.
type DryRun struct {
	Plan        string          `json:"plan"`
	Description string          `json:"description,omitempty"`
	Digest      string          `json:"digest"`
	Input       json.RawMessage `json:"input,omitempty"`

	// Waves are the steps as they would be executed: one wave after another, the steps of one in parallel.
	Waves [][]PlannedCall `json:"waves"`
	// Undo are the compensations, should every step have to be undone: the undo plan of the worst case.
	Undo [][]PlannedCall `json:"undo"`
	// Stays are the effects that no rollback could remove.
	Stays []contract.Residue `json:"stays,omitempty"`

	Contracts map[string]contract.Tool `json:"contracts"`
	Approval  contract.Approval        `json:"approval"`
	TTL       contract.Duration        `json:"ttl,omitempty"`
	Warnings  []string                 `json:"warnings,omitempty"`

	// Inspected is what the owners said, where they were asked.
	Inspected []Inspected `json:"inspected,omitempty"`
}

// PlannedCall is one call of a dry run. What is known only later stands in its arguments as the template says it.
type PlannedCall struct {
	Step string          `json:"step"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Inspected is what an owner said of the resource that a step would make.
type Inspected struct {
	Step string `json:"step"`
	// Tool is the inspector, with the arguments that it was asked with. Empty: the owner was not asked.
	Tool string          `json:"tool,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
	// Verdict on a transaction that does not exist yet: present cannot be ours, so it means a conflict to come.
	Verdict contract.Verdict `json:"verdict,omitempty"`
	Why     string           `json:"why,omitempty"`
	// Found is what the contract makes of the owner's answer, secrets removed.
	Found json.RawMessage `json:"found,omitempty"`
}

// NewDryRun computes the dry run of a definition with an input. What the contracts declare as sensitive is redacted, and
// so is every part of the input that goes there.
func NewDryRun(def contract.Definition, input json.RawMessage) DryRun {
	input = Redact(input, secretInputs(def))
	d := DryRun{
		Plan: def.Plan, Description: def.Description, Digest: def.Digest, Input: input,
		Contracts: def.Tools, Approval: def.Approval, TTL: def.TTL, Warnings: def.Warnings,
	}
	scope := contract.Scope{}
	if len(input) > 0 {
		scope["input"] = input
	}
	byID := map[string]contract.Step{}
	args := map[string]json.RawMessage{}
	for _, step := range def.Steps {
		byID[step.ID] = step
		args[step.ID] = FillKnown(step.Args, scope)
	}
	place := func(waves [][]PlannedCall, level int, call PlannedCall) [][]PlannedCall {
		for len(waves) <= level {
			waves = append(waves, nil)
		}
		waves[level] = append(waves[level], call)
		return waves
	}

	depth := memo(func(id string, of func(string) int) int {
		deepest := 0
		for _, need := range byID[id].Needs {
			deepest = max(deepest, of(need)+1)
		}
		return deepest
	})
	height := memo(func(id string, of func(string) int) int {
		highest := 0
		for _, dependent := range def.Steps {
			if !slices.Contains(dependent.Needs, id) {
				continue
			}
			h := of(dependent.ID)
			if tool := def.Tools[dependent.Tool]; tool.Compensable() && tool.Risk != contract.RiskReadOnly {
				h++
			}
			highest = max(highest, h)
		}
		return highest
	})
	for _, step := range def.Steps {
		tool := def.Tools[step.Tool]
		shown := Redact(args[step.ID], tool.Sensitive)
		d.Waves = place(d.Waves, depth(step.ID), PlannedCall{Step: step.ID, Tool: step.Tool, Args: shown})
		switch {
		case tool.Risk == contract.RiskReadOnly:
		case tool.Compensate == nil:
			d.Stays = append(d.Stays, contract.Residue{Step: step.ID, Tool: step.Tool, Why: "its contract has no compensation"})
		case tool.Inspect == nil:
			d.Stays = append(d.Stays, contract.Residue{Step: step.ID, Tool: step.Tool,
				Why: "its contract has no inspector, so undoing it could not be verified"})
		default:
			undo := tool.Compensate
			d.Undo = place(d.Undo, height(step.ID), PlannedCall{
				Step: step.ID, Tool: undo.Server + "/" + undo.Tool,
				Args: FillKnown(undo.Args, contract.Scope{"input": scope["input"], "args": shown}),
			})
		}
	}
	d.Undo = slices.DeleteFunc(d.Undo, func(wave []PlannedCall) bool { return len(wave) == 0 })
	return d
}

// secretInputs are the paths of the input that end up in sensitive arguments.
func secretInputs(def contract.Definition) (paths []string) {
	for _, step := range def.Steps {
		for _, path := range def.Tools[step.Tool].Sensitive {
			elems, err := contract.ParseElems(path)
			if err != nil {
				continue
			}
			part, err := contract.Lookup(json.RawMessage(step.Args), elems)
			if err != nil {
				continue
			}
			refs, err := contract.Template(part).Refs()
			if err != nil {
				continue
			}
			for _, ref := range refs {
				if ref.Path.Root == "input" && len(ref.Path.Elems) > 0 {
					paths = append(paths, contract.ElemsString(ref.Path.Elems))
				}
			}
		}
	}
	return paths
}

// memo remembers the results of a recursive function over the steps of a plan, which has no cycles.
func memo(f func(id string, of func(string) int) int) func(string) int {
	known := map[string]int{}
	var of func(string) int
	of = func(id string) int {
		if n, ok := known[id]; ok {
			return n
		}
		n := f(id, of)
		known[id] = n
		return n
	}
	return of
}

// FillKnown fills a template as far as its scope goes: a string that refers to something unknown stays as it is written.
func FillKnown(template contract.Template, scope contract.Scope) json.RawMessage {
	return rewrite(json.RawMessage(template), func(text json.RawMessage) json.RawMessage {
		filled, err := contract.Template(text).Fill(scope)
		if err != nil {
			return text
		}
		return filled
	})
}

// rewrite replaces every string of a JSON value, member names apart. Everything else keeps its spelling and its place.
func rewrite(raw json.RawMessage, replace func(json.RawMessage) json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return raw
	}
	switch raw[0] {
	case '"':
		return replace(raw)
	case '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return raw
		}
		for i, item := range items {
			items[i] = rewrite(item, replace)
		}
		return join('[', items, ']')
	case '{':
		names, values, err := members(raw)
		if err != nil {
			return raw
		}
		parts := make([]json.RawMessage, len(names))
		for i := range names {
			parts[i] = slices.Concat(encode(names[i]), []byte(":"), rewrite(values[i], replace))
		}
		return join('{', parts, '}')
	}
	return raw
}

// members lists an object's members in their order.
func members(raw json.RawMessage) (names []string, values []json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		text, ok := name.(string)
		if !ok {
			return nil, nil, errors.New("not an object")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, fmt.Errorf("member %q: %w", text, err)
		}
		names, values = append(names, text), append(values, value)
	}
	return names, values, nil
}

func join(open byte, parts []json.RawMessage, end byte) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte(open)
	for i, part := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(part)
	}
	b.WriteByte(end)
	return b.Bytes()
}

// encode writes text as a JSON string, with <, > and & as they are.
func encode(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSpace(b.Bytes())
}

// Redact replaces the values at the given paths, where there are any.
func Redact(raw json.RawMessage, paths []string) json.RawMessage {
	for _, path := range paths {
		if elems, err := contract.ParseElems(path); err == nil {
			raw = redact(raw, elems)
		}
	}
	return raw
}

func redact(raw json.RawMessage, elems []contract.Elem) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(elems) == 0 {
		return encode(Redacted)
	}
	e := elems[0]
	switch {
	case len(raw) > 0 && raw[0] == '[' && e.IsItem:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil || e.Index >= len(items) {
			return raw
		}
		items[e.Index] = redact(items[e.Index], elems[1:])
		return join('[', items, ']')
	case len(raw) > 0 && raw[0] == '{' && !e.IsItem:
		names, values, err := members(raw)
		if err != nil {
			return raw
		}
		parts := make([]json.RawMessage, len(names))
		for i, name := range names {
			if name == e.Member {
				values[i] = redact(values[i], elems[1:])
			}
			parts[i] = slices.Concat(encode(name), []byte(":"), values[i])
		}
		return join('{', parts, '}')
	}
	return raw
}
