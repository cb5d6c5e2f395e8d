package contract

import (
	"net/url"
	"strings"
)

// PlanWorkflowID is the workflow ID of a plan's intent: the plan's name and the fingerprint of its logical keys, or the
// key that the caller chose. The ID is the intent: two starts under one ID are one transaction.
func PlanWorkflowID(plan, intent string) string { return escapeID(plan) + "/" + escapeID(intent) }

// CallWorkflowID is the workflow ID of a single call's intent.
func CallWorkflowID(server ServerRef, tool, fingerprint string) string {
	return escapeID(server.String()+"."+tool) + "/" + fingerprint
}

// PlanOf returns the plan's name in a workflow ID made by PlanWorkflowID, or "" if there is none.
func PlanOf(workflowID string) string {
	plan, _, found := strings.Cut(workflowID, "/")
	if !found {
		return ""
	}
	if name, err := url.PathUnescape(plan); err == nil {
		return name
	}
	return plan
}

// escapeID writes what is not printable ASCII, and the percent sign itself, as %XX: Temporal's clients send workflow IDs
// in gRPC headers, which hold nothing else.
func escapeID(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if c > ' ' && c < 0x7f && c != '%' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
