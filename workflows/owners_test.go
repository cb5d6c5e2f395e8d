package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/mcpx-go/mcpx/contract"
)

// next takes the next word of the script for a call, "" when it is used up; "word@2s" answers after two seconds.
func (w *world) next(kind contract.CallKind, step string) (word string, delay time.Duration) {
	key := string(kind) + ":" + step
	words := w.script[key]
	if len(words) == 0 {
		return "", 0
	}
	w.script[key] = words[1:]
	word, after, _ := strings.Cut(words[0], "@")
	if after != "" {
		var err error
		if delay, err = time.ParseDuration(after); err != nil {
			panic(err)
		}
	}
	return word, delay
}

// create makes an effect, and gives its id. Reads have none, and what is idempotent has one.
func (w *world) create(step, tx string) string {
	return w.createShownAfter(step, tx, 0)
}

// createShownAfter makes an effect that the inspector shows later.
func (w *world) createShownAfter(step, tx string, lag time.Duration) string {
	own := w.own(step, tx)
	switch risk := w.tool(step).Risk; {
	case risk == contract.RiskReadOnly:
		return step + "-read"
	case risk == contract.RiskIdempotent && len(own) > 0:
		return own[0].id
	}
	w.doubled[step] = w.doubled[step] || len(own) > 0
	w.made[step]++
	id := step + "-" + strconv.Itoa(w.made[step])
	w.effects[step] = append(w.effects[step], effect{tx, id, w.env.Now().Add(lag)})
	return id
}

// own are the effects of a step that a transaction made.
func (w *world) own(step, tx string) []effect {
	var own []effect
	for _, e := range w.effects[step] {
		if e.tx == tx {
			own = append(own, e)
		}
	}
	return own
}

// remove removes an effect by its id.
func (w *world) remove(step, id string) bool {
	before := len(w.effects[step])
	w.effects[step] = slices.DeleteFunc(w.effects[step], func(e effect) bool { return e.id == id })
	return len(w.effects[step]) < before
}

func (w *world) after(wait time.Duration, appears string, do func()) {
	w.pending = append(w.pending, change{w.env.Now().Add(wait), appears, do})
}

func withID(id string) *contract.Kept {
	return contract.Keep(json.RawMessage(`{"id":"`+id+`"}`), nil, contract.ResultLimit)
}

// reply hands over an answer, now or after a while; appears is the step of which an effect may come with it.
func reply[T any](ctx context.Context, w *world, appears string, size int, delay time.Duration, answer func() (T, error)) (T, error) {
	w.flying.calls++
	w.flying.bytes += size
	w.most.calls, w.most.bytes = max(w.most.calls, w.flying.calls), max(w.most.bytes, w.flying.bytes)
	land := func() {
		w.flying.calls--
		w.flying.bytes -= size
	}
	if delay == 0 {
		land()
		return answer()
	}
	env, token := w.env, activity.GetInfo(ctx).TaskToken
	w.begun[appears]++
	env.RegisterDelayedCallback(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.happen(env.Now())
		w.begun[appears]--
		land()
		result, err := answer()
		if err := env.CompleteActivity(token, result, err); err != nil {
			panic(err)
		}
	}, delay)
	var none T
	return none, activity.ErrResultPending
}

func (w *world) execute(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	w.begin()
	out := contract.Outcome{
		WriteDeadline: w.env.Now().Add(call.Timeout.Std()),
		Evidence:      contract.Evidence{Call: contract.CallExecute, Attempt: call.Attempt, Tool: call.Tool},
	}
	if call.Tx.Run != w.run {
		out.Kind = contract.Reset
		return out, nil
	}
	word, delay := w.next(contract.CallExecute, call.Step)
	if word == "garbage" { // an answer that is none
		w.note(contract.CallExecute, call.Step)
		if err := w.env.CompleteActivity(activity.GetInfo(ctx).TaskToken, "no outcome", nil); err != nil {
			return out, err
		}
		return out, activity.ErrResultPending
	}
	return reply(ctx, w, call.Step, len(call.Args), delay, func() (contract.Outcome, error) {
		if word != "idle" && word != "no-worker" && word != "recalled" {
			w.note(contract.CallExecute, call.Step)
			w.seen = append(w.seen, call)
			if w.executing != nil {
				w.executing(call)
			}
		}
		commit := func() string { return w.create(call.Step, call.Tx.ID) }
		switch word {
		case "":
			out.Kind, out.Result = contract.Acknowledged, withID(commit())
		case "shown-later":
			lag := w.tool(call.Step).Settle.Std() - time.Second
			out.Kind, out.Result = contract.Acknowledged, withID(w.createShownAfter(call.Step, call.Tx.ID, lag))
		case "lost-shown-later":
			w.createShownAfter(call.Step, call.Tx.ID, w.tool(call.Step).Settle.Std()-time.Second)
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "idle":
			out.Kind, out.Why = contract.NotExecuted, "connection refused"
		case "refuse":
			out.Kind, out.Why = contract.Refused, "REJECTED: no"
		case "refuse-but-commit":
			commit()
			out.Kind, out.Why = contract.Refused, "REJECTED: no"
		case "error":
			out.Kind, out.Why, out.Answered = contract.Unknown, "fetch failed", true
		case "error-after":
			commit()
			out.Kind, out.Why, out.Answered = contract.Unknown, "fetch failed", true
		case "error-late":
			out.Kind, out.Why, out.Answered = contract.Unknown, "fetch failed", true
			w.after(w.tool(call.Step).Settle.Std()-time.Second, call.Step, func() { commit() })
		case "open": // taken, and never finished
			out.Kind, out.Why, out.Open = contract.Unknown, "a task", true
		case "open-after":
			commit()
			out.Kind, out.Why, out.Open = contract.Unknown, "a task", true
		case "lost-before":
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "lost-after":
			commit()
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "late":
			out.Kind, out.Why = contract.Unknown, "no answer in time"
			w.after(call.Timeout.Std()+time.Second, call.Step, func() { commit() })
		case "too-late": // an owner that takes longer than it promised
			out.Kind, out.Why = contract.Unknown, "no answer in time"
			w.after(call.Timeout.Std()+w.tool(call.Step).Settle.Std()+time.Second, call.Step, func() { commit() })
		case "crash":
			return out, errors.New("worker died")
		case "crash-after":
			commit()
			return out, errors.New("worker died")
		case "crash-late":
			w.after(call.Timeout.Std()+time.Second, call.Step, func() { commit() })
			return out, errors.New("worker died")
		case "fatal":
			return out, temporal.NewNonRetryableApplicationError("no such thing", "Fatal", nil)
		case "panic":
			panic("a bug")
		case "timeout-after":
			commit()
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)
		case "timeout-late":
			w.after(w.tool(call.Step).Settle.Std()-time.Second, call.Step, func() { commit() })
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)
		case "heartbeat":
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil)
		case "no-worker":
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		case "recalled":
			return out, temporal.NewCanceledError()
		default:
			return out, temporal.NewNonRetryableApplicationError("unknown word "+word, "Script", nil)
		}
		return out, nil
	})
}

func (w *world) tool(step string) contract.Tool {
	for _, s := range w.def.Steps {
		if s.ID == step {
			return w.def.Tools[s.Tool]
		}
	}
	panic("no step " + step)
}

// find is what the inspector of a step finds: by the transaction's id, by the id in its own result, or whatever is
// there.
func (w *world) find(request contract.Inspection) (effect, bool) {
	var result struct{ ID string }
	_ = json.Unmarshal(request.Result, &result)
	proves := w.tool(request.Step).Inspect.Proves
	i := slices.IndexFunc(w.effects[request.Step], func(e effect) bool {
		switch {
		case e.visible.After(w.env.Now()):
			return false
		case slices.Contains(proves, contract.ProofTx):
			return e.tx == request.Tx.ID
		case slices.Contains(proves, contract.ProofResult) && result.ID != "":
			return e.id == result.ID
		}
		return true
	})
	if i < 0 {
		return effect{}, false
	}
	return w.effects[request.Step][i], true
}

func (w *world) inspect(ctx context.Context, request contract.Inspection) (contract.Look, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin()
	word, delay := w.next(contract.CallInspect, request.Step)
	return reply(ctx, w, "", len(request.Args)+len(request.Query), delay, func() (contract.Look, error) {
		w.note(contract.CallInspect, request.Step)
		w.looked = append(w.looked, request)
		found, there := w.find(request)
		look := contract.Look{Evidence: contract.Evidence{Call: contract.CallInspect, Tool: request.Tool}}
		switch {
		case word == "fail":
			look.Verdict, look.Why = contract.Inconclusive, "the inspector is down"
		case word == "crash":
			return look, temporal.NewNonRetryableApplicationError("the inspector crashed", "Crash", nil)
		case word == "stale" || !there:
			look.Verdict = contract.Absent
		default:
			look.Verdict, look.Result = contract.Present, withID(found.id)
		}
		look.Evidence.Said = string(look.Verdict)
		return look, nil
	})
}

func (w *world) compensate(ctx context.Context, call contract.Call) (contract.Outcome, error) {
	w.begin()
	out := contract.Outcome{
		WriteDeadline: w.env.Now().Add(call.Timeout.Std()),
		Evidence:      contract.Evidence{Call: contract.CallCompensate, Attempt: call.Attempt, Tool: call.Tool},
	}
	if call.Tx.Run != w.run {
		out.Kind = contract.Reset
		return out, nil
	}
	word, delay := w.next(contract.CallCompensate, call.Step)
	return reply(ctx, w, "", len(call.Args), delay, func() (contract.Outcome, error) {
		if word != "idle" && word != "no-worker" {
			w.note(contract.CallCompensate, call.Step)
			w.seen = append(w.seen, call)
			if w.undoing != nil {
				w.undoing(call)
			}
		}
		var args struct{ ID string }
		_ = json.Unmarshal(call.Args, &args)
		settle := w.tool(call.Step).Compensate.Settle.Std()
		switch word {
		case "":
			w.remove(call.Step, args.ID)
			out.Kind = contract.Acknowledged
		case "lie":
			out.Kind = contract.Acknowledged
		case "slow": // acknowledged first, done later
			out.Kind = contract.Acknowledged
			w.after(settle-time.Second, "", func() { w.remove(call.Step, args.ID) })
		case "open": // taken, and never finished
			out.Kind, out.Why, out.Open = contract.Unknown, "a task", true
		case "open-done":
			w.after(settle-time.Second, "", func() { w.remove(call.Step, args.ID) })
			out.Kind, out.Why, out.Open = contract.Unknown, "a task", true
		case "late": // no answer, and done later
			out.Kind, out.Why = contract.Unknown, "no answer in time"
			w.after(call.Timeout.Std()+settle-time.Second, "", func() { w.remove(call.Step, args.ID) })
		case "idle":
			out.Kind, out.Why = contract.NotExecuted, "connection refused"
		case "no-worker":
			return out, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		case "lost-after":
			w.remove(call.Step, args.ID)
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "lost-before":
			out.Kind, out.Why = contract.Unknown, "connection reset"
		case "error":
			out.Kind, out.Why, out.Answered = contract.Unknown, "internal", true
		case "error-after":
			w.remove(call.Step, args.ID)
			out.Kind, out.Why, out.Answered = contract.Unknown, "internal", true
		case "refuse":
			out.Kind, out.Why = contract.Refused, "FORBIDDEN: no"
		case "crash":
			return out, errors.New("worker died")
		default:
			return out, temporal.NewNonRetryableApplicationError("unknown word "+word, "Script", nil)
		}
		return out, nil
	})
}
