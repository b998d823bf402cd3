package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds on one schema. Most are nested three levels deep; some, such as those of
// Kubernetes, are recursive.
const (
	maxDepth      = 3
	maxParameters = 400
	maxNesting    = 100     // levels of JSON values; the time to compile is quadratic in it
	maxValues     = 6_000   // JSON values: a hundred times as many as in schemas of tools in use
	maxPlaces     = 4 << 20 // bytes of the paths of all values, which the compiler allocates
	maxWork       = 200_000 // subschemas and properties visited to resolve references
	maxPath       = 1000    // bytes of a parameter's path; longer ones are skipped
)

// Parameters returns the properties of the JSON Schema of an object, sorted by path at each
// level, each followed by the properties nested in it. It follows references within the
// document and combines the branches of allOf, anyOf and oneOf. A property in anyOf or oneOf
// is required only if all branches require it. A nested property is required if it and all
// properties that contain it are required. Properties deeper than three levels are skipped.
func Parameters(schema []byte) ([]Parameter, error) {
	root, err := compile(schema)
	if err != nil {
		return nil, err
	}
	var r reader
	r.object(root, "", true, 0)
	if r.work > maxWork {
		return nil, fmt.Errorf("its references lead to more than %d subschemas", maxWork)
	}
	return r.found, nil
}

// compile reads a JSON Schema of an object within the limits.
func compile(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, errors.New("not a JSON object")
	}
	if n, places := values(doc, 0, 0); n > maxValues {
		return nil, fmt.Errorf("nested deeper than %d levels, or more than %d values", maxNesting, maxValues)
	} else if places > maxPlaces {
		return nil, errors.New("its names are too long")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(offline{})
	c.UseRegexpEngine(checkPattern)
	const name = "mem:///schema"
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(name)
	if err != nil {
		// The library's report is a tree of many lines. Its last leaf is sufficient, but
		// for a refused enumeration the line with the values is clearer.
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		leaf := lines[len(lines)-1]
		if i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "must be one of") }); i >= 0 {
			leaf = lines[i]
		}
		return nil, errors.New(strings.TrimPrefix(strings.TrimSpace(leaf), "- "))
	}
	return root, nil
}

// values returns the number of values in v, more than maxValues if they are nested too
// deep, and the bytes of their paths. place is the length of the path of v.
func values(v any, depth, place int) (n, places int) {
	if depth > maxNesting {
		return maxValues + 1, 0
	}
	n, places = 1, place
	add := func(v any, place int) {
		if n <= maxValues {
			below, bytes := values(v, depth+1, place)
			n, places = n+below, places+bytes
		}
	}
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			add(inner, place+1)
		}
	case map[string]any:
		for name, inner := range v {
			add(inner, place+len(name)+1)
		}
	}
	return n, places
}

// offline is a loader that refuses every reference out of the document, because compiling a
// schema must not open files or connections.
type offline struct{}

func (offline) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %q leads out of the schema", url)
}

// checkPattern accepts every regular expression, because schemas have those of ECMAScript, of
// which Go lacks some, such as lookahead. It compiles one at the first match, because that
// can take a thousand times its length in memory, and most schemas never match anything.
func checkPattern(pattern string) (jsonschema.Regexp, error) {
	return &lazyPattern{text: pattern, compile: sync.OnceValue(func() *regexp.Regexp {
		if len(pattern) > maxPattern {
			return nil
		}
		re, _ := regexp.Compile(pattern)
		return re
	})}, nil
}

// maxPattern bounds the patterns that are matched in bytes; longer ones, and those that Go
// cannot compile, match everything.
const maxPattern = 1000

type lazyPattern struct {
	text    string
	compile func() *regexp.Regexp
}

func (p *lazyPattern) String() string { return p.text }

func (p *lazyPattern) MatchString(s string) bool {
	re := p.compile()
	return re == nil || re.MatchString(s)
}

type reader struct {
	found []Parameter
	work  int
}

// shape is a schema with its references and combinations resolved.
type shape struct {
	types      map[string]bool // empty means any
	properties map[string]*jsonschema.Schema
	required   map[string]bool
	items      *jsonschema.Schema
	settled    bool
	text       string
}

// object adds the properties of s, below prefix.
func (r *reader) object(s *jsonschema.Schema, prefix string, required bool, depth int) {
	if depth >= maxDepth {
		return
	}
	o := r.resolve(s, 0)
	for _, name := range slices.Sorted(maps.Keys(o.properties)) {
		if len(r.found) >= maxParameters {
			return
		}
		p := r.resolve(o.properties[name], 0)
		must := required && o.required[name]
		path := prefix + name
		if len(path) > maxPath {
			continue
		}
		r.found = append(r.found, Parameter{Name: name, Path: path, Types: shared(slices.Sorted(maps.Keys(p.types))),
			Required: must, Description: strings.Clone(clean(p.text, 1000)), Settled: p.settled})
		if len(p.properties) > 0 {
			r.object(o.properties[name], path+".", must, depth+1)
		}
		if p.items != nil {
			// A property of an element is not required: the array may be empty.
			r.object(p.items, path+"[].", false, depth+1)
		}
	}
}

// resolve follows references and combines branches, to a depth of eight and within maxWork,
// because a schema can contain itself.
func (r *reader) resolve(s *jsonschema.Schema, depth int) shape {
	r.work++
	if s == nil || depth > 8 || r.work > maxWork {
		return shape{}
	}
	r.work += len(s.Properties) + len(s.Required)
	o := shape{types: map[string]bool{}, properties: map[string]*jsonschema.Schema{}, required: map[string]bool{}, text: s.Description}
	o.settled = s.Default != nil || s.Const != nil || s.Enum != nil && len(s.Enum.Values) == 1
	if s.Types != nil {
		for _, t := range s.Types.ToStrings() {
			if t != "null" { // null does not connect parameters
				o.types[t] = true
			}
		}
	}
	maps.Copy(o.properties, s.Properties)
	for _, name := range s.Required {
		o.required[name] = true
	}
	if s.Items2020 != nil {
		o.items = s.Items2020
	} else if items, ok := s.Items.(*jsonschema.Schema); ok {
		o.items = items
	}
	for _, part := range append(slices.Clone(s.AllOf), s.Ref) {
		if part != nil {
			p := r.resolve(part, depth+1)
			r.work += len(p.properties) + len(p.required)
			o.and(p)
		}
	}
	for _, branches := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(branches) == 0 {
			continue
		}
		either := r.resolve(branches[0], depth+1)
		for _, b := range branches[1:] {
			p := r.resolve(b, depth+1)
			r.work += len(p.properties) + len(either.required)
			either.or(p)
		}
		o.and(either)
	}
	if len(o.types) == 0 && len(o.properties) > 0 {
		o.types["object"] = true
	}
	return o
}

// and adds the constraints of p.
func (o *shape) and(p shape) {
	maps.Copy(o.required, p.required)
	o.settled = o.settled || p.settled
	o.text = cmp.Or(o.text, p.text)
	o.add(p)
}

// or adds the alternative p: the result allows the types of both, and requires the
// properties that both require.
func (o *shape) or(p shape) {
	maps.DeleteFunc(o.required, func(name string, _ bool) bool { return !p.required[name] })
	o.settled = o.settled && p.settled
	o.add(p)
}

// add adds the types and the values in p.
func (o *shape) add(p shape) {
	maps.Copy(o.types, p.types)
	for name, s := range p.properties {
		if _, ok := o.properties[name]; !ok {
			o.properties[name] = s
		}
	}
	o.items = cmp.Or(o.items, p.items)
}
