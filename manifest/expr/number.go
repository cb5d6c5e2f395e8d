package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/mcpx-go/mcpx/canon"
)

// exact is a number that neither CEL's integers nor its doubles hold exactly: its canonical text.
type exact string

// exactType is the CEL type of exact numbers.
var exactType = types.NewObjectType("mcpx.Number", traits.ComparerType)

// numberValue maps the text of a JSON number to a CEL value, so that two values are equal exactly if the numbers are.
func numberValue(text string) (ref.Val, error) {
	canonical, err := canon.JSON([]byte(text))
	if err != nil {
		return nil, err
	}
	text = string(canonical)
	if text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return nil, errors.New("no JSON number")
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return types.Int(i), nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return types.Uint(u), nil
	}
	if d, err := strconv.ParseFloat(text, 64); err == nil && faithful(text, d) && !borders(d) {
		return types.Double(d), nil
	}
	return exact(text), nil
}

// faithful tells whether d is the double whose shortest text has the value of a canonical text.
func faithful(canonical string, d float64) bool {
	shortest, err := canon.JSON(strconv.AppendFloat(nil, d, 'g', -1, 64))
	return err == nil && string(shortest) == canonical
}

// borders tells of the doubles that CEL, which compares an integer with a double as doubles, takes for the greatest
// or smallest integers.
func borders(d float64) bool { return d == 1<<64 || d == -1<<63 }

// comparableLiteral tells whether a literal double in a condition is compared exactly with every number of the data.
func comparableLiteral(d float64) bool {
	const exactIntegers = 1 << 53
	magnitude := max(d, -d)
	return magnitude < exactIntegers || magnitude > 1<<64
}

// value turns decoded JSON (see canon.Decode) into what CEL's default adapter understands, numbers by numberValue.
// Containers are changed in place.
func value(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return numberValue(v.String())
	case map[string]any:
		for name, member := range v {
			if v[name], err = value(member); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, item := range v {
			if v[i], err = value(item); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// ConvertToNative implements ref.Val.
func (n exact) ConvertToNative(typeDesc reflect.Type) (any, error) {
	if typeDesc.Kind() == reflect.String {
		return string(n), nil
	}
	return nil, fmt.Errorf("the number %s has no exact %v", string(n), typeDesc)
}

// ConvertToType implements ref.Val: string(n) is the canonical text; int, uint and double would not be exact.
func (n exact) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.StringType:
		return types.String(n)
	case types.TypeType:
		return exactType
	}
	return types.MaybeNoSuchOverloadErr(n)
}

// Equal implements ref.Val. Numbers of the other types are never equal to an exact one: see numberValue.
func (n exact) Equal(other ref.Val) ref.Val {
	o, ok := other.(exact)
	return types.Bool(ok && o == n)
}

// Type implements ref.Val.
func (n exact) Type() ref.Type { return exactType }

// Value implements ref.Val.
func (n exact) Value() any { return string(n) }

// Compare implements traits.Comparer.
func (n exact) Compare(other ref.Val) ref.Val {
	mine, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return types.NewErr("the number %s cannot be compared", string(n))
	}
	theirs := new(big.Rat)
	switch o := other.(type) {
	case exact:
		_, ok = theirs.SetString(string(o))
	case types.Int:
		theirs.SetInt64(int64(o))
	case types.Uint:
		theirs.SetUint64(uint64(o))
	case types.Double:
		// The decimal that the double stands for, not its binary value.
		_, ok = theirs.SetString(strconv.FormatFloat(float64(o), 'g', -1, 64))
	default:
		ok = false
	}
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Int(mine.Cmp(theirs))
}

// number implements the CEL function number(text).
func number(arg ref.Val) ref.Val {
	text, ok := arg.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	v, err := numberValue(string(text))
	if err != nil {
		return types.NewErr("number(…): the text is no JSON number")
	}
	return v
}
