package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// maxOpenAPI bounds a description in bytes. The largest public one has about 12 MiB.
const maxOpenAPI = 16 << 20

// looksLikeOpenAPI reports whether YAML text has the key "openapi" at its top.
func looksLikeOpenAPI(text []byte) bool {
	for line := range bytes.Lines(text) {
		if key, _, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.Trim(key, `"'`)) == "openapi" {
			return true
		}
	}
	return false
}

// readOpenAPI converts each operation to a tool. The name of the tool is the operationId or
// else "METHOD /path". The parameters and the properties of the body form the input schema,
// the JSON of the first 2xx response the output schema.
func readOpenAPI(ctx context.Context, text []byte, server string) (*Batch, error) {
	if len(text) > maxOpenAPI {
		return nil, fmt.Errorf("the OpenAPI description is larger than %d MiB", maxOpenAPI>>20)
	}
	o := openAPI{members: map[string]map[string]json.RawMessage{}, bodies: map[string]*bodySchema{}, components: map[string]fragment{}}
	var err error
	if o.text = text; text[0] != '{' {
		o.text, err = yamlToJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI description: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	var head struct {
		OpenAPI string
		Info    struct{ Title string }
		Paths   object
	}
	if err := json.Unmarshal(o.text, &head); err != nil {
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
	paths := member(o.text, "paths")
	if len(paths) == 0 || paths[skipSpace(paths, 1)] == '}' {
		return nil, errors.New("the OpenAPI description has no paths")
	}
	o.legacy = strings.HasPrefix(head.OpenAPI, "3.0")
	return complete(ctx, o.tools(paths, server), server)
}

// object decodes any JSON object and keeps none of its members.
type object struct{}

// tools yields the operations of all paths, sorted.
func (o *openAPI) tools(paths json.RawMessage, server string) iter.Seq2[Tool, error] {
	return func(yield func(Tool, error) bool) {
		type entry struct {
			path string
			item json.RawMessage
		}
		var entries []entry
		for path, item := range members(paths) {
			if len(entries) == MaxTools {
				yield(Tool{}, fmt.Errorf("more than %d paths", MaxTools))
				return
			}
			entries = append(entries, entry{path, item})
		}
		slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
		for i, e := range entries {
			if i+1 < len(entries) && entries[i+1].path == e.path {
				continue // the last item of a path replaces the others
			}
			for t, err := range o.operations(e.path, e.item) {
				t.Server = server
				if !yield(t, err) {
					return
				}
			}
		}
	}
}

// operations yields the operations of one path.
func (o *openAPI) operations(path string, item json.RawMessage) iter.Seq2[Tool, error] {
	return func(yield func(Tool, error) bool) {
		var methodsOf map[string]json.RawMessage
		if err := o.get(item, &methodsOf); err != nil {
			yield(Tool{}, fmt.Errorf("%s: %w", path, err))
			return
		}
		var shared []json.RawMessage
		_ = json.Unmarshal(methodsOf["parameters"], &shared) // ignore a value that is no list
		for _, method := range methods {
			v := present(methodsOf[strings.ToLower(method)])
			if v == nil {
				continue
			}
			t, err := o.tool(method, path, shared, v)
			if err != nil {
				err = fmt.Errorf("%s %s: %w", method, path, err)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// methods lists the HTTP methods of operations, sorted.
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

// openAPI converts the operations of one document to tools. It caches the schemas that
// operations share.
type openAPI struct {
	text       []byte                                // of the document, in JSON
	legacy     bool                                  // version 3.0, whose schemas differ from JSON Schema
	members    map[string]map[string]json.RawMessage // members of objects that references pass, by pointer
	followed   int                                   // bytes of these objects
	kept       int                                   // number of their members
	components map[string]fragment                   // by name
	bodies     map[string]*bodySchema                // by reference
	properties int                                   // number of properties of bodies
	made       int                                   // bytes of the schemas of tools
}

// maxKept bounds the properties of the cached request bodies.
const maxKept = 50_000

// bodySchema is the schema of a request's body.
type bodySchema struct {
	schema
	required bool
	combined bool
	plain    fragment
	plainOf  map[string]fragment // by property, if the schema is of an object
}

func (o *openAPI) tool(method, path string, shared []json.RawMessage, v json.RawMessage) (Tool, error) {
	var op operation
	if err := o.get(v, &op); err != nil {
		return Tool{}, err
	}
	t := Tool{Name: op.ID, Title: op.Summary, Description: strings.TrimSpace(op.Summary + "\n" + op.Description)}
	t.Name = cmp.Or(t.Name, method+" "+path)
	t.Description = cmp.Or(t.Description, method+" "+path)
	if op.Deprecated {
		t.Description += "\nDeprecated."
	}
	if err := o.schemas(&t, append(shared[:len(shared):len(shared)], op.Parameters...), op.RequestBody, op.Responses); err != nil {
		return t, err
	}
	var err error
	reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
	t.Annotations, err = json.Marshal(map[string]bool{
		"readOnlyHint": reads, "destructiveHint": method == http.MethodDelete,
		"idempotentHint": reads || method == http.MethodPut || method == http.MethodDelete,
	})
	return t, err
}

// schemas sets the schemas of a tool, or its SchemaError if they exceed a bound.
func (o *openAPI) schemas(t *Tool, parameters []json.RawMessage, body json.RawMessage, responses map[string]json.RawMessage) (err error) {
	if o.made > maxSchemas {
		t.SchemaError = fmt.Sprintf("the schemas of the tools before it take more than %d MiB, the limit of one import", maxSchemas>>20)
		return nil
	}
	if t.Input, err = o.input(parameters, body); err == nil {
		t.Output, err = o.output(responses)
	}
	if errors.Is(err, errLarge) {
		t.SchemaError, err = err.Error(), nil
	}
	o.made += len(t.Input) + len(t.Output)
	return err
}

// input combines the path, query, header and cookie parameters with the body in one schema.
// If the body is an object whose properties have other names than the parameters, they are
// properties of the schema; otherwise the body is the property "body". If several parameters
// have the same name, the last is used.
func (o *openAPI) input(parameters []json.RawMessage, body json.RawMessage) (json.RawMessage, error) {
	in := inputSchema{root: map[string]any{"type": "object"}, properties: map[string]fragment{}, required: map[string]bool{}}
	for _, v := range parameters {
		if err := o.parameter(&in, v); err != nil {
			return nil, err
		}
	}
	if body = present(body); body != nil {
		if err := o.body(&in, body); err != nil {
			return nil, err
		}
	}
	var refs []string
	if len(in.properties) > 0 {
		texts := make(map[string]json.RawMessage, len(in.properties))
		for name, f := range in.properties {
			texts[name] = f.text
			refs = append(refs, f.refs...)
		}
		in.root["properties"] = texts
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(in.required)) {
		if in.required[name] {
			names = append(names, name)
		}
	}
	if names != nil {
		in.root["required"] = names
	}
	return o.close(in.root, append(refs, in.refs...))
}

// inputSchema is an input schema under construction.
type inputSchema struct {
	root       map[string]any
	properties map[string]fragment
	required   map[string]bool
	refs       []string // of the root without its properties
}

func (o *openAPI) parameter(in *inputSchema, v json.RawMessage) error {
	var p parameter
	if err := o.get(v, &p); err != nil {
		return err
	}
	if p.In == "header" && slices.Contains([]string{"accept", "content-type", "authorization"}, strings.ToLower(p.Name)) {
		return nil
	}
	schema := present(p.Schema)
	if schema == nil {
		schema = contentSchema(p.Content)
	}
	s, err := o.decode(schema)
	if err != nil {
		return err
	}
	if object, ok := s.(map[string]any); ok && p.Description != "" && object["$ref"] == nil {
		object["description"] = p.Description
	}
	in.properties[p.Name], err = newFragment(s)
	in.required[p.Name] = p.Required || p.In == "path"
	return err
}

// bodyOf returns the schema of a request's body. It caches the schemas of referenced bodies.
func (o *openAPI) bodyOf(at json.RawMessage) (*bodySchema, error) {
	ref := refOf(at)
	if b := o.bodies[ref]; b != nil && ref != "" {
		return b, nil
	}
	var body requestBody
	if err := o.get(at, &body); err != nil {
		return nil, err
	}
	content := contentSchema(body.Content)
	if ref == "" {
		if ref = refOf(content); ref != "" {
			ref = fmt.Sprint(body.Required, " ", ref)
		}
		if b := o.bodies[ref]; b != nil && ref != "" {
			return b, nil
		}
	}
	b := &bodySchema{required: body.Required}
	var err error
	if b.plain, err = o.plain(content); err != nil {
		return nil, err
	}
	if content != nil && content[0] == '{' {
		if err := o.get(content, &b.schema); err != nil {
			return nil, err
		}
	}
	b.combined = len(b.AllOf)+len(b.AnyOf)+len(b.OneOf) > 0
	b.plainOf = make(map[string]fragment, len(b.Properties))
	for name, property := range b.Properties {
		if b.plainOf[name], err = o.plain(property); err != nil {
			return nil, err
		}
	}
	b.Properties, b.AllOf, b.AnyOf, b.OneOf = nil, nil, nil, nil // plain and plainOf replace them
	if ref != "" {
		if o.properties += len(b.plainOf); o.properties > maxKept {
			clear(o.bodies)
			o.properties = len(b.plainOf)
		}
		o.bodies[ref] = b
	}
	return b, nil
}

// body adds the schema of a request's body.
func (o *openAPI) body(in *inputSchema, at json.RawMessage) error {
	b, err := o.bodyOf(at)
	if err != nil {
		return err
	}
	list, _ := b.Type.([]any)
	object := b.Type == nil || b.Type == "object" || len(list) == 1 && list[0] == "object"
	free := true
	for name := range b.plainOf {
		if _, taken := in.properties[name]; taken {
			free = false
		}
	}
	switch {
	case object && free && b.combined:
		branches := []any{b.plain.text}
		if !b.required { // a property that only one branch requires is optional
			branches = []any{map[string]any{"anyOf": []any{b.plain.text, map[string]any{}}}}
		}
		in.root["allOf"], in.refs = branches, b.plain.refs
	case object && free && len(b.plainOf) > 0:
		maps.Copy(in.properties, b.plainOf)
		if b.required {
			for _, name := range b.Required {
				if _, ok := b.plainOf[name]; ok {
					in.required[name] = true
				}
			}
		}
	default:
		name := "body"
		for in.properties[name].text != nil {
			name += "_"
		}
		in.properties[name], in.required[name] = b.plain, b.required
	}
	return nil
}

// output returns the schema of the first successful response with content.
func (o *openAPI) output(responses map[string]json.RawMessage) (json.RawMessage, error) {
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		var r response
		if err := o.get(responses[status], &r); err != nil {
			return nil, err
		}
		content := contentSchema(r.Content)
		if content == nil || content[0] != '{' {
			continue
		}
		s, err := o.decode(content)
		if err != nil {
			return nil, err
		}
		var v schema
		if err := o.get(content, &v); err != nil {
			return nil, err
		}
		root := s.(map[string]any)
		if !v.permits("object") {
			// Tools return objects: wrap a list or a plain value in one.
			root = map[string]any{"type": "object", "properties": map[string]any{"result": s}, "required": []string{"result"}}
		}
		return o.close(root, references(s, nil))
	}
	return nil, nil
}

// contentSchema returns the schema of JSON content, or else of a form, or else of the first
// media type.
func contentSchema(content map[string]media) json.RawMessage {
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
		if s := present(content[name].Schema); s != nil {
			return s
		}
	}
	return nil
}
