package manifest

import (
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/manifest/internal/nearest"
)

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	secretRef  = regexp.MustCompile(`\$\{secret:([^}]*)\}`)
	envName    = regexp.MustCompile(`^[^=\x00]+$`)
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

// server reads one entry of servers.
func (b *builder) server(m member) (contract.Server, bool) {
	field := joined("servers", m.name)
	s := contract.Server{Name: m.name}
	before := len(b.errors)
	if !serverName.MatchString(m.name) {
		b.add(m.place, field, "use up to 64 letters, digits, - and _", "%q cannot name a server", m.name)
	}
	o, ok := b.object(m.value, field, "http", "stdio", "webmcp", "trust", "secrets", "principal")
	if !ok {
		return s, false
	}
	s.Principal = o.text("principal", "deploy-bot")
	for _, n := range o.list("secrets", "[API_TOKEN]") {
		if !secretName.MatchString(n.text) {
			b.add(n.place, o.in("secrets"), "use letters, digits and _", "%q cannot name a secret", n.text)
		}
		s.Secrets = append(s.Secrets, n.text)
	}
	for _, n := range o.list("trust", "[refusals]") {
		switch n.text {
		case "refusals":
			s.TrustRefusals = true
		case "annotations":
			s.TrustAnnotations = true
		default:
			want := nearest.Hint(n.text, []string{"annotations", "refusals"})
			if want == "" {
				want = "there are annotations and refusals"
			}
			b.add(n.place, o.in("trust"), want, "%q is nothing to trust", n.text)
		}
	}
	ways := 0
	for _, way := range []string{"http", "stdio", "webmcp"} {
		if o.has(way) {
			ways++
		}
	}
	if ways != 1 {
		b.add(o.node.place, field, "write exactly one of http, stdio and webmcp", "a server is reached in one way, and this has %d", ways)
	}
	if o.has("http") {
		s.HTTP = b.httpServer(o, s.Secrets)
	}
	if o.has("stdio") {
		s.Stdio = b.stdioServer(o, s.Secrets)
	}
	if o.has("webmcp") {
		s.WebMCP = b.webmcpServer(o)
	}
	return s, len(b.errors) == before
}

func (b *builder) httpServer(o object, secrets []string) *contract.HTTPServer {
	h, ok := b.object(o.get("http"), o.in("http"), "url", "headers")
	if !ok {
		return nil
	}
	s := &contract.HTTPServer{URL: h.required("url", `"http://127.0.0.1:9103/mcp"`)}
	if n := h.get("url"); n != nil && s.URL != "" {
		b.noSecret(n, h.in("url"))
		if problem := httpURL(s.URL); problem != "" {
			b.add(n.place, h.in("url"), `such as "http://127.0.0.1:9103/mcp"`, "%s", problem)
		}
	}
	s.Headers = b.secretTexts(h, "headers", secrets)
	for _, m := range h.names("headers") {
		if !headerName.MatchString(m.name) {
			b.add(m.place, joined(h.in("headers"), m.name), "", "%q cannot name an HTTP header", m.name)
		}
	}
	return s
}

// httpURL says what is wrong with a URL of an MCP server, or nothing.
func httpURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "":
		return "is no URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with http:// or https://"
	case u.Hostname() == "":
		return "names no host"
	case u.User != nil:
		return "holds a credential; put it into headers, as ${secret:NAME}"
	case u.Fragment != "":
		return "has a fragment, which is never sent"
	}
	return ""
}

func (b *builder) stdioServer(o object, secrets []string) *contract.StdioServer {
	c, ok := b.object(o.get("stdio"), o.in("stdio"), "command", "env", "dir")
	if !ok {
		return nil
	}
	s := &contract.StdioServer{Dir: c.text("dir", "./server")}
	if n := c.get("command"); n == nil {
		b.add(c.node.place, c.field, "such as command: [node, server.js]", `the field "command" is missing`)
	} else if n.kind != kindList || len(n.items) == 0 {
		c.wrong("command", "write the program and its arguments as a list such as [node, server.js]")
	} else {
		for i, item := range n.items {
			field := indexed(c.in("command"), i)
			if item.kind != kindText && item.kind != kindNumber {
				b.add(item.place, field, "write a text", "is %s", item.describe())
				continue
			}
			if i == 0 && item.text == "" {
				b.add(item.place, field, "", "the program is missing")
			}
			if strings.Contains(item.text, "${secret:") { // other references are the program's own
				b.noSecret(item, field)
			}
			s.Command = append(s.Command, item.text)
		}
	}
	if n := c.get("dir"); n != nil && n.kind == kindText {
		b.noSecret(n, c.in("dir"))
	}
	s.Env = b.secretTexts(c, "env", secrets)
	for _, m := range c.names("env") {
		if !envName.MatchString(m.name) {
			b.add(m.place, joined(c.in("env"), m.name), "", "%q cannot name an environment variable", m.name)
		}
	}
	// The directory belongs to the server's identity, so it must not depend on where the command was started.
	base, err := filepath.Abs(filepath.Dir(c.node.file))
	if err != nil {
		b.add(c.node.place, c.field, "", "the directory of the manifest cannot be found: %v", err)
		return s
	}
	if !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(base, s.Dir)
	}
	return s
}

func (b *builder) webmcpServer(o object) *contract.WebMCPServer {
	w, ok := b.object(o.get("webmcp"), o.in("webmcp"), "origin", "path", "mode", "profile")
	if !ok {
		return nil
	}
	s := &contract.WebMCPServer{
		Origin:  w.required("origin", `"http://localhost:9104"`),
		Path:    w.text("path", "/app"),
		Mode:    w.choice("mode", "", "tab", "frame"),
		Profile: w.text("profile", "work"),
	}
	if n := w.get("origin"); n != nil && s.Origin != "" {
		b.noSecret(n, w.in("origin"))
		u, err := url.Parse(s.Origin)
		switch problem := httpURL(s.Origin); {
		case problem != "":
			b.add(n.place, w.in("origin"), `such as "http://localhost:9104"`, "%s", problem)
		case err != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery:
			b.add(n.place, w.in("origin"), "put the path into the field path", "an origin has no path")
		case u.Scheme == "http" && !isLoopback(u.Hostname()):
			b.add(n.place, w.in("origin"), "use https://, or a host of this machine", "browsers offer WebMCP to secure origins only")
		}
	}
	if n := w.get("path"); n != nil && s.Path != "" && !strings.HasPrefix(s.Path, "/") {
		w.wrong("path", "a path begins with /")
	}
	return s
}

func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "::1" || strings.HasPrefix(host, "127.")
}

// secretTexts reads an object of texts that may name secrets.
func (b *builder) secretTexts(o object, name string, secrets []string) map[string]string {
	var out map[string]string
	for _, m := range o.names(name) {
		field := joined(o.in(name), m.name)
		switch m.value.kind {
		case kindText, kindNumber, kindBool:
		default:
			b.add(m.value.place, field, "write a text", "is %s", m.value.describe())
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[m.name] = m.value.text
		rest := m.value.text
		for _, found := range secretRef.FindAllStringSubmatch(rest, -1) {
			if !slices.Contains(secrets, found[1]) {
				want := nearest.Hint(found[1], secrets)
				if want == "" {
					want = "add it to the secrets of this server"
				}
				b.add(m.value.place, field, want, "the secret %q is not in the list of secrets of this server", found[1])
			}
		}
		if rest = secretRef.ReplaceAllString(rest, ""); strings.Contains(rest, "${") {
			b.add(m.value.place, field, "only ${secret:NAME} can stand here", "a reference that is not to a secret")
		}
	}
	return out
}

// noSecret refuses references where none is filled in.
func (b *builder) noSecret(n *node, field string) {
	if strings.Contains(n.text, "${") {
		b.add(n.place, field, "secrets can be named in headers and in env, as ${secret:NAME}", "references are not filled in here")
	}
}
