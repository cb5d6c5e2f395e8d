// Package manifest reads mcpx.yaml: the servers that own resources, the contracts of their tools, and the plans. It checks
// everything that can be known before anything runs, and turns it into the vocabulary of package contract.
//
// # Files
//
// A manifest is YAML 1.2 or JSON, and strict: an unknown field, a field that stands twice, a value of the wrong type are
// errors with line and column, all of them at once (type [Errors]), each with what would be right. Numbers keep every
// digit. What readers of YAML disagree about (010, 1_000, 0b11) is refused; yes, on and dates are texts. Anchors,
// aliases and merge keys work within bounds; tags do not. Members that begin with x- are the author's own.
//
//	version: 1
//	include: [../base.yaml]   # entries of this file replace those of the same name there
//	servers:                  # name → http: {url, headers} | stdio: {command, env, dir} | webmcp: {origin, path, mode, profile}
//	  routing: {http: {url: "http://127.0.0.1:9103/mcp"}, trust: [refusals], secrets: [TOKEN], principal: bot}
//	defaults: {timeout: 15s, retries: 2, ttl: 168h}
//	unlisted: protect         # protect · pass · refuse
//	approvers: {alice: "ed25519:…"}
//	agents: {ops: {plans: [provision], open: 5, perMinute: 10}}
//	tools:                    # "server/tool" → risk, key, volatile, sensitive, timeout, retries, settle, ttl, refuse,
//	  routing/create_route: … #   ours, inspect, compensate, invalidates
//	plans: […]                # name, description, input (JSON Schema), key, ttl, approval, steps
//	planFiles: [plans/*.yaml] # one plan in each
//
// Paths are relative to the file that names them. A stdio server without dir runs in the directory of its file; that
// directory is part of the server's identity, so that two projects with the same command never meet.
//
// The manifest of AgentX (agentx.config.json) is recognised by its shape and read as it is. Its heuristics for absence
// are not taken over; our own fields may stand beside its.
//
// # Templates and conditions
//
// Arguments are templates, which hold paths only. A step's may refer to input, tx, step and steps.<id>.result; those of
// an inspector or compensator to args, result, tx and step; inspect.result to response, args and tx. Conditions are CEL:
// see package expr. ${secret:NAME} can stand in the headers and env of a server whose secrets list the name, and nowhere
// else.
//
// # Plans
//
// A plan is resolved when the manifest is read: its steps in order, the contracts and servers that they use, a digest
// over all of it. [Manifest.Resolve] checks the input against the plan's JSON Schema (draft 2020-12 unless the schema
// says otherwise; formats are checked; no references to other files or the network) and fills its defaults in.
// [Manifest.Identity] says which intent a start is.
//
// What works but cannot be made safe is a [Warning] of the lint.
package manifest
