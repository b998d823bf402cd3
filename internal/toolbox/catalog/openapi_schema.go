package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Bounds on the definitions in one schema. In large descriptions schemas refer to each
// other, but parameters are read only to a depth of three levels.
const (
	maxDefinitions    = 64 << 10 // bytes
	definitionsDepth  = 4        // references followed from the root
	componentsPrefix  = "#/components/schemas/"
	definitionsPrefix = "#/$defs/"
)

// fragment is a schema in JSON Schema 2020-12, with the names of the definitions that it
// refers to, sorted.
type fragment struct {
	text json.RawMessage
	refs []string
}

func newFragment(v any) (fragment, error) {
	text, err := json.Marshal(v)
	return fragment{text, references(v, nil)}, err
}

// errLarge reports a schema that is too large.
var errLarge = fmt.Errorf("a schema is larger than %d bytes", MaxSchema)

// decode returns a schema as JSON Schema 2020-12; a missing schema is {}.
func (o *openAPI) decode(schema json.RawMessage) (any, error) {
	if schema = present(schema); schema == nil {
		return map[string]any{}, nil
	}
	if len(schema) > MaxSchema {
		return nil, errLarge
	}
	var v any
	err := json.Unmarshal(schema, &v)
	return o.translate(v), err
}

// resolve returns a decoded schema, and its target if it is a reference.
func (o *openAPI) resolve(schema json.RawMessage) (decoded any, target map[string]any, err error) {
	if decoded, err = o.decode(schema); err != nil {
		return nil, nil, err
	}
	last := decoded
	if refOf(schema) != "" {
		if schema, err = o.follow(schema); err == nil {
			last, err = o.decode(schema)
		}
	}
	target, _ = last.(map[string]any)
	return decoded, target, err
}

// typesIn returns the types that a schema names, nil if it allows any.
func typesIn(schema map[string]any) []any {
	if list, ok := schema["type"].([]any); ok || schema["type"] == nil {
		return list
	}
	return []any{schema["type"]}
}

// component returns a schema of the document's components, {} if it is missing or too large.
func (o *openAPI) component(name string) fragment {
	f, known := o.components[name]
	if !known {
		f = fragment{text: json.RawMessage("{}")}
		if schema, err := o.pointer(componentsPrefix + name); err == nil {
			if v, err := o.decode(schema); err == nil {
				if made, err := newFragment(v); err == nil && len(made.text) <= maxDefinitions {
					f = made
				}
			}
		}
		o.components[name] = f
	}
	return f
}

// translate rewrites a schema in place: it redirects references to components to $defs,
// removes keywords that only document, and translates "nullable" and boolean exclusive
// bounds of OpenAPI 3.0 to JSON Schema.
func (o *openAPI) translate(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = o.translate(v[i])
		}
	case map[string]any:
		for _, key := range []string{"example", "examples", "xml", "externalDocs", "discriminator"} {
			delete(v, key)
		}
		if ref, ok := v["$ref"].(string); ok {
			if name, ok := strings.CutPrefix(ref, componentsPrefix); ok {
				v["$ref"] = definitionsPrefix + name
			}
		}
		if o.legacy {
			legacyKeywords(v)
		}
		for key, inner := range v {
			named, _ := inner.(map[string]any)
			switch key {
			case "enum", "default", "const": // values, not schemas
			case "properties", "patternProperties", "dependentSchemas", "$defs": // their keys are names, not keywords
				for name, schema := range named {
					named[name] = o.translate(schema)
				}
			default:
				v[key] = o.translate(inner)
			}
		}
	}
	return v
}

func legacyKeywords(v map[string]any) {
	if nullable, _ := v["nullable"].(bool); nullable {
		if t, ok := v["type"].(string); ok {
			v["type"] = []any{t, "null"}
		}
		if values, ok := v["enum"].([]any); ok && !slices.Contains(values, nil) {
			v["enum"] = append(values, nil)
		}
	}
	delete(v, "nullable")
	for bound, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		if strict, ok := v[exclusive].(bool); ok {
			delete(v, exclusive)
			if limit, ok := v[bound]; ok && strict {
				v[exclusive] = limit
				delete(v, bound)
			}
		}
	}
}

// close adds the components that a schema refers to as $defs and encodes the schema. A
// component beyond the bounds is {}, which allows any value, so that every reference
// resolves.
func (o *openAPI) close(root map[string]any, refs []string) (json.RawMessage, error) {
	defs := map[string]json.RawMessage{}
	size := 0
	for level, depth := refs, 0; len(level) > 0; depth++ {
		slices.Sort(level)
		var next []string
		for _, name := range slices.Compact(level) {
			if _, done := defs[name]; done {
				continue
			}
			defs[name] = json.RawMessage("{}")
			if depth >= definitionsDepth {
				continue
			}
			c := o.component(name)
			if size+len(c.text) > maxDefinitions {
				continue
			}
			size += len(c.text)
			defs[name] = c.text
			next = append(next, c.refs...)
		}
		level = next
	}
	if len(defs) > 0 {
		root["$defs"] = defs
	}
	return json.Marshal(root)
}

// references appends the names of the definitions that v refers to, sorted.
func references(v any, names []string) []string {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			names = references(inner, names)
		}
	case map[string]any:
		for key, inner := range v {
			if ref, ok := inner.(string); ok && key == "$ref" {
				if rest, ok := strings.CutPrefix(ref, definitionsPrefix); ok {
					name, _, _ := strings.Cut(rest, "/")
					names = append(names, name)
				}
				continue
			}
			names = references(inner, names)
		}
	}
	slices.Sort(names)
	return names
}
