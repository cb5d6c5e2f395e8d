package contract

import "strings"

// PlanWorkflowID is the workflow ID of a plan's intent: the plan's name and the fingerprint of its logical keys, or the
// key that the caller chose. The ID is the intent: two starts under one ID are one transaction.
func PlanWorkflowID(plan, intent string) string { return plan + "/" + intent }

// CallWorkflowID is the workflow ID of a single call's intent.
func CallWorkflowID(server ServerRef, tool, fingerprint string) string {
	return server.String() + "." + tool + "/" + fingerprint
}

// PlanOf returns the plan's name in a workflow ID made by PlanWorkflowID, or "" if there is none.
func PlanOf(workflowID string) string {
	plan, _, found := strings.Cut(workflowID, "/")
	if !found {
		return ""
	}
	return plan
}
