package view_test

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mcpx-go/mcpx/contract"
)

var begin = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return begin.Add(d) }

func kept(text string) *contract.Kept { return contract.Keep(json.RawMessage(text), nil, 1<<10) }

func call(kind contract.CallKind, attempt int, tool, said string, at time.Duration, why string) contract.Evidence {
	written := contract.Answered
	if said == string(contract.Unknown) {
		written = contract.FullyWritten
	}
	return contract.Evidence{
		Call: kind, Attempt: attempt, Tool: tool, Said: said, Why: why, Written: written,
		At: after(at), Took: contract.Duration(4 * time.Millisecond), By: "7@host",
	}
}

// awaiting is the story of the demonstration at the moment where a human is asked.
func awaiting() contract.Snapshot {
	return contract.Snapshot{
		ID: "provision-workspace/4f2a9c", Run: "run-1", Tx: "run-1", Plan: "provision-workspace",
		State:   contract.TxAwaitingCompensationApproval,
		Reason:  "step frontend FAILED: refused by frontend: REJECTED",
		Waiting: "a human: approve-compensation, reject-compensation or resume (0 of 1 approvals)",
		Input:   json.RawMessage(`{"workspace": "acme"}`), Requester: "alice", Started: begin,
		Steps: []contract.StepSnapshot{
			{
				ID: "database", Tool: "database/create_database", State: contract.StepCommitted, Attempts: 1,
				Reason: "acknowledged by database", Proof: contract.ProofAnswer,
				Args: kept(`{"name": "acme-db", "owner": "run-1"}`), Result: kept(`{"id": "db_1", "size_gb": 12345678901234567890}`),
				Evidence: []contract.Evidence{call(contract.CallExecute, 1, "create_database", "acknowledged", 5*time.Millisecond, "")},
			},
			{
				ID: "compute", Tool: "compute/create_instance", State: contract.StepCommitted, Attempts: 1,
				Reason: "acknowledged by compute", Needs: []string{"database"}, Proof: contract.ProofAnswer,
				Evidence: []contract.Evidence{call(contract.CallExecute, 1, "create_instance", "acknowledged", 15*time.Millisecond, "")},
			},
			{
				ID: "routing", Tool: "routing/create_route", State: contract.StepRecovered, Attempts: 1,
				Reason: "present and ours: not executed again", Needs: []string{"compute"}, Proof: contract.ProofTx,
				Evidence: []contract.Evidence{
					call(contract.CallExecute, 1, "create_route", "unknown", 25*time.Millisecond, "the connection was closed before an answer came"),
					call(contract.CallInspect, 1, "get_route", "present", 30*time.Millisecond, ""),
				},
			},
			{
				ID: "frontend", Tool: "frontend/deploy", State: contract.StepFailed, Attempts: 1,
				Reason: "refused by frontend: REJECTED", Needs: []string{"routing"},
				Evidence: []contract.Evidence{
					call(contract.CallExecute, 1, "deploy", "refused", 40*time.Millisecond, "REJECTED: not today"),
					call(contract.CallInspect, 1, "get_deployment", "absent", 45*time.Millisecond, "NOT_FOUND"),
				},
			},
		},
		Undo: &contract.UndoPlan{
			Version: 1, Run: "run-1", Digest: strings.Repeat("0123456789abcdef", 4),
			Published: after(50 * time.Millisecond), Expires: after(72 * time.Hour),
			Waves: [][]contract.Undo{
				{{Step: "routing", Undoes: "routing/create_route", Tool: "routing/delete_route", Args: json.RawMessage(`{"route_id":"rt_1"}`), Seen: contract.Present, Proof: contract.ProofTx}},
				{{Step: "compute", Undoes: "compute/create_instance", Tool: "compute/delete_instance", Args: json.RawMessage(`{"id":"vm_1"}`), Seen: contract.Present, Proof: contract.ProofAnswer}},
				{{Step: "database", Undoes: "database/create_database", Tool: "database/delete_database", Args: json.RawMessage(`{"id":"db_1"}`), Seen: contract.Present, Proof: contract.ProofAnswer}},
			},
			Kept: []contract.Residue{{Step: "mail", Tool: "mail/send", Why: "its contract has no compensation"}},
		},
		Decisions: []contract.Judged{{
			Signal: contract.SignalApproveCompensation, Decision: contract.Decision{By: "bob", Digest: "ffffffffffff"}, At: after(time.Second),
			Why: "it names plan ffffffffffff, the one that waits is 0123456789ab: look at it again",
		}},
		Notes: []string{"lint: step mail cannot be undone"},
	}
}

// unresolved waits for somebody who says what became of two steps.
func unresolved() contract.Snapshot {
	tx := awaiting()
	tx.State, tx.Reason, tx.Waiting = contract.TxAwaitingResolution, "step routing is UNKNOWN: the owner cannot tell", "a human: resolve-step"
	tx.Undo, tx.Decisions, tx.Notes = nil, nil, nil
	tx.Steps[1].State, tx.Steps[1].Reason = contract.StepCompensationFailed, "still present after 5 compensations"
	tx.Steps[1].Undos = 5
	tx.Steps[2].State, tx.Steps[2].Reason = contract.StepUnknown, "the owner cannot tell"
	tx.Steps[3].State, tx.Steps[3].Reason = contract.StepPending, ""
	return tx
}

// compensated is the story at its end.
func compensated() contract.Snapshot {
	tx := awaiting()
	tx.State, tx.Waiting, tx.Ended = contract.TxCompensated, "", after(90*time.Second)
	for i := range tx.Steps[:3] {
		tx.Steps[i].State, tx.Steps[i].Undos = contract.StepCompensated, 1
		tx.Steps[i].Reason = "undone, verified absent"
	}
	tx.Decisions = append(tx.Decisions, contract.Judged{
		Signal: contract.SignalApproveCompensation, Decision: contract.Decision{By: "alice", Digest: "0123456789ab", Reason: "looks right"},
		At: after(2 * time.Second), Accepted: true, Why: "approved",
	})
	return tx
}

// hostile is a transaction whose every text comes from somebody who wants to fool whoever reads it.
func hostile() contract.Snapshot {
	const evil = "\x1b[2J\x1b[1;1Hfine\nx  COMMITTED\r\u202e\u009b31m"
	tx := awaiting()
	tx.ID, tx.Plan, tx.Reason, tx.Waiting, tx.Requester = "evil/"+evil+"; rm -rf ~", evil, evil, evil, evil
	tx.Input = json.RawMessage(`{"a": "` + "\u202e\u009b" + `"}`)
	for i := range tx.Steps {
		step := &tx.Steps[i]
		step.Reason, step.Tool, step.Result = evil, evil, kept("\"\u009b31m\u202e\"")
		step.Evidence = append(step.Evidence, contract.Evidence{Call: evil, Said: evil, Tool: evil, Why: evil, Answer: evil, By: evil, Written: evil})
	}
	tx.Undo.Kept = []contract.Residue{{Step: evil, Tool: evil, Why: evil}}
	tx.Undo.Waves[0][0].Step, tx.Undo.Waves[0][0].Args = evil, json.RawMessage("{\"x\": \"\u202e\u009b\"}")
	tx.Undo.Digest = evil
	tx.Notes = []string{evil}
	tx.Decisions[0].Why, tx.Decisions[0].Decision.By = evil, evil
	return tx
}

func provision() contract.Definition {
	tool := func(server, create, get, remove string) contract.Tool {
		return contract.Tool{
			Server: server, Name: create, Risk: contract.RiskCritical, Retries: 2,
			Timeout: contract.Duration(15 * time.Second), Settle: contract.Duration(time.Second),
			Inspect: &contract.Inspect{Server: server, Tool: get, Proves: []contract.Proof{contract.ProofTx}},
			Compensate: &contract.Compensate{Server: server, Tool: remove,
				Args: contract.Template(`{"id": "${result.id}", "name": "${args.name}"}`)},
		}
	}
	def := contract.Definition{
		Plan: "provision-workspace", Description: "Provisions a workspace", Digest: strings.Repeat("ab12", 16),
		TTL:      contract.Duration(720 * time.Hour),
		Approval: contract.Approval{Start: "auto", Quorum: 2, FourEyes: true, Expires: contract.Duration(72 * time.Hour)},
		Tools: map[string]contract.Tool{
			"database/create_database": tool("database", "create_database", "get_database", "delete_database"),
			"compute/create_instance":  tool("compute", "create_instance", "get_instance", "delete_instance"),
			"cache/create_cache":       tool("cache", "create_cache", "get_cache", "delete_cache"),
			"mail/send":                {Server: "mail", Name: "send", Risk: contract.RiskCritical, Timeout: contract.Duration(15 * time.Second)},
			"audit/read":               {Server: "audit", Name: "read", Risk: contract.RiskReadOnly, Timeout: contract.Duration(15 * time.Second)},
		},
		Steps: []contract.Step{
			{ID: "database", Tool: "database/create_database", Args: contract.Template(`{"name": "${input.workspace}-db", "owner": "${tx.id}", "size_gb": "${input.size}", "token": "${input.token}"}`)},
			{ID: "cache", Tool: "cache/create_cache", Args: contract.Template(`{"name": "${input.workspace}"}`)},
			{ID: "compute", Tool: "compute/create_instance", Needs: []string{"database", "cache"}, Args: contract.Template(`{"name": "vm", "database": "${steps.database.result.id}"}`)},
			{ID: "mail", Tool: "mail/send", Needs: []string{"compute"}, Args: contract.Template(`{"to": "ops"}`)},
			{ID: "audit", Tool: "audit/read", Needs: []string{"compute"}},
		},
		Warnings: []string{"step mail: mail/send is critical and has no inspector: a lost reply stops the transaction until a human resolves it"},
	}
	database := def.Tools["database/create_database"]
	database.Sensitive = []string{"token"}
	def.Tools["database/create_database"] = database
	cache := def.Tools["cache/create_cache"]
	cache.Inspect.Proves = nil
	def.Tools["cache/create_cache"] = cache
	return def
}
