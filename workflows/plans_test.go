package workflows_test

import (
	"fmt"
	"time"

	"github.com/mcpx-go/mcpx/contract"
)

// chain is a plan of steps that each need the one before.
func chain(ids ...string) contract.Definition {
	var steps []contract.Step
	for i, id := range ids {
		s := contract.Step{ID: id}
		if i > 0 {
			s.Needs = []string{ids[i-1]}
			s.Args = contract.Template(fmt.Sprintf(`{"on":"${steps.%s.result.id}"}`, ids[i-1]))
		}
		steps = append(steps, s)
	}
	return plan(steps...)
}

// diamond is a plan of four steps: top, then left and right at the same time, then bottom.
func diamond() contract.Definition {
	return plan(contract.Step{ID: "top"}, contract.Step{ID: "left", Needs: []string{"top"}},
		contract.Step{ID: "right", Needs: []string{"top"}}, contract.Step{ID: "bottom", Needs: []string{"left", "right"}})
}

// parallel is a plan of steps that need nothing.
func parallel(ids ...string) contract.Definition {
	var steps []contract.Step
	for _, id := range ids {
		steps = append(steps, contract.Step{ID: id})
	}
	return plan(steps...)
}

// plan completes steps with contracts of their own: inspected by tx.id, compensated by the result's id.
func plan(steps ...contract.Step) contract.Definition {
	def := contract.Definition{
		Plan: "test", Digest: "d", Tools: map[string]contract.Tool{},
		Servers:  map[string]contract.ServerRef{"owner": {Name: "owner", ID: "0123abcd"}},
		Approval: contract.Approval{Quorum: 1, Expires: contract.Duration(72 * time.Hour)},
		TTL:      contract.Duration(time.Hour),
	}
	for _, s := range steps {
		s.Tool = "owner/create_" + s.ID
		s.Keep = []string{"id"}
		def.Tools[s.Tool] = contract.Tool{
			Server: "owner", Name: "create_" + s.ID, Risk: contract.RiskCritical,
			Timeout: contract.Duration(5 * time.Second), Settle: contract.Duration(4 * time.Second), Retries: 2,
			Inspect: &contract.Inspect{
				Server: "owner", Tool: "get_" + s.ID, Args: contract.Template(`{"name":"x"}`), Present: "p", Absent: "a",
				Proves: []contract.Proof{contract.ProofTx}, Timeout: contract.Duration(5 * time.Second),
			},
			Compensate: &contract.Compensate{
				Server: "owner", Tool: "delete_" + s.ID, Args: contract.Template(`{"id":"${result.id}"}`),
				Timeout: contract.Duration(5 * time.Second), Settle: contract.Duration(4 * time.Second), Retries: 3,
			},
		}
		def.Steps = append(def.Steps, s)
	}
	return def
}

// with changes the contract of a step.
func with(def contract.Definition, step string, change func(*contract.Tool)) contract.Definition {
	for _, s := range def.Steps {
		if s.ID == step {
			tool := def.Tools[s.Tool]
			change(&tool)
			def.Tools[s.Tool] = tool
		}
	}
	return def
}

// with changes of a contract that tests use.
var (
	uninspected = func(c *contract.Tool) { c.Inspect, c.Compensate = nil, nil }
	permanent   = func(c *contract.Tool) { c.Compensate = nil }
	readOnly    = func(c *contract.Tool) { c.Risk, c.Inspect, c.Compensate = contract.RiskReadOnly, nil, nil }
	idempotent  = func(c *contract.Tool) { c.Risk, c.Inspect, c.Compensate = contract.RiskIdempotent, nil, nil }
	unproven    = func(c *contract.Tool) { c.Inspect.Proves = nil }
)
