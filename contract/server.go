package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Server says how one system that owns resources is reached. Exactly one of HTTP, Stdio and WebMCP is set.
type Server struct {
	// Name is local to a manifest: two manifests may use it for different systems. See Identity.
	Name string `json:"name"`

	HTTP   *HTTPServer   `json:"http,omitempty"`
	Stdio  *StdioServer  `json:"stdio,omitempty"`
	WebMCP *WebMCPServer `json:"webmcp,omitempty"`

	// Principal names the credential under which the server is used (never its value).
	Principal string `json:"principal,omitempty"`

	// Secrets are the names that ${secret:NAME} in this entry may refer to.
	Secrets []string `json:"secrets,omitempty"`

	// TrustRefusals believes the server's error answers: an error is a definite no.
	TrustRefusals bool `json:"trustRefusals,omitempty"`

	// TrustAnnotations believes the server's readOnlyHint.
	TrustAnnotations bool `json:"trustAnnotations,omitempty"`
}

// HTTPServer is an MCP server reached over streamable HTTP.
type HTTPServer struct {
	URL string `json:"url"`
	// Headers are sent with every request. Their values may hold ${secret:NAME}, looked up by the worker.
	Headers map[string]string `json:"headers,omitempty"`
}

// StdioServer is an MCP server run as a child process.
type StdioServer struct {
	Command []string `json:"command"`
	// Env is added to the worker's environment. Its values may hold ${secret:NAME}, looked up by the worker.
	Env map[string]string `json:"env,omitempty"`
	// Dir is the directory in which the command runs.
	Dir string `json:"dir,omitempty"`
}

// WebMCPServer is a web application whose pages register tools with document.modelContext.
type WebMCPServer struct {
	Origin  string `json:"origin"`
	Path    string `json:"path,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Profile string `json:"profile,omitempty"`
}

// ServerRef names a server in a transaction: by its local name, and by the identity that an activity checks before it
// touches the server.
type ServerRef struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Queue is the task queue on which the calls to this server are dispatched. Every process that has the same server in
// its manifest polls it.
func (r ServerRef) Queue() string { return TaskQueue + "/" + r.String() }

// String is name-id.
func (r ServerRef) String() string { return r.Name + "-" + r.ID }

// Identity tells servers apart that happen to share a name: the first eight hexadecimal digits of a SHA-256 over what
// makes the server this one and no other. Values of environment variables and headers do not count, so that a rotated
// credential does not make another server.
func (s Server) Identity() string {
	identity := struct {
		Kind      string   `json:"kind"`
		Place     []string `json:"place"`
		Dir       string   `json:"dir,omitempty"`
		Names     []string `json:"names,omitempty"`
		Principal string   `json:"principal,omitempty"`
	}{Principal: s.Principal}
	switch {
	case s.HTTP != nil:
		identity.Kind, identity.Place, identity.Names = "http", []string{s.HTTP.URL}, sortedKeys(s.HTTP.Headers)
	case s.Stdio != nil:
		identity.Kind, identity.Place, identity.Dir = "stdio", s.Stdio.Command, s.Stdio.Dir
		identity.Names = sortedKeys(s.Stdio.Env)
	case s.WebMCP != nil:
		identity.Kind, identity.Place = "webmcp", []string{s.WebMCP.Origin, s.WebMCP.Path, s.WebMCP.Profile}
	}
	text, err := json.Marshal(identity)
	if err != nil {
		panic(err) // a struct of strings always encodes
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// Ref is the server's name and identity.
func (s Server) Ref() ServerRef { return ServerRef{Name: s.Name, ID: s.Identity()} }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
