package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// The parts of an OpenAPI document that describe a tool. A schema, and anything that may
// be a reference, remains decoded JSON; openAPI.get follows references.
type (
	operation struct {
		ID          string `json:"operationId"`
		Summary     string
		Description string
		Deprecated  bool
		Parameters  []any
		RequestBody any
		Responses   map[string]any
	}
	parameter struct {
		Name, In, Description string
		Required              bool
		Schema                any
		Content               map[string]media
	}
	requestBody struct {
		Required bool
		Content  map[string]media
	}
	response struct{ Content map[string]media }
	media    struct{ Schema any }
	schema   struct {
		Type                any // a string or a list
		Properties          map[string]any
		Required            []string
		AllOf, AnyOf, OneOf []any
	}
)

// permits reports whether a value of the schema may have the type.
func (s schema) permits(kind string) bool {
	list, _ := s.Type.([]any)
	return s.Type == nil || s.Type == kind || slices.Contains(list, any(kind))
}

// decodeOpenAPI decodes a document in JSON or YAML and checks that every
// reference resolves within it.
func decodeOpenAPI(text []byte) (map[string]any, error) {
	if !bytes.HasPrefix(text, []byte("{")) {
		if len(text) > maxYAML {
			return nil, fmt.Errorf("it is in YAML and larger than %d MiB; convert it to JSON", maxYAML>>20)
		}
		file, err := parser.ParseBytes(text, 0)
		if err == nil {
			e := expansion{sizes: map[string]int{}}
			for _, doc := range file.Docs {
				ast.Walk(&e, doc)
			}
			if e.size > maxOpenAPI {
				return nil, fmt.Errorf("its YAML aliases expand to more than %d MiB", maxOpenAPI>>20)
			}
			text, err = yaml.YAMLToJSON(text)
		}
		if err != nil {
			return nil, err
		}
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	return doc, checkReferences(doc, doc)
}

// expansion measures a YAML document with its aliases expanded, as nested aliases
// can make a small document arbitrarily large.
type expansion struct {
	sizes map[string]int // by anchor, in bytes
	size  int            // at most one more than maxOpenAPI
}

// Visit implements ast.Visitor.
func (e *expansion) Visit(n ast.Node) ast.Visitor {
	children := ast.Visitor(e)
	switch n := n.(type) {
	case *ast.AnchorNode:
		inner := &expansion{sizes: e.sizes}
		ast.Walk(inner, n.Value)
		e.sizes[n.Name.String()] = inner.size
		e.size += inner.size
		children = nil
	case *ast.AliasNode:
		e.size += e.sizes[n.Value.String()]
		children = nil
	default:
		if t := n.GetToken(); t != nil {
			e.size += len(t.Value) + 1
		}
	}
	e.size = min(e.size, maxOpenAPI+1)
	return children
}

func checkReferences(doc map[string]any, v any) error {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			if err := checkReferences(doc, inner); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner := v[key]
			if slices.Contains([]string{"example", "examples", "default", "enum", "const"}, key) {
				continue // values, not schemas
			}
			if ref, ok := inner.(string); ok && key == "$ref" {
				if _, err := pointer(doc, ref); err != nil {
					return err
				}
			}
			if err := checkReferences(doc, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointer returns the target of a reference in a document.
func pointer(doc map[string]any, ref string) (any, error) {
	path, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, fmt.Errorf("reference to %q leads out of the document", ref)
	}
	var v any = doc
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if s, err := url.PathUnescape(step); err == nil {
			step = s
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil, fmt.Errorf("reference to %q, which the document does not hold", ref)
			}
			v = at[i]
		default:
			v = nil
		}
		if v == nil {
			return nil, fmt.Errorf("reference to %q, which the document does not hold", ref)
		}
	}
	return v, nil
}

// get follows references from v and decodes what it finds into part.
func (o *openAPI) get(v, part any) error {
	for range 32 { // references may form a cycle
		m, _ := v.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		var err error
		if v, err = pointer(o.doc, ref); err != nil {
			return err
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err // unreachable: v is decoded JSON
	}
	return json.Unmarshal(text, part)
}
