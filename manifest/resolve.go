package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

// Resolve answers a start: the plan with the contracts and servers that it uses, and the input with the defaults of its
// schema. It does no I/O, and the same start has always the same answer. Errors wrap ErrUnknownPlan or ErrInput
// (type *InputError). The definition is shared with the manifest and is not to be changed.
func (m *Manifest) Resolve(start contract.Start) (contract.Resolved, error) {
	p, err := m.Plan(start.Plan)
	if err != nil {
		return contract.Resolved{}, err
	}
	input, _, err := p.accept(start.Input)
	if err != nil {
		return contract.Resolved{}, err
	}
	return contract.Resolved{Definition: p.Definition, Input: input}, nil
}

// accept checks an input against the schema, and gives it with the schema's defaults filled in: as text, which is that
// of the caller where nothing had to be filled in, and decoded.
func (p *Plan) accept(raw json.RawMessage) (json.RawMessage, map[string]any, error) {
	refuse := func(problems ...string) (json.RawMessage, map[string]any, error) {
		return nil, nil, &InputError{Plan: p.Name, Problems: problems}
	}
	tooLarge := func(size int) string {
		return fmt.Sprintf("it has %d bytes, at most %d are allowed: pass references to large data, not the data", size, MaxInput)
	}
	if len(raw) > MaxInput {
		return refuse(tooLarge(len(raw)))
	}
	members, err := decodeInput(raw)
	if err != nil {
		return refuse(err.Error())
	}
	text := bytes.TrimSpace(raw)
	if len(text) == 0 {
		text = []byte("{}")
	}
	if p.input == nil {
		return text, members, nil
	}
	if p.input.fill(members) {
		if text, err = encodeInput(members); err != nil {
			return refuse(err.Error())
		}
		if len(text) > MaxInput {
			return refuse(tooLarge(len(text)) + " (with the defaults of the schema)")
		}
	}
	if err := p.input.root.Validate(members); err != nil {
		return refuse(inputTexts(err, p.input)...)
	}
	return text, members, nil
}

// encodeInput writes decoded JSON: members sorted, numbers as they were spelled.
func encodeInput(members map[string]any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// Identity says which intent a start of the plan is: the fingerprint of its logical keys, what a later start of the
// same intent is compared with, and the workflow ID. Errors wrap ErrUnknownPlan or ErrInput.
func (m *Manifest) Identity(plan string, input json.RawMessage) (contract.Identity, string, error) {
	p, members, identity, err := m.identity(plan, input)
	if err != nil {
		return contract.Identity{}, "", err
	}
	selected, err := canon.Select(members, p.Key)
	if err != nil {
		return contract.Identity{}, "", &InputError{Plan: p.Name, Problems: []string{err.Error()}}
	}
	if identity.Fingerprint, err = canon.Fingerprint(canon.Plan, p.Name, selected); err != nil {
		return contract.Identity{}, "", &InputError{Plan: p.Name, Problems: []string{err.Error()}}
	}
	return identity, contract.PlanWorkflowID(p.Name, identity.Fingerprint), nil
}

// maxKey is the greatest length of a caller's own key in bytes. Temporal takes workflow IDs of 1000 bytes.
const maxKey = 500

// IdentityFor is Identity for a start whose caller chose a key of their own: it identifies the intent, whatever the
// input is. Errors wrap ErrUnknownPlan, ErrInput or ErrKey.
func (m *Manifest) IdentityFor(plan string, input json.RawMessage, key string) (contract.Identity, string, error) {
	if err := checkKey(key); err != nil {
		return contract.Identity{}, "", err
	}
	p, _, identity, err := m.identity(plan, input)
	if err != nil {
		return contract.Identity{}, "", err
	}
	if identity.Fingerprint, err = canon.Fingerprint(canon.Custom, p.Name, []byte(key)); err != nil {
		return contract.Identity{}, "", fmt.Errorf("%w: %w", ErrKey, err)
	}
	return identity, contract.PlanWorkflowID(p.Name, key), nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrKey)
	case len(key) > maxKey:
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrKey, len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: it is not UTF-8", ErrKey)
	}
	for _, r := range key {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%w: %q holds the character %U, which cannot be seen", ErrKey, key, r)
		}
	}
	return nil
}

// identity is what both kinds of identity have in common. members is the input with its defaults, as text.
func (m *Manifest) identity(plan string, input json.RawMessage) (p *Plan, text json.RawMessage, identity contract.Identity, err error) {
	if p, err = m.Plan(plan); err != nil {
		return nil, nil, identity, err
	}
	text, members, err := p.accept(input)
	if err != nil {
		return nil, nil, identity, err
	}
	identity.Definition = p.Definition.Digest
	for name, value := range members {
		digest, err := canon.DigestValue(value)
		if err != nil {
			return nil, nil, identity, &InputError{Plan: p.Name, Problems: []string{err.Error()}}
		}
		if identity.Inputs == nil {
			identity.Inputs = make(map[string]string, len(members))
		}
		identity.Inputs[name] = digest
	}
	return p, text, identity, nil
}

// Inline reads a plan that is not in the manifest, and resolves it against the manifest's servers and contracts. The
// name is that of the file or of whoever gave the plan, and stands in errors. Such a plan must not have the name of one
// of the manifest's own.
func (m *Manifest) Inline(name string, text []byte) (*Plan, error) {
	problems := &problems{}
	root := readText(problems, name, text)
	if root == nil {
		return nil, problems.err()
	}
	doc := *m.doc
	doc.agents, doc.warnings = nil, nil
	for _, p := range m.Plans {
		if n := root.get("name"); n != nil && n.text == p.Name {
			problems.add(n.place, "name", "choose another name", "the manifest has a plan %q already", p.Name)
			return nil, problems.err()
		}
	}
	doc.plans = []planSource{{node: root}}
	inner, err := doc.build(doc.replaced, nil)
	if err != nil {
		return nil, err
	}
	return inner.Plans[0], nil
}
