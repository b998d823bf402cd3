package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/task"
)

// argumentSchemas has the JSON Schemas of the argument types whose Go type does not
// determine the schema.
var argumentSchemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[integer]():         {Type: "integer"},
	reflect.TypeFor[json.RawMessage](): {Type: "object"},
	reflect.TypeFor[task.Slugs](): {OneOf: []*jsonschema.Schema{{Type: "string"},
		{Type: "array", Items: &jsonschema.Schema{Type: "string"}, MinItems: new(1), MaxItems: new(10)}}},
	reflect.TypeFor[map[string]json.RawMessage](): newSchema(reflect.TypeFor[cardUpdates](), nil),
}

// argumentSchema returns the JSON Schema of the struct of a tool's arguments. A field
// without omitempty is required. The tag jsonschema of a field is its description, and its
// tag schema lists constraints, see constrain.
func argumentSchema(t reflect.Type) *jsonschema.Schema { return newSchema(t, argumentSchemas) }

func newSchema(t reflect.Type, types map[reflect.Type]*jsonschema.Schema) *jsonschema.Schema {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		panic(err) // unreachable: a test makes the schema of every tool
	}
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{} // some clients require it
	}
	refine(s, t)
	return s
}

// refine adds the constraints of the tags in t to s. It removes null from the types: Go
// accepts null for pointers and slices, but the schemas of the tools do not offer it.
func refine(s *jsonschema.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n := len(s.Types); n > 0 {
		s.Type, s.Types = s.Types[n-1], nil
	}
	switch {
	case s.Items != nil && t.Kind() == reflect.Slice:
		refine(s.Items, t.Elem())
	case s.Properties != nil && t.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if p := s.Properties[argumentName(f)]; p != nil && !f.Anonymous {
				refine(p, f.Type)
				if f.Tag.Get("schema") == "hidden" { // accepted, but not offered
					delete(s.Properties, argumentName(f))
					s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(n string) bool { return n == argumentName(f) })
					continue
				}
				for pair := range strings.SplitSeq(f.Tag.Get("schema"), ",") {
					constrain(p, pair)
				}
			}
		}
	}
}

// constrain applies one constraint of a schema tag: enum=a|b, default=V, null, pattern=RE,
// items.CONSTRAINT for the items of an array, and min=N or max=N. The last two bound a
// number, the length of a string or array, or the number of properties of an object.
func constrain(s *jsonschema.Schema, constraint string) {
	if of, ok := strings.CutPrefix(constraint, "items."); ok {
		constrain(s.Items, of)
		return
	}
	key, value, _ := strings.Cut(constraint, "=")
	n, _ := strconv.Atoi(value)
	switch key {
	case "enum":
		for v := range strings.SplitSeq(value, "|") {
			s.Enum = append(s.Enum, v)
		}
	case "default":
		if s.Default = json.RawMessage(value); s.Type == "string" {
			s.Default = json.RawMessage(strconv.Quote(value))
		}
	case "null":
		s.Types, s.Type = []string{s.Type, "null"}, ""
	case "pattern":
		s.Pattern = value
	case "min", "max":
		if length := map[string]**int{
			"min string": &s.MinLength, "max string": &s.MaxLength, "min array": &s.MinItems, "max array": &s.MaxItems, "min object": &s.MinProperties,
		}[key+" "+s.Type]; length != nil {
			*length = &n
		} else if key == "min" {
			s.Minimum = new(float64(n))
		} else {
			s.Maximum = new(float64(n))
		}
	}
}

// argumentName returns the JSON name of a struct field.
func argumentName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// answerSchema returns the JSON Schema of an answer that is one of the struct types. It
// describes nested values only by their type.
func answerSchema(answers []reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, t := range answers {
		one := &jsonschema.Schema{}
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "" || name == "-" {
				continue
			}
			if s.Properties[name] == nil {
				s.Properties[name] = shallow(f.Type)
				s.PropertyOrder = append(s.PropertyOrder, name)
			}
			if options == "" {
				one.Required = append(one.Required, name)
			}
		}
		s.AnyOf = append(s.AnyOf, one)
	}
	return s
}

// listedFields bounds the fields of listedSchema.
const listedFields = 2

// listedSchema returns the schema of answers for the list of tools. To save tokens it has
// only the first fields that every successful answer has. OpenAPI has all of answerSchema.
func listedSchema(answers []reflect.Type) *jsonschema.Schema {
	all := answerSchema(answers[:1])
	names := all.AnyOf[0].Required
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, PropertyOrder: names[:min(len(names), listedFields)]}
	for _, name := range s.PropertyOrder {
		s.Properties[name] = &jsonschema.Schema{Type: all.Properties[name].Type, Types: all.Properties[name].Types}
	}
	return s
}

// shallow returns a schema with only the type of t in JSON and the types of its items.
func shallow(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string"}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return &jsonschema.Schema{}
	case t.Kind() == reflect.Pointer:
		s := shallow(t.Elem())
		return &jsonschema.Schema{Types: []string{s.Type, "null"}, Items: s.Items}
	case t.Kind() == reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: shallow(t.Elem())}
	}
	return &jsonschema.Schema{Type: typeName(t)}
}

// schemaJSON returns the JSON of a schema.
func schemaJSON(s *jsonschema.Schema) json.RawMessage {
	text, err := marshal(s)
	if err != nil {
		panic(fmt.Sprintf("a tool's schema: %v", err)) // unreachable: a test makes the schema of every tool
	}
	for escaped, r := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
		text = bytes.ReplaceAll(text, []byte(escaped), []byte(r))
	}
	return text
}
