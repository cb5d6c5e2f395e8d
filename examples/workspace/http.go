package workspace

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/server"
)

// mcpPath is where an application serves MCP.
const mcpPath = "/mcp"

// maxBody bounds a request body, in bytes.
const maxBody = 1 << 20

// httpHandler serves everything an application has: MCP, the fault switch and
// what tests and demonstrations look at.
func (a *application) httpHandler() http.Handler {
	endpoint := server.NewStreamableHTTPServer(a.mcpServer(),
		server.WithStateLess(true), // a restart must not invalidate a client's session
		server.WithDisableStreaming(true),
		server.WithStreamableHTTPLogger(a.log),
	)
	mux := http.NewServeMux()
	mux.Handle(mcpPath, spoil(endpoint))
	mux.HandleFunc("POST /faults", a.postFault)
	mux.HandleFunc("GET /faults", a.getFaults)
	mux.HandleFunc("DELETE /faults", a.deleteFaults)
	mux.HandleFunc("GET /calls", a.getCalls)
	mux.HandleFunc("GET /resources", a.getResources)
	mux.HandleFunc("POST /reset", a.postReset)
	mux.HandleFunc("GET /healthz", a.getHealth)

	crossOrigin := http.NewCrossOriginProtection()
	return guardHost(crossOrigin.Handler(http.MaxBytesHandler(mux, maxBody)))
}

// guardHost refuses requests that reach a loopback address under another host
// name: a web page whose name was rebound to 127.0.0.1 sends such requests.
func guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if local != nil && isLoopback(local.String()) && !isLoopback(r.Host) {
			http.Error(w, "this application is local: use the host name localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// faultList is the body of every answer about faults.
type faultList struct {
	Faults []Fault `json:"faults"`
}

func (a *application) postFault(w http.ResponseWriter, r *http.Request) {
	fault, err := a.readFault(r.Body)
	if err != nil {
		a.writeError(w, http.StatusBadRequest, err)
		return
	}
	a.faults.arm(fault)
	a.log.Info("fault armed", "tool", fault.Tool, "fault", fault.Fault, "calls", fault.Calls, "ms", fault.MS)
	a.getFaults(w, r)
}

func (a *application) getFaults(w http.ResponseWriter, _ *http.Request) {
	a.write(w, http.StatusOK, faultList{Faults: a.faults.list()})
}

func (a *application) deleteFaults(w http.ResponseWriter, r *http.Request) {
	a.faults.clear()
	a.getFaults(w, r)
}

func (a *application) getCalls(w http.ResponseWriter, r *http.Request) {
	stored, err := a.store.calls(r.Context())
	if err != nil {
		a.writeError(w, http.StatusInternalServerError, err)
		return
	}
	counts := map[string]int64{}
	for _, tool := range a.Tools() {
		counts[tool] = stored[tool]
	}
	a.write(w, http.StatusOK, counts)
}

func (a *application) getResources(w http.ResponseWriter, r *http.Request) {
	found, err := a.store.find(r.Context(), filter{})
	if err != nil {
		a.writeError(w, http.StatusInternalServerError, err)
		return
	}
	a.write(w, http.StatusOK, listing{Items: found, Count: len(found)})
}

func (a *application) postReset(w http.ResponseWriter, r *http.Request) {
	if err := a.reset(r.Context()); err != nil {
		a.writeError(w, http.StatusInternalServerError, err)
		return
	}
	a.log.Info("reset")
	a.write(w, http.StatusOK, object{"reset": true})
}

func (a *application) getHealth(w http.ResponseWriter, r *http.Request) {
	if err := a.store.ping(r.Context()); err != nil {
		a.writeError(w, http.StatusServiceUnavailable, err)
		return
	}
	a.write(w, http.StatusOK, object{"status": "ok", "kind": a.Kind, "pid": os.Getpid()})
}

func (a *application) write(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		a.log.Error("encode an answer", "error", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // a client that has left needs no answer
}

func (a *application) writeError(w http.ResponseWriter, status int, err error) {
	body := &fieldError{Message: err.Error()}
	if field, ok := errors.AsType[*fieldError](err); ok {
		body = field
	}
	a.write(w, status, object{"error": body})
}
