package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		Paths   struct{} // an object
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
	paths := member(o.text, "paths")
	if len(paths) == 0 || paths[skipSpace(paths, 1)] == '}' {
		return nil, errors.New("the OpenAPI description has no paths")
	}
	server = cmp.Or(server, slug(head.Info.Title))
	o.legacy = strings.HasPrefix(head.OpenAPI, "3.0")
	return complete(ctx, server, func(add func(Tool) error) error { return o.tools(paths, server, add) })
}

// tools adds the operations of all paths, sorted.
func (o *openAPI) tools(paths json.RawMessage, server string, add func(Tool) error) error {
	items := map[string]json.RawMessage{}
	for path, item := range members(paths) {
		if items[path] = item; len(items) > MaxTools {
			return fmt.Errorf("more than %d paths", MaxTools)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(items)) {
		var item map[string]json.RawMessage
		if err := o.get(items[path], &item); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var shared []json.RawMessage
		_ = json.Unmarshal(item["parameters"], &shared) // ignore a value that is no list
		for _, method := range methods {
			v := present(item[strings.ToLower(method)])
			if v == nil {
				continue
			}
			t, err := o.tool(method, path, shared, v)
			if err != nil {
				return fmt.Errorf("%s %s: %w", method, path, err)
			}
			t.Server = server
			if err := add(t); err != nil {
				return err
			}
		}
	}
	return nil
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
	whole      fragment
	object     bool                // only objects are valid
	combined   bool                // it has branches
	properties map[string]fragment // of an object
	required   bool                // a request has a body
	needs      []any               // names of required properties
}

func (o *openAPI) tool(method, path string, shared []json.RawMessage, v json.RawMessage) (Tool, error) {
	var op struct {
		ID                   string `json:"operationId"`
		Summary, Description string
		Deprecated           bool
		Parameters           []json.RawMessage
		RequestBody          json.RawMessage
		Responses            map[string]json.RawMessage
	}
	if err := o.get(v, &op); err != nil {
		return Tool{}, err
	}
	t := Tool{Name: op.ID, Title: op.Summary, Description: strings.TrimSpace(op.Summary + "\n" + op.Description)}
	t.Name = cmp.Or(t.Name, method+" "+path)
	t.Description = cmp.Or(t.Description, method+" "+path)
	if op.Deprecated {
		t.Description += "\nDeprecated."
	}
	var err error
	if o.made > maxSchemas {
		t.SchemaError = fmt.Sprintf("the schemas of the tools before it take more than %d MiB, the limit of one import", maxSchemas>>20)
	} else if t.Input, err = o.input(append(shared[:len(shared):len(shared)], op.Parameters...), op.RequestBody); err == nil {
		t.Output, err = o.output(op.Responses)
	}
	if errors.Is(err, errLarge) {
		t.SchemaError = err.Error()
	} else if err != nil {
		return t, err
	}
	o.made += len(t.Input) + len(t.Output)
	reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions || method == http.MethodTrace
	t.Annotations, err = json.Marshal(map[string]bool{
		"readOnlyHint": reads, "destructiveHint": method == http.MethodDelete,
		"idempotentHint": reads || method == http.MethodPut || method == http.MethodDelete,
	})
	return t, err
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
	refs := in.refs
	if len(in.properties) > 0 {
		texts := make(map[string]json.RawMessage, len(in.properties))
		for name, f := range in.properties {
			texts[name] = f.text
			refs = append(refs, f.refs...)
		}
		in.root["properties"] = texts
	}
	maps.DeleteFunc(in.required, func(_ string, required bool) bool { return !required })
	if len(in.required) > 0 {
		in.root["required"] = slices.Sorted(maps.Keys(in.required))
	}
	return o.close(in.root, refs)
}

// inputSchema is an input schema under construction.
type inputSchema struct {
	root       map[string]any
	properties map[string]fragment
	required   map[string]bool
	refs       []string // of the root without its properties
}

func (o *openAPI) parameter(in *inputSchema, v json.RawMessage) error {
	var p struct {
		Name, In, Description string
		Required              bool
		Schema                json.RawMessage
		Content               map[string]media
	}
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

// bodyOf returns the schema of a request's body. It caches the schemas of references.
func (o *openAPI) bodyOf(at json.RawMessage) (*bodySchema, error) {
	ref := refOf(at)
	if b := o.bodies[ref]; b != nil {
		return b, nil
	}
	var body struct {
		Required bool
		Content  map[string]media
	}
	if err := o.get(at, &body); err != nil {
		return nil, err
	}
	content := contentSchema(body.Content)
	if inner := refOf(content); ref == "" && inner != "" {
		ref = fmt.Sprint(body.Required, " ", inner)
		if b := o.bodies[ref]; b != nil {
			return b, nil
		}
	}
	decoded, v, err := o.resolve(content)
	if err != nil {
		return nil, err
	}
	b := &bodySchema{required: body.Required, properties: map[string]fragment{}}
	b.whole, err = newFragment(decoded)
	b.object = !slices.ContainsFunc(typesIn(v), func(t any) bool { return t != "object" && t != "null" })
	b.combined = v["allOf"] != nil || v["anyOf"] != nil || v["oneOf"] != nil
	b.needs, _ = v["required"].([]any)
	properties, _ := v["properties"].(map[string]any)
	for name, property := range properties {
		if err == nil {
			b.properties[name], err = newFragment(property)
		}
	}
	if ref != "" && err == nil {
		if o.properties += len(properties); o.properties > maxKept {
			clear(o.bodies)
			o.properties = len(properties)
		}
		o.bodies[ref] = b
	}
	return b, err
}

// body adds the schema of a request's body.
func (o *openAPI) body(in *inputSchema, at json.RawMessage) error {
	b, err := o.bodyOf(at)
	if err != nil {
		return err
	}
	object := b.object
	for name := range b.properties {
		_, taken := in.properties[name]
		object = object && !taken
	}
	switch {
	case object && b.combined:
		branches := []any{b.whole.text}
		if !b.required { // a property that only one branch requires is optional
			branches = []any{map[string]any{"anyOf": []any{b.whole.text, map[string]any{}}}}
		}
		in.root["allOf"], in.refs = branches, slices.Clone(b.whole.refs)
	case object && len(b.properties) > 0:
		maps.Copy(in.properties, b.properties)
		for _, need := range b.needs {
			name, _ := need.(string)
			if _, ok := b.properties[name]; ok && b.required {
				in.required[name] = true
			}
		}
	default:
		name := "body"
		for in.properties[name].text != nil {
			name += "_"
		}
		in.properties[name], in.required[name] = b.whole, b.required
	}
	return nil
}

// output returns the schema of the first successful response with content.
func (o *openAPI) output(responses map[string]json.RawMessage) (json.RawMessage, error) {
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		var r struct{ Content map[string]media }
		if err := o.get(responses[status], &r); err != nil {
			return nil, err
		}
		content := contentSchema(r.Content)
		if content == nil || content[0] != '{' {
			continue
		}
		decoded, v, err := o.resolve(content)
		if err != nil {
			return nil, err
		}
		root := decoded.(map[string]any)
		if types := typesIn(v); types != nil && !slices.Contains(types, any("object")) {
			// Tools return objects: wrap a list or a plain value in one.
			root = map[string]any{"type": "object", "properties": map[string]any{"result": decoded}, "required": []string{"result"}}
		}
		return o.close(root, references(decoded, nil))
	}
	return nil, nil
}

// contentSchema returns the schema of JSON content, or else of a form, or else of the first
// media type.
func contentSchema(content map[string]media) json.RawMessage {
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
	for _, name := range slices.SortedFunc(maps.Keys(content), func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) }) {
		if s := present(content[name].Schema); s != nil {
			return s
		}
	}
	return nil
}
