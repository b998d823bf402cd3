package catalog

import (
	"encoding/json"
	"slices"
	"strings"
)

// Bounds on the definitions in one schema: in large descriptions schemas refer to each
// other, and only parameters up to three levels deep are read.
const (
	maxDefinitions    = 64 << 10 // bytes
	definitionsDepth  = 4        // references followed from the root
	componentsPrefix  = "#/components/schemas/"
	definitionsPrefix = "#/$defs/"
)

// plain returns a copy of a schema as JSON Schema 2020-12; a missing schema is {}.
func (o *openAPI) plain(schema any) (any, error) {
	if schema == nil {
		return map[string]any{}, nil
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err // unreachable: it was just written
	}
	return o.translate(v), nil
}

// translate rewrites a schema in place: it points references to components to $defs,
// removes keywords that only document, and translates nullable and boolean exclusive
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
			case "properties", "patternProperties", "dependentSchemas", "$defs": // whose keys are names, not keywords
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

// close adds the components that a schema refers to as $defs and encodes it. Beyond
// the bounds a component is {}, which allows anything, so every reference resolves.
func (o *openAPI) close(root map[string]any) (json.RawMessage, error) {
	defs := map[string]any{}
	size := 0
	for level, depth := references(root, nil), 0; len(level) > 0; depth++ {
		var next []string
		for _, name := range level {
			if _, done := defs[name]; done {
				continue
			}
			defs[name] = map[string]any{}
			ref := o.schemas[name]
			if depth >= definitionsDepth || ref == nil {
				continue
			}
			s, err := o.plain(ref)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(s)
			if err != nil {
				return nil, err // unreachable: it is decoded JSON
			}
			if size+len(text) > maxDefinitions {
				continue
			}
			size += len(text)
			defs[name] = s
			next = references(s, next)
		}
		slices.Sort(next)
		level = slices.Compact(next)
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
