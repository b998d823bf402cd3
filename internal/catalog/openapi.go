package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// maxOpenAPI bounds a description in bytes: the largest public one has about 12 MiB.
const maxOpenAPI = 16 << 20

// maxYAML bounds one in YAML: reading it takes some two hundred times its size.
const maxYAML = 4 << 20

// looksLikeOpenAPI reports whether YAML text has the key "openapi" at its top.
func looksLikeOpenAPI(text []byte) bool {
	for line := range bytes.Lines(text) {
		if key, _, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.Trim(key, `"'`)) == "openapi" {
			return true
		}
	}
	return false
}

// readOpenAPI makes a tool of each operation. Its name is the operationId, else
// "METHOD /path"; its parameters and the properties of its body are one input
// schema, the JSON of its first 2xx response is the output schema.
func readOpenAPI(text []byte, server string) (*Batch, error) {
	if len(text) > maxOpenAPI {
		return nil, fmt.Errorf("the OpenAPI description is larger than %d MiB", maxOpenAPI>>20)
	}
	doc, err := decodeOpenAPI(text)
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI description: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	o := openAPI{doc: doc}
	var head struct {
		OpenAPI    string
		Info       struct{ Title string }
		Paths      map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := o.get(doc, &head); err != nil {
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("%s is a %s", strings.ToLower(bad.Field), bad.Value)
		}
		return nil, fmt.Errorf("reading the OpenAPI description: %w", err)
	}
	if !strings.HasPrefix(head.OpenAPI, "3.") {
		return nil, fmt.Errorf("OpenAPI version %q, want 3.0 or 3.1", head.OpenAPI)
	}
	if server == "" {
		server = slug(head.Info.Title)
	}
	if len(head.Paths) == 0 {
		return nil, errors.New("the OpenAPI description has no paths")
	}
	o.legacy, o.schemas = strings.HasPrefix(head.OpenAPI, "3.0"), head.Components.Schemas
	var tools []Tool
	for _, path := range slices.Sorted(maps.Keys(head.Paths)) {
		var item map[string]any
		if err := o.get(head.Paths[path], &item); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		shared, _ := item["parameters"].([]any)
		for _, method := range methods {
			v := item[strings.ToLower(method)]
			if v == nil {
				continue
			}
			t, err := o.tool(method, path, shared, v)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			t.Server = server
			tools = append(tools, t)
		}
	}
	return complete(context.Background(), tools, server)
}

// methods are the keys of operations, sorted.
var methods = []string{
	http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions,
	http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodTrace,
}

// slug derives a server's name from a title.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(clean(title, MaxName)), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f)
	})
	return strings.Join(words, "-")
}

// openAPI turns operations of one document into tools.
type openAPI struct {
	doc         map[string]any
	legacy      bool           // 3.0, whose schemas differ from JSON Schema
	schemas     map[string]any // components by name
	bodies      map[string]*bodySchema
	schemasMade schemaSet
}

// bodySchema is the schema of a request's body.
type bodySchema struct {
	schema
	required bool
	combined bool
	plain    any
	plainOf  map[string]any // by property, if the schema is an object's
}

func (o *openAPI) tool(method, path string, shared []any, v any) (Tool, error) {
	var op operation
	if err := o.get(v, &op); err != nil {
		return Tool{}, err
	}
	t := Tool{Name: op.ID, Title: op.Summary, Description: strings.TrimSpace(op.Summary + "\n" + op.Description)}
	if t.Name == "" {
		t.Name = method + " " + path
	}
	if t.Description == "" {
		t.Description = method + " " + path
	}
	if op.Deprecated {
		t.Description += "\nDeprecated."
	}
	var err error
	if o.schemasMade.made > maxSchemas {
		t.SchemaError = fmt.Sprintf("the schemas of the tools before it take more than %d MiB, the limit of one import", maxSchemas>>20)
	} else {
		if t.Input, err = o.input(append(shared[:len(shared):len(shared)], op.Parameters...), op.RequestBody); err != nil {
			return t, err
		}
		if t.Output, err = o.output(op.Responses); err != nil {
			return t, err
		}
		t.Input, t.Output = o.schemasMade.shared(t.Input), o.schemasMade.shared(t.Output)
	}
	reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
	t.Annotations, err = json.Marshal(map[string]bool{
		"readOnlyHint": reads, "destructiveHint": method == http.MethodDelete,
		"idempotentHint": reads || method == http.MethodPut || method == http.MethodDelete,
	})
	return t, err
}

// input joins path, query, header and cookie parameters with the body. An
// object's properties join the parameters unless a name is taken; any other body
// is the property "body". The last of several parameters with one name wins.
func (o *openAPI) input(parameters []any, body any) (json.RawMessage, error) {
	properties, required := map[string]any{}, map[string]bool{}
	for _, v := range parameters {
		var p parameter
		if err := o.get(v, &p); err != nil {
			return nil, err
		}
		if p.In == "header" && slices.Contains([]string{"accept", "content-type", "authorization"}, strings.ToLower(p.Name)) {
			continue
		}
		schema := p.Schema
		if schema == nil {
			schema = contentSchema(p.Content)
		}
		s, err := o.plain(schema)
		if err != nil {
			return nil, err
		}
		if object, ok := s.(map[string]any); ok && p.Description != "" && object["$ref"] == nil {
			object["description"] = p.Description
		}
		properties[p.Name] = s
		required[p.Name] = p.Required || p.In == "path"
	}
	root := map[string]any{"type": "object"}
	if body != nil {
		if err := o.body(body, root, properties, required); err != nil {
			return nil, err
		}
	}
	if len(properties) > 0 {
		root["properties"] = properties
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(required)) {
		if required[name] {
			names = append(names, name)
		}
	}
	if names != nil {
		root["required"] = names
	}
	return o.close(root)
}

// bodyOf returns the schema of a request's body. Those that operations refer to are
// made once.
func (o *openAPI) bodyOf(at any) (*bodySchema, error) {
	m, _ := at.(map[string]any)
	ref, _ := m["$ref"].(string)
	if b := o.bodies[ref]; b != nil && ref != "" {
		return b, nil
	}
	var body requestBody
	if err := o.get(at, &body); err != nil {
		return nil, err
	}
	content, _ := contentSchema(body.Content).(map[string]any)
	if ref == "" {
		if ref, _ = content["$ref"].(string); ref != "" {
			ref = fmt.Sprint(body.Required, " ", ref)
		}
		if b := o.bodies[ref]; b != nil && ref != "" {
			return b, nil
		}
	}
	b := &bodySchema{required: body.Required}
	var err error
	if b.plain, err = o.plain(contentSchema(body.Content)); err != nil {
		return nil, err
	}
	if content != nil {
		if err := o.get(content, &b.schema); err != nil {
			return nil, err
		}
	}
	b.combined = len(b.AllOf)+len(b.AnyOf)+len(b.OneOf) > 0
	b.plainOf = make(map[string]any, len(b.Properties))
	for name, property := range b.Properties {
		if b.plainOf[name], err = o.plain(property); err != nil {
			return nil, err
		}
	}
	if ref != "" {
		if o.bodies == nil {
			o.bodies = map[string]*bodySchema{}
		}
		o.bodies[ref] = b
	}
	return b, nil
}

// body adds the schema of a request's body.
func (o *openAPI) body(at any, root, properties map[string]any, required map[string]bool) error {
	b, err := o.bodyOf(at)
	if err != nil {
		return err
	}
	list, _ := b.Type.([]any)
	object := b.Type == nil || b.Type == "object" || len(list) == 1 && list[0] == "object"
	free := func() bool {
		for name := range b.Properties {
			if _, taken := properties[name]; taken {
				return false
			}
		}
		return true
	}()
	switch {
	case object && free && b.combined:
		branches := []any{b.plain}
		if !b.required { // a property required by one branch alone is optional
			branches = []any{map[string]any{"anyOf": []any{b.plain, map[string]any{}}}}
		}
		root["allOf"] = branches
	case object && free && len(b.Properties) > 0:
		maps.Copy(properties, b.plainOf)
		if b.required {
			for _, name := range b.Required {
				if _, ok := b.Properties[name]; ok {
					required[name] = true
				}
			}
		}
	default:
		name := "body"
		for properties[name] != nil {
			name += "_"
		}
		properties[name], required[name] = b.plain, b.required
	}
	return nil
}

// output is the JSON of the first successful response that has any.
func (o *openAPI) output(responses map[string]any) (json.RawMessage, error) {
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		var r response
		if err := o.get(responses[status], &r); err != nil {
			return nil, err
		}
		content, ok := contentSchema(r.Content).(map[string]any)
		if !ok {
			continue
		}
		s, err := o.plain(content)
		if err != nil {
			return nil, err
		}
		var v schema
		if err := o.get(content, &v); err != nil {
			return nil, err
		}
		object := s.(map[string]any)
		if !v.permits("object") {
			// Tools return objects: wrap a list or a plain value in one.
			object = map[string]any{"type": "object", "properties": map[string]any{"result": s}, "required": []string{"result"}}
		}
		return o.close(maps.Clone(object))
	}
	return nil, nil
}

// contentSchema returns the schema of JSON if there is one, else of a form, else
// of the first media type.
func contentSchema(content map[string]media) any {
	names := slices.Sorted(maps.Keys(content))
	rank := func(name string) int {
		base, _, _ := strings.Cut(strings.ToLower(name), ";")
		switch {
		case base == "application/json":
			return 0
		case strings.HasSuffix(base, "+json"):
			return 1
		case base == "application/x-www-form-urlencoded" || base == "multipart/form-data":
			return 2
		}
		return 3
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		if s := content[name].Schema; s != nil {
			return s
		}
	}
	return nil
}
