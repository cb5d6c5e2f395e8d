package canon

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// appendTyped writes a Go value of any other type by way of encoding/json.
func appendTyped(dst []byte, v any, at *place) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, at.fail(-1, ErrUnsupported, fmt.Sprintf("encoding/json cannot write a %T: %v", v, err))
	}
	if err := inspect(reflect.ValueOf(v), at); err != nil {
		return nil, err
	}
	return appendRaw(dst, buf.Bytes(), at)
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// inspect finds what encoding/json writes without complaint and the canonical form refuses: strings that are
// not UTF-8, and floats that may have been rounded. The value must be one that encoding/json has written, so
// it is free of cycles.
func inspect(v reflect.Value, at *place) error {
	if !v.IsValid() {
		return nil
	}
	if v.Type().Implements(jsonMarshaler) || (v.CanAddr() && v.Addr().Type().Implements(jsonMarshaler)) {
		return nil // it wrote JSON itself, which is read strictly
	}
	if v.CanAddr() && v.Addr().Type().Implements(textMarshaler) {
		v = v.Addr()
	}
	if v.Type().Implements(textMarshaler) {
		return inspectText(v, at)
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return at.fail(-1, ErrInvalidText, "a string that is not UTF-8; encode bytes as base64")
		}
	case reflect.Float32, reflect.Float64:
		if reason := unsafeFloat(v.Float(), v.Type().Bits()); reason != "" {
			return at.fail(-1, ErrNumber, reason)
		}
	case reflect.Interface, reflect.Pointer:
		return inspect(v.Elem(), at)
	case reflect.Struct:
		return inspectStruct(v, at)
	case reflect.Map:
		return inspectMap(v, at)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			here := at.element(i)
			if err := inspect(v.Index(i), &here); err != nil {
				return err
			}
		}
	}
	return nil
}

func inspectText(v reflect.Value, at *place) error {
	if text, ok := marshalText(v); ok && !utf8.ValidString(text) {
		return at.fail(-1, ErrInvalidText, fmt.Sprintf("a %s writes itself as text that is not UTF-8", v.Type()))
	}
	return nil
}

// marshalText asks a value that implements encoding.TextMarshaler for its text, as encoding/json did before.
func marshalText(v reflect.Value) (string, bool) {
	if !v.CanInterface() || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", false
	}
	text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	return string(text), err == nil
}

func inspectStruct(v reflect.Value, at *place) error {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if tag == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		if field.Anonymous && name == "" {
			if value.Kind() == reflect.Pointer {
				value = value.Elem()
			}
			if value.Kind() == reflect.Struct { // its fields are the outer struct's
				if err := inspectStruct(value, at); err != nil {
					return err
				}
				continue
			}
		}
		if name == "" {
			name = field.Name
		}
		here := at.member(name)
		if err := inspect(value, &here); err != nil {
			return err
		}
	}
	return nil
}

func inspectMap(v reflect.Value, at *place) error {
	names := make(map[string]reflect.Value, v.Len())
	for _, key := range v.MapKeys() {
		names[keyName(key)] = v.MapIndex(key)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		here := at.member(name)
		if !utf8.ValidString(name) {
			return here.fail(-1, ErrInvalidText, "a member name that is not UTF-8; encode bytes as base64")
		}
		if err := inspect(names[name], &here); err != nil {
			return err
		}
	}
	return nil
}

// keyName returns the member name that encoding/json gives a map key. Two keys with the same name are found
// later, as a duplicate in the text.
func keyName(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return key.String()
	}
	if key.Type().Implements(textMarshaler) {
		text, _ := marshalText(key)
		return text
	}
	return fmt.Sprint(key)
}
