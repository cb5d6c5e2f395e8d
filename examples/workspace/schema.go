package workspace

import (
	"encoding/json"
	"maps"
	"math"
)

// object is a JSON object under construction.
type object map[string]any

func (f field) schema() object {
	s := object{"description": f.doc}
	if f.integer {
		s["type"] = "integer"
		s["minimum"] = 1
		s["maximum"] = int64(math.MaxInt64)
		return s
	}
	s["type"] = "string"
	s["maxLength"] = maxText
	if f.nonEmpty {
		s["minLength"] = 1
	}
	return s
}

func (in input) schema() object {
	properties := object{}
	required := []string{}
	for _, f := range in.fields {
		properties[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	switch len(in.oneOf) {
	case 0:
	case 1:
		required = append(required, in.oneOf...)
	default:
		alternatives := make([]object, len(in.oneOf))
		for i, name := range in.oneOf {
			alternatives[i] = object{"required": []string{name}}
		}
		s["oneOf"] = alternatives
	}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// resourceSchema describes a resource of the application, with extra members.
func (a App) resourceSchema(extra object) object {
	text := object{"type": "string"}
	properties := object{
		"id":         object{"type": "string", "pattern": "^" + a.prefix},
		"name":       text,
		"owner":      text,
		"created_at": object{"type": "string", "format": "date-time"},
	}
	required := []string{"id", "name", "owner", "created_at"}
	for _, f := range a.fields {
		properties[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	if a.idAlias != "" {
		properties[a.idAlias] = object{"type": "string", "description": "Equal to id."}
		required = append(required, a.idAlias)
	}
	for name := range extra {
		required = append(required, name)
	}
	maps.Copy(properties, extra)
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// answerSchema describes what a tool answers: the success, or an error. Some
// clients hold error results to the output schema too, so it must admit them.
func answerSchema(success object) object {
	properties := maps.Clone(success["properties"].(object))
	properties["error"] = object{
		"type": "object",
		"properties": object{
			"code":    object{"enum": []string{codeNotFound, codeInvalid, codeRejected}},
			"message": object{"type": "string"},
		},
		"required":             []string{"code", "message"},
		"additionalProperties": false,
		"description":          "Present in error results only, and then alone.",
	}
	return object{
		"type": "object", "properties": properties, "additionalProperties": false,
		"oneOf": []object{{"required": success["required"]}, {"required": []string{"error"}, "maxProperties": 1}},
	}
}

func (a App) createSchema() object { return answerSchema(a.resourceSchema(nil)) }

func (a App) getSchema() object {
	return answerSchema(a.resourceSchema(object{"count": object{
		"type": "integer", "minimum": 1,
		"description": "How many resources match. More than one: there are duplicates, and this is the newest.",
	}}))
}

func (a App) deleteSchema() object {
	return answerSchema(object{
		"properties": object{
			"id":      object{"type": "string"},
			"deleted": object{"const": true},
		},
		"required": []string{"id", "deleted"},
	})
}

func (a App) listSchema() object {
	return answerSchema(object{
		"properties": object{
			"items": object{"type": "array", "items": a.resourceSchema(nil), "description": "Oldest first."},
			"count": object{"type": "integer", "minimum": 0},
		},
		"required": []string{"items", "count"},
	})
}

// encode renders a schema. Schemas are built from constants, so an error is a
// mistake in this package.
func (o object) encode() json.RawMessage {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return raw
}
