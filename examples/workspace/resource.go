package workspace

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Resource is what an application owns. In JSON its Fields stand beside the
// other members.
type Resource struct {
	// ID is unique: db_…, vm_…, rt_… or dep_….
	ID string
	// Name is what the creator called it. Several resources may share one.
	Name string
	// Owner is the opaque string that the creator passed.
	Owner string
	// CreatedAt is the moment of the commit, in UTC.
	CreatedAt time.Time
	// Fields are the members that only this kind of resource has, as exact
	// JSON values.
	Fields map[string]json.RawMessage
}

// Text returns a field that holds a string, "" if it is absent or holds
// something else.
func (r Resource) Text(field string) string {
	var s string
	if json.Unmarshal(r.Fields[field], &s) != nil {
		return ""
	}
	return s
}

// MarshalJSON implements [json.Marshaler]. The order of members is fixed.
func (r Resource) MarshalJSON() ([]byte, error) { return r.encode(nil) }

// encode renders the resource with extra members after its own.
func (r Resource) encode(extra map[string]json.RawMessage) ([]byte, error) {
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out)
	write := func(name string, raw json.RawMessage) error {
		if err := enc.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		return enc.WriteValue(jsontext.Value(raw))
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return nil, err
	}
	for _, member := range []struct{ name, text string }{
		{"id", r.ID}, {"name", r.Name}, {"owner", r.Owner}, {"created_at", r.CreatedAt.UTC().Format(time.RFC3339Nano)},
	} {
		raw, err := jsontext.AppendQuote(nil, member.text)
		if err != nil {
			return nil, fmt.Errorf("encode %s of resource %q: %w", member.name, r.ID, err)
		}
		if err := write(member.name, raw); err != nil {
			return nil, err
		}
	}
	for _, group := range []map[string]json.RawMessage{r.Fields, extra} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			if err := write(name, group[name]); err != nil {
				return nil, fmt.Errorf("encode %s of resource %q: %w", name, r.ID, err)
			}
		}
	}
	if err := enc.WriteToken(jsontext.EndObject); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Resource) UnmarshalJSON(raw []byte) error {
	var common struct {
		ID        string    `json:"id"`
		Name      string    `json:"name"`
		Owner     string    `json:"owner"`
		CreatedAt time.Time `json:"created_at"`
	}
	if err := json.Unmarshal(raw, &common); err != nil {
		return fmt.Errorf("decode resource: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("decode resource: %w", err)
	}
	for _, name := range []string{"id", "name", "owner", "created_at"} {
		delete(fields, name)
	}
	*r = Resource{ID: common.ID, Name: common.Name, Owner: common.Owner, CreatedAt: common.CreatedAt, Fields: fields}
	return nil
}

// newResource makes the resource that a create call asks for.
func (a App) newResource(args values) (Resource, error) {
	var id [8]byte
	rand.Read(id[:])
	r := Resource{
		ID:        a.prefix + hex.EncodeToString(id[:]),
		Name:      args.text(nameField.name),
		Owner:     args.text(ownerField.name),
		CreatedAt: time.Now().UTC(),
		Fields:    map[string]json.RawMessage{},
	}
	for _, f := range a.fields {
		value, given := args[f.name]
		if !given {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return Resource{}, fmt.Errorf("encode %s: %w", f.name, err)
		}
		r.Fields[f.name] = raw
	}
	if a.idAlias != "" {
		r.Fields[a.idAlias] = json.RawMessage(`"` + r.ID + `"`)
	}
	return r, nil
}
