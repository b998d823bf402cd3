package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// maxOpenAPI bounds a description in bytes: the largest public one has about 12 MiB.
const maxOpenAPI = 32 << 20

// looksLikeOpenAPI reports whether YAML text has the key "openapi" at its top.
func looksLikeOpenAPI(text []byte) bool {
	for line := range bytes.Lines(text) {
		if key, _, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.Trim(key, `"'`)) == "openapi" {
			return true
		}
	}
	return false
}

// openAPIFault is what the parser has to say of a document. It tries JSON first and
// tells of both: of one that is YAML only the second matters.
func openAPIFault(err error) string {
	text := err.Error()
	for _, before := range []string{"yaml error: ", "while decoding JSON: ", "json: "} {
		if _, after, ok := strings.Cut(text, before); ok {
			text = after
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

// readOpenAPI makes a tool of each operation: named by its operationId, else
// "METHOD /path"; its parameters and the properties of its body are one input
// schema, the JSON of its first 2xx response is the output schema.
func readOpenAPI(text []byte, server string) (b *Batch, err error) {
	if len(text) > maxOpenAPI {
		return nil, fmt.Errorf("the OpenAPI description is larger than %d MiB", maxOpenAPI>>20)
	}
	// The parser walks references of a document nobody has checked.
	defer func() {
		if v := recover(); v != nil {
			b, err = nil, fmt.Errorf("reading the OpenAPI description: %v", v)
		}
	}()
	loader := openapi3.NewLoader()
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, at *url.URL) ([]byte, error) {
		return nil, fmt.Errorf("reference to %q leads out of the document", at)
	}
	doc, err := loader.LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI description: %s", openAPIFault(err))
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.") {
		return nil, fmt.Errorf("OpenAPI version %q, want 3.0 or 3.1", doc.OpenAPI)
	}
	if server == "" && doc.Info != nil {
		server = slug(doc.Info.Title)
	}
	if doc.Paths == nil || doc.Paths.Len() == 0 {
		return nil, errors.New("the OpenAPI description has no paths")
	}
	o := openAPI{legacy: !doc.IsOpenAPI31OrLater()}
	if doc.Components != nil {
		o.schemas = doc.Components.Schemas
	}
	var tools []Tool
	paths := doc.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		shared := paths[path]
		operations := shared.Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			t, err := o.tool(method, path, shared.Parameters, operations[method])
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			t.Server = server
			tools = append(tools, t)
		}
	}
	return complete(tools, server)
}

// slug makes a server's name of a title.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(clean(title, MaxName)), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f)
	})
	return strings.Join(words, "-")
}

// openAPI turns operations of one document into tools.
type openAPI struct {
	legacy  bool // 3.0, whose schemas are not quite JSON Schema
	schemas openapi3.Schemas
}

func (o *openAPI) tool(method, path string, shared openapi3.Parameters, op *openapi3.Operation) (Tool, error) {
	t := Tool{Name: op.OperationID, Title: op.Summary, Description: strings.TrimSpace(op.Summary + "\n" + op.Description)}
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
	if t.Input, err = o.input(shared, op); err != nil {
		return t, err
	}
	if t.Output, err = o.output(op); err != nil {
		return t, err
	}
	reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
	t.Annotations, err = json.Marshal(map[string]bool{
		"readOnlyHint": reads, "destructiveHint": method == http.MethodDelete,
		"idempotentHint": reads || method == http.MethodPut || method == http.MethodDelete,
	})
	return t, err
}

// input joins path, query, header and cookie parameters with the body. An
// object's properties stand beside the parameters unless a name is taken; any
// other body is the property "body".
func (o *openAPI) input(shared openapi3.Parameters, op *openapi3.Operation) (json.RawMessage, error) {
	properties, required := map[string]any{}, map[string]bool{}
	for _, ref := range slices.Concat(shared, op.Parameters) { // the operation's own come last and win
		p := ref.Value
		if p == nil || p.In == "header" && slices.Contains([]string{"accept", "content-type", "authorization"}, strings.ToLower(p.Name)) {
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
	if op.RequestBody != nil && op.RequestBody.Value != nil {
		if err := o.body(op.RequestBody.Value, root, properties, required); err != nil {
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

// body adds what a request carries.
func (o *openAPI) body(body *openapi3.RequestBody, root, properties map[string]any, required map[string]bool) error {
	schema := contentSchema(body.Content)
	s, err := o.plain(schema)
	if err != nil {
		return err
	}
	v := &openapi3.Schema{}
	if schema != nil && schema.Value != nil {
		v = schema.Value
	}
	object := v.Type == nil || v.Type.Is("object")
	free := func() bool {
		for name := range v.Properties {
			if _, taken := properties[name]; taken {
				return false
			}
		}
		return true
	}()
	combined := len(v.AllOf)+len(v.AnyOf)+len(v.OneOf) > 0
	switch {
	case object && free && combined:
		branches := []any{s}
		if !body.Required { // what one of two branches requires is not required
			branches = []any{map[string]any{"anyOf": []any{s, map[string]any{}}}}
		}
		root["allOf"] = branches
	case object && free && len(v.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(v.Properties)) {
			if properties[name], err = o.plain(v.Properties[name]); err != nil {
				return err
			}
			required[name] = body.Required && slices.Contains(v.Required, name)
		}
	default:
		name := "body"
		for properties[name] != nil {
			name += "_"
		}
		properties[name], required[name] = s, body.Required
	}
	return nil
}

// output is the JSON of the first response of success that has any.
func (o *openAPI) output(op *openapi3.Operation) (json.RawMessage, error) {
	responses := op.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		r := responses[status]
		if !strings.HasPrefix(status, "2") || r == nil || r.Value == nil {
			continue
		}
		schema := contentSchema(r.Value.Content)
		if schema == nil {
			continue
		}
		s, err := o.plain(schema)
		if err != nil {
			return nil, err
		}
		object, ok := s.(map[string]any)
		if !ok {
			continue
		}
		if v := schema.Value; v != nil && v.Type != nil && !v.Type.Permits("object") {
			// Tools answer with objects: a list or a plain value gets a name.
			object = map[string]any{"type": "object", "properties": map[string]any{"result": s}, "required": []string{"result"}}
		}
		return o.close(maps.Clone(object))
	}
	return nil, nil
}

// contentSchema is the schema of JSON where there is some, else of a form, else
// of the first media type.
func contentSchema(content openapi3.Content) *openapi3.SchemaRef {
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
		if m := content[name]; m != nil && m.Schema != nil {
			return m.Schema
		}
	}
	return nil
}
