// Package toolclient keeps sessions with the systems that own the resources, and tells of every call how far it got.
//
// A Pool holds one session per server, over MCP stdio child processes and MCP streamable HTTP, in both eras of the
// protocol: the handshake revisions up to 2025-11-25, and 2026-07-28. Call sends one tools/call, at most once, and
// answers with a Reply that is never an error. What matters most in it is Reply.Written, because that decides between
// "not executed" and "unknown":
//
//   - nothing: provably no byte of the request left this process;
//   - maybe:   some bytes did, so that the server may have understood the request;
//   - all:     the whole request was written, and no reply to it came;
//   - answered: a reply with the request's own id came.
//
// The package therefore owns every write. Before each piece of a request is handed to the kernel, a gate compares the
// wall clock with the call's write deadline and looks at the caller's context; both the check and the (non-blocking)
// write happen under one lock, so that a call that has ended knows exactly what it wrote, and writes nothing more. A
// process that was frozen in between finds its gate shut. The one assumption left is the gap between the check and the
// write system call.
//
// That is also why the framing is the package's own. Of mcp-go it uses the vocabulary (versions, header encoding), not the
// transports: those report a request that was never sent and one that got no reply with the same error, drop a last line
// without an end and the body of a 404, and take a reply with another request's id.
//
// What the kernel has accepted may still be on its way. When a caller stops waiting:
//
//   - Over stdio, a child that has not answered a call with a write deadline is killed with its process group once that
//     deadline has passed: the request may sit unread in its pipe. Other calls in flight on that child end as unknown
//     with it. A call without a write deadline only looks, and its child is replaced only when nothing else is in
//     flight on it.
//   - Over HTTP, a connection whose bytes the peer has not acknowledged is reset, so that the kernel drops them
//     (Linux). Otherwise the reply is waited for in the background for Options.Linger, since we would rather learn the
//     outcome than cancel; then the connection is closed. In the 2026-07-28 revision that close is a cancellation.
//
// A reply that comes after its caller has gone is kept and handed out by Pool.Late.
//
// Nothing is ever sent twice: redirects are not followed, HTTP/2 is not used, and net/http's own resending is off. Only
// a request of which provably nothing was written is tried once more on a new session.
package toolclient
