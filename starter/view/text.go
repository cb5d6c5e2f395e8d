package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// shortDigest is how many characters of a digest people see, and need to give.
const shortDigest = 12

// ShortDigest is the part of a digest that is enough to name what it is of.
func ShortDigest(digest string) string { return digest[:min(len(digest), shortDigest)] }

// moment writes a time as people at this machine read it.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// Clock writes the time of day with milliseconds.
func Clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("15:04:05.000")
}

// span writes how long something took or takes, with the digits that matter.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if d >= time.Hour {
		text = strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return text
}

// term writes a duration of a contract without its empty parts: 168h, not 168h0m0s.
func term(d contract.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// compact writes a JSON value on one line, with spaces where a line may be broken.
func compact(raw json.RawMessage) string {
	var tight bytes.Buffer
	if err := json.Compact(&tight, raw); err != nil {
		return string(raw)
	}
	var b strings.Builder
	inside, escaped := false, false
	for _, c := range tight.Bytes() {
		b.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func keptText(k *contract.Kept) string {
	switch {
	case k == nil:
		return ""
	case k.Reduced && len(k.Value) == 0:
		return fmt.Sprintf("(%d bytes, SHA-256 %s)", k.Size, ShortDigest(k.Digest))
	case k.Reduced:
		return fmt.Sprintf("%s (of %d bytes)", compact(k.Value), k.Size)
	}
	return compact(k.Value)
}

// facts writes pairs of a name and a value, the empty ones left out.
func facts(b *strings.Builder, s *screen.Screen, pairs ...[2]string) {
	width := 0
	for _, pair := range pairs {
		if pair[1] != "" {
			width = max(width, len(pair[0]))
		}
	}
	for _, pair := range pairs {
		if pair[1] != "" {
			name := s.Paint(screen.Faint, fmt.Sprintf("%-*s", width, pair[0]))
			fmt.Fprintf(b, "%s  %s\n", name, s.Wrap(screen.Clean(pair[1]), width+2))
		}
	}
}

// section begins a part with a title of its own.
func section(b *strings.Builder, s *screen.Screen, title string) {
	fmt.Fprintf(b, "\n%s\n", s.Paint(screen.Bold, title))
}

// fingerprintLength is the length of a fingerprint at the end of a transaction's ID.
const fingerprintLength = 64

// ShortID is a transaction's ID with the fingerprint, if it ends with one, cut to what is enough to tell it from others.
// Commands take the beginning of an ID for the whole, as long as only one begins so.
func ShortID(id string) string {
	i := strings.LastIndexByte(id, '/')
	fingerprint := id[i+1:]
	if len(fingerprint) != fingerprintLength || strings.Trim(fingerprint, "0123456789abcdef") != "" {
		return id
	}
	return id[:i+1+shortDigest]
}
