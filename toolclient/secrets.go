package toolclient

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
)

// reference finds ${secret:NAME} in a value of a server's entry.
var reference = regexp.MustCompile(`\$\{secret:([^}]*)\}`)

const (
	redacted = "[REDACTED]"
	// shortestScrubbed is the length from which a declared header or environment value that is no secret by name is
	// kept out of texts. Shorter ones ("info", "8080") would blot out half of every log line.
	shortestScrubbed = 8
)

// secretResolver fills in the secrets of one server's entry and remembers what must not be shown.
type secretResolver struct {
	lookup  func(name string) (string, bool)
	allowed []string
	shown   map[string]bool // values that must not be
}

// references are the names that the text refers to.
func references(text string) []string {
	var names []string
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// resolve replaces every reference in text. Errors name secrets, never values.
func (r *secretResolver) resolve(text string) (string, error) {
	var failed error
	filled := reference.ReplaceAllStringFunc(text, func(ref string) string {
		name := reference.FindStringSubmatch(ref)[1]
		if !slices.Contains(r.allowed, name) {
			failed = fmt.Errorf("the secret %q is not in the server's list of secrets: add it there", name)
			return ""
		}
		value, ok := r.lookup(name)
		if !ok {
			failed = fmt.Errorf("the secret %q is not set: set it for this process", name)
			return ""
		}
		r.hide(value)
		return value
	})
	if failed != nil {
		return "", failed
	}
	if len(filled) >= shortestScrubbed {
		r.hide(filled)
	}
	return filled, nil
}

// hide keeps a value out of every text of this session.
func (r *secretResolver) hide(value string) {
	if value == "" {
		return
	}
	if r.shown == nil {
		r.shown = map[string]bool{}
	}
	r.shown[value] = true
}

// scrubber removes the hidden values from texts, the longest first.
func (r *secretResolver) scrubber() *strings.Replacer {
	values := make([]string, 0, len(r.shown))
	for v := range r.shown {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(values))
	for _, v := range values {
		pairs = append(pairs, v, redacted)
	}
	return strings.NewReplacer(pairs...)
}

// Scrub removes from a text what the server's entry holds of secrets: the values behind ${secret:NAME}, long header and
// environment values, and a password in its URL. What a server says of itself may repeat them.
func (p *Pool) Scrub(ref contract.ServerRef, text string) string {
	o, err := p.find(ref)
	if err != nil {
		return text
	}
	secrets := o.secrets()
	declared := map[string]string{}
	switch {
	case o.server.HTTP != nil:
		declared = o.server.HTTP.Headers
		if u, err := url.Parse(o.server.HTTP.URL); err == nil {
			password, _ := u.User.Password()
			secrets.hide(password)
		}
	case o.server.Stdio != nil:
		declared = o.server.Stdio.Env
	}
	for _, value := range declared {
		if _, err := secrets.resolve(value); err != nil {
			continue // not set here: there is nothing to hide
		}
	}
	return secrets.scrubber().Replace(text)
}
