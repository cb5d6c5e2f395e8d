// Package workspace holds four small reference applications that own the
// parts of a developer workspace: a database service, a compute service, a
// routing service and a frontend host.
//
// Each runs as its own process, keeps its resources in its own SQLite file and
// serves MCP tools over streamable HTTP. They know nothing of each other and
// nothing of MCPx. They are honest (what they report is what they stored) and
// naive (creating twice makes two resources), so that a blind retry leaves a
// visible duplicate.
//
// Every application carries a switch that makes the next calls of a tool fail
// in a chosen way: see [Fault].
package workspace
