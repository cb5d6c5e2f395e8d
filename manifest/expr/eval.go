package expr

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"

	"github.com/mcpx-go/mcpx/canon"
	"github.com/mcpx-go/mcpx/contract"
)

// Vars are the values of the variables of a condition.
type Vars struct {
	// Response is what the owner answered; empty when it answered with an error.
	Response json.RawMessage
	// Error is the error that the owner answered, nil when it answered without one.
	Error *contract.ToolError
	// Args are the arguments of the call; empty stands for none.
	Args json.RawMessage
	// Result is the acknowledged result of the step; empty when there is none.
	Result json.RawMessage
	// Tx is tx.id.
	Tx string
}

// evaluationTime bounds one evaluation beside its cost, which bounds it on any machine.
const evaluationTime = time.Second

// True tells whether the condition holds. See Eval.
func (c *Condition) True(vars Vars) bool {
	truth, _ := c.Eval(vars)
	return truth
}

// Eval evaluates the condition. A condition that cannot be evaluated is not true, and the problem says why in a few
// words; it names members, and holds no value of the data.
func (c *Condition) Eval(vars Vars) (truth bool, problem string) {
	bound, err := c.bind(vars)
	if err != nil {
		return false, err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), evaluationTime)
	defer cancel()
	out, _, err := c.program.ContextEval(ctx, bound)
	if err != nil {
		return false, c.explain(err, vars)
	}
	result, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Sprintf("what it evaluates to is %s, not true or false", describeType(out.Type().(*types.Type)))
	}
	return bool(result), ""
}

// bind gives values to the variables that the condition mentions.
func (c *Condition) bind(vars Vars) (map[string]any, error) {
	bound := make(map[string]any, len(variables[c.kind]))
	for _, p := range c.mentions {
		if _, done := bound[p.Root]; done {
			continue
		}
		var raw json.RawMessage
		switch p.Root {
		case varTx:
			bound[varTx] = map[string]any{"id": vars.Tx}
			continue
		case varError:
			bound[varError] = types.NullValue
			if vars.Error != nil {
				bound[varError] = map[string]any{"code": vars.Error.Code, "message": vars.Error.Message}
			}
			continue
		case varResponse:
			if len(vars.Response) == 0 {
				continue // unbound: not even response == null is true
			}
			raw = vars.Response
		case varArgs:
			if raw = vars.Args; len(raw) == 0 {
				raw = json.RawMessage("{}")
			}
		case varResult:
			if raw = vars.Result; len(raw) == 0 {
				raw = json.RawMessage("null")
			}
		}
		decoded, err := canon.Decode(raw)
		if err == nil {
			decoded, err = value(decoded)
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", p.Root, err)
		}
		if decoded == nil {
			decoded = types.NullValue
		}
		bound[p.Root] = decoded
	}
	return bound, nil
}

// conversion is CEL's error for int("x") and the like; it names types only.
var conversion = regexp.MustCompile(`^type conversion error from '?(\w+)'? to '?(\w+)'?$`)

// explain turns CEL's error into words. CEL's own texts may hold values of the data, so they are passed on only where
// they are known not to.
func (c *Condition) explain(err error, vars Vars) string {
	text := err.Error()
	if key, found := strings.CutPrefix(text, "no such key: "); found {
		switch {
		case vars.Error == nil && slices.Contains(fields[varError], key) && c.mentionsRoot(varError):
			return "there is no error: the owner answered without one"
		case strings.Contains(c.source, key):
			return "there is no member " + key
		}
		return "a member that it looks for is missing"
	}
	if m := conversion.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("a value of type %s cannot be made one of type %s", m[1], m[2])
	}
	switch {
	case strings.Contains(text, "no such attribute") && len(vars.Response) == 0:
		return "there is no response: the owner answered with an error"
	case strings.HasPrefix(text, "index out of bounds"):
		return text
	case strings.HasPrefix(text, "no such overload"):
		return "a value is null or of another type than the condition expects"
	case strings.Contains(text, "cost limit exceeded"):
		return "it takes too much work on this data, and was stopped"
	case strings.Contains(text, "interrupted"):
		return fmt.Sprintf("it took longer than %v, and was stopped", evaluationTime)
	case strings.Contains(text, "number(…)"), strings.HasPrefix(text, "the number "):
		return text
	}
	return "it fails on this data: " + firstWords(text)
}

func (c *Condition) mentionsRoot(name string) bool {
	return slices.ContainsFunc(c.mentions, func(p contract.Path) bool { return p.Root == name })
}

// firstWords is the part of a CEL error before the data that it may quote.
func firstWords(text string) string {
	text, _, _ = strings.Cut(text, ":")
	if i := strings.IndexAny(text, `'"`+"`"); i >= 0 {
		text = strings.TrimSpace(text[:i])
	}
	if len(text) > 80 {
		text = text[:80]
	}
	return strings.ToValidUTF8(text, "")
}
