package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
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
// refers to.
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

// references appends the names of the definitions that v refers to.
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
	return names
}

// media is the content of a media type. Schemas, and values that can be references, are kept as
// text; openAPI.get follows references.
type media struct{ Schema json.RawMessage }

// maxFollowed bounds the bytes of the objects and arrays that references pass, maxMembers
// the number of their members.
const (
	maxFollowed = 16 * maxOpenAPI
	maxMembers  = 500_000
)

// pointer returns the target of a reference. It caches the members of the objects that the
// reference passes, because most references pass the same ones.
func (o *openAPI) pointer(ref string) (json.RawMessage, error) {
	path, local := strings.CutPrefix(ref, "#")
	switch {
	case !local:
		return nil, fmt.Errorf("reference to %.200q leads out of the document", ref)
	case strings.Count(path, "/") > maxNesting:
		return nil, fmt.Errorf("reference to %.200q leads deeper than %d levels", ref, maxNesting)
	}
	value, way := json.RawMessage(o.text), ""
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		at, known := o.members[way]
		if !known {
			if o.followed += len(value); o.followed > maxFollowed {
				return nil, errors.New("following its references takes too long")
			}
			at = map[string]json.RawMessage{}
			for key, inner := range members(value) {
				if at[key] = inner; len(at)+o.kept > maxMembers {
					return nil, fmt.Errorf("references lead through more than %d members", maxMembers)
				}
			}
			o.members[way], o.kept = at, o.kept+len(at)
		}
		way += "/" + step
		if s, err := url.PathUnescape(step); err == nil {
			step = s
		}
		if value = present(at[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]); value == nil {
			return nil, fmt.Errorf("reference to %.200q, which the document does not hold", ref)
		}
	}
	return value, nil
}

// follow returns the target of v if v is a reference, and v otherwise.
func (o *openAPI) follow(v json.RawMessage) (json.RawMessage, error) {
	for range 32 { // references may form a cycle
		ref := refOf(v)
		if ref == "" {
			break
		}
		var err error
		if v, err = o.pointer(ref); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// refOf returns the text of the reference v, "" if v is none.
func refOf(v json.RawMessage) (ref string) {
	_ = json.Unmarshal(member(v, "$ref"), &ref) // an error leaves ""
	return ref
}

// get follows references from v and decodes the target into part.
func (o *openAPI) get(v json.RawMessage, part any) error {
	v, err := o.follow(v)
	if err != nil || v == nil {
		return err
	}
	return json.Unmarshal(v, part)
}
