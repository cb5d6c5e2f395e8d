package view

import "github.com/mcpx-go/mcpx/contract"

// Looks tells whether a state of a transaction or a step has a look of its own.
func Looks(state any) (ok bool) {
	switch state := state.(type) {
	case contract.TxState:
		_, ok = txLooks[state]
	case contract.StepState:
		_, ok = stepTones[state]
	}
	return ok
}
