package expr

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/mcpx-go/mcpx/contract"
)

// Kind says what a condition is for, and with that which variables it knows.
type Kind string

// The kinds of conditions.
const (
	// Present: the effect is there.
	Present Kind = "present"
	// Absent: the effect is provably not there.
	Absent Kind = "absent"
	// Refuse: an error answer is a definite no.
	Refuse Kind = "refuse"
)

// variables are the variables of each kind.
var variables = map[Kind][]string{
	Present: {varResponse, varError, varArgs, varResult, varTx},
	Absent:  {varResponse, varError, varArgs, varResult, varTx},
	Refuse:  {varError, varArgs, varTx},
}

const (
	varResponse = "response"
	varError    = "error"
	varArgs     = "args"
	varResult   = "result"
	varTx       = "tx"
)

// fields are the members of the variables that are not open.
var fields = map[string][]string{
	varError: {"code", "message"},
	varTx:    {"id"},
}

// Limits.
const (
	// MaxSource is the greatest length of a condition in bytes.
	MaxSource = 8 << 10

	maxNodes   = 2000
	maxNesting = 100
	maxCost    = 10_000_000
	maxCached  = 4096
)

// Condition is a compiled condition. It may be used by several goroutines at once.
type Condition struct {
	kind     Kind
	source   string
	program  cel.Program
	mentions []contract.Path
	proves   []contract.Proof
}

// Compile reads a condition and checks its types. Its errors are of type *Error, with the column of every problem.
func Compile(kind Kind, source string) (*Condition, error) {
	fail := func(problems ...Problem) (*Condition, error) {
		return nil, &Error{Kind: kind, Source: source, Problems: problems}
	}
	env, err := environment(kind)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(source) == "":
		return fail(Problem{Text: "the condition is empty", Want: `such as response.owner == tx.id`})
	case len(source) > MaxSource:
		return fail(Problem{Text: fmt.Sprintf("the condition has %d bytes, at most %d are allowed", len(source), MaxSource)})
	case !utf8.ValidString(source):
		return fail(Problem{Text: "the condition is not UTF-8"})
	}
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return fail(problemsOf(issues, source)...)
	}
	reading := read(kind, source, parsed.NativeRep())
	if len(reading.problems) > 0 {
		return fail(reading.problems...)
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return fail(problemsOf(issues, source)...)
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return fail(Problem{
			Column: 1,
			Text:   fmt.Sprintf("is %s, not a condition", describeType(out)),
			Want:   "compare it with something: … == …",
		})
	}
	program, err := env.Program(checked,
		cel.CostLimit(maxCost),
		cel.InterruptCheckFrequency(100),
		cel.EvalOptions(cel.OptOptimize),
	)
	if err != nil {
		return fail(Problem{Text: err.Error()})
	}
	return &Condition{
		kind:     kind,
		source:   source,
		program:  program,
		mentions: reading.mentions(),
		proves:   reading.proves(parsed.NativeRep().Expr()),
	}, nil
}

// Source is the text of the condition.
func (c *Condition) Source() string { return c.source }

// Kind says what the condition is for.
func (c *Condition) Kind() Kind { return c.kind }

// Mentions lists the values that the condition refers to, each once: tx.id, response.items, result. The order is that
// of their texts.
func (c *Condition) Mentions() []contract.Path { return slices.Clone(c.mentions) }

// Proves says what the condition, if true, proves by its own text of whose effect it saw: ProofTx where a part of the
// response is compared with tx.id, ProofResult where it is compared with a part of the step's own result. A comparison
// in only one branch of an "or", or a negated one, proves nothing.
func (c *Condition) Proves() []contract.Proof { return slices.Clone(c.proves) }

// Mentions lists the dotted paths that a condition refers to, in order.
func Mentions(kind Kind, source string) ([]string, error) {
	c, err := Cached(kind, source)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(c.mentions))
	for i, p := range c.mentions {
		texts[i] = p.String()
	}
	return texts, nil
}

// cache holds compiled conditions by kind and source.
var cache struct {
	sync.RWMutex
	conditions map[cacheKey]*Condition
}

type cacheKey struct {
	kind   Kind
	source string
}

// Cached is Compile, which it calls once for each condition.
func Cached(kind Kind, source string) (*Condition, error) {
	key := cacheKey{kind, source}
	cache.RLock()
	c := cache.conditions[key]
	cache.RUnlock()
	if c != nil {
		return c, nil
	}
	c, err := Compile(kind, source)
	if err != nil {
		return nil, err
	}
	cache.Lock()
	defer cache.Unlock()
	if cache.conditions == nil || len(cache.conditions) >= maxCached {
		cache.conditions = make(map[cacheKey]*Condition)
	}
	cache.conditions[key] = c
	return c, nil
}

// environments holds the CEL environment of each kind, built when it is first needed.
var environments = map[Kind]func() (*cel.Env, error){
	Present: sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(Present) }),
	Absent:  sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(Absent) }),
	Refuse:  sync.OnceValues(func() (*cel.Env, error) { return newEnvironment(Refuse) }),
}

func environment(kind Kind) (*cel.Env, error) {
	build, ok := environments[kind]
	if !ok {
		return nil, fmt.Errorf("no such kind of condition: %q; use present, absent or refuse", string(kind))
	}
	return build()
}

func newEnvironment(kind Kind) (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.EnableMacroCallTracking(),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ParserErrorRecoveryLimit(10),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
		cel.Function("number", cel.Overload("number_string", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(number))),
		cel.Function("string", cel.Overload("mcpx_number_to_string", []*cel.Type{exactType}, cel.StringType, cel.UnaryBinding(
			func(n ref.Val) ref.Val { return n.ConvertToType(types.StringType) }))),
	}
	for _, name := range variables[kind] {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("CEL environment for %s conditions: %w", kind, err)
	}
	return env, nil
}

func describeType(t *cel.Type) string {
	switch name := cel.FormatCELType(t); name {
	case "int", "uint", "double":
		return "a number"
	case "string":
		return "a text"
	case "null":
		return "null"
	default:
		return "of type " + name
	}
}
