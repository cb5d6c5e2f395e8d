package canon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Kind says what a fingerprint identifies. Its text is part of what is hashed.
type Kind string

const (
	// Tool is a single call of a tool, identified by its logical keys.
	Tool Kind = "auto"
	// Plan is a run of a plan, identified by the logical keys of its input.
	Plan Kind = "plan"
	// Custom is a call or run that is identified by a text of the caller's own, not by its arguments.
	Custom Kind = "custom"
)

// Fingerprint returns the identity of an intent: the SHA-256, in lower-case hexadecimal, of the text
//
//	tx:<name>:<kind>:<selected>
//
// where selected is what [Select] gave, in canonical form (it is brought into it here), or, for [Custom], the
// caller's own text as it is. For tools and custom texts this is AgentX's formula.
//
// Different intents of one name never share a fingerprint within a kind. Names may hold colons, so the
// fingerprints of different names are not guaranteed to differ: whoever stores them keeps the name beside
// them. The fingerprint of guessable keys can be guessed; where a logical key is secret use [FingerprintKeyed].
func Fingerprint(kind Kind, name string, selected []byte) (string, error) {
	text, err := intent(kind, name, selected)
	if err != nil {
		return "", err
	}
	return hexSHA256(text), nil
}

// FingerprintKeyed is [Fingerprint] with HMAC-SHA-256 under a secret key in place of SHA-256, so that the
// fingerprint gives away nothing about the logical keys. Another key gives every intent another identity:
// it must be the same wherever intents are compared. An empty key is refused.
func FingerprintKeyed(kind Kind, name string, selected, key []byte) (string, error) {
	if len(key) == 0 {
		return "", errors.New("fingerprint key is empty; load the fingerprint key before computing keyed fingerprints")
	}
	text, err := intent(kind, name, selected)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// intent builds the text that a fingerprint hashes.
func intent(kind Kind, name string, selected []byte) ([]byte, error) {
	if name == "" || !utf8.ValidString(name) {
		return nil, errors.New("fingerprint of a tool or plan without a name, or whose name is not UTF-8; pass the name that its contract has")
	}
	switch kind {
	case Tool, Plan:
		text, err := JSON(selected)
		if err != nil {
			return nil, fmt.Errorf("fingerprint of %q: %w", shorten(name), err)
		}
		selected = text
	case Custom:
		if len(selected) == 0 || !utf8.Valid(selected) {
			return nil, fmt.Errorf("fingerprint of %q: the caller's own key is empty or not UTF-8; pass a text, or leave the key to the arguments", shorten(name))
		}
	default:
		return nil, fmt.Errorf("fingerprint of %q: no such kind %q; use Tool, Plan or Custom", shorten(name), string(kind))
	}
	text := make([]byte, 0, len("tx:::")+len(name)+len(kind)+len(selected))
	text = append(text, "tx:"...)
	text = append(text, name...)
	text = append(text, ':')
	text = append(text, kind...)
	text = append(text, ':')
	return append(text, selected...), nil
}
