package suggest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/toolbox/catalog"
)

// tool reads "name: in:type in2:type? -> out:type" ("?" marks optional).
func tool(t *testing.T, spec string) catalog.Tool {
	t.Helper()
	name, rest, _ := strings.Cut(spec, ": ")
	takes, gives, _ := strings.Cut(rest, "->")
	schema := func(fields string) []byte {
		var props, required []string
		for f := range strings.FieldsSeq(fields) {
			field, optional := strings.CutSuffix(f, "?")
			key, typ, _ := strings.Cut(field, ":")
			props = append(props, fmt.Sprintf("%q:{%q:%q}", key, "type", typ))
			if !optional {
				required = append(required, fmt.Sprintf("%q", key))
			}
		}
		if len(props) == 0 {
			return nil
		}
		return []byte(`{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + `]}`)
	}
	made, err := catalog.New(catalog.Tool{Name: name, Input: schema(takes), Output: schema(gives)})
	if err != nil || made.SchemaError != "" {
		t.Fatalf("%s: %v %s", spec, err, made.SchemaError)
	}
	return made
}

func toolset(t *testing.T, specs ...string) []catalog.Tool {
	t.Helper()
	var tools []catalog.Tool
	for _, s := range specs {
		tools = append(tools, tool(t, s))
	}
	return tools
}

// edges prints bindings as "from→to dataPath".
func edges(tools []catalog.Tool, bindings []Binding) []string {
	var list []string
	for _, b := range bindings {
		list = append(list, fmt.Sprintf("%s→%s %s", tools[b.From].ID, tools[b.To].ID, b.DataPath()))
	}
	return list
}

func TestGrade(t *testing.T) {
	str := func(name string) catalog.Parameter { return catalog.Parameter{Name: name, Types: []string{"string"}} }
	for _, c := range []struct {
		out, in string
		want    float64
	}{
		{"content", "content", Exact}, {"filePath", "file_path", Exact}, {"userID", "user-id", Exact},
		{"content", "text", Alias}, {"uri", "url", Alias}, {"file_path", "path", Alias}, {"users", "user", Alias}, {"idUser", "userId", Alias},
		{"json", "jsonString", Partial}, {"inputFilePath", "path", Partial}, {"order_number", "order_date", Partial},
		{"userId", "orderId", 0}, {"content", "jsonString", 0}, {"status", "statusCode", 0}, {"", "x", 0},
	} {
		if got := Grade(str(c.out), str(c.in)); got != c.want {
			t.Errorf("Grade(%s, %s) = %v, want %v", c.out, c.in, got, c.want)
		}
	}
	if got := Grade(catalog.Parameter{Name: "x", Types: []string{"string"}}, catalog.Parameter{Name: "x", Types: []string{"object"}}); got != 0 {
		t.Errorf("a string for an object is graded %v, want 0", got)
	}
}

func TestCompatible(t *testing.T) {
	for _, c := range []struct {
		out, in string
		want    bool
	}{
		{"string", "string", true}, {"", "object", true}, {"object", "", true}, {"number", "string", true}, {"boolean", "string", true},
		{"integer", "number", true}, {"array", "object", true}, {"string", "object", false}, {"number", "integer", false},
		{"object", "array", false}, {"string", "number", false}, {"string,null", "integer,string", true},
	} {
		list := func(s string) []string {
			return slices.DeleteFunc(strings.Split(s, ","), func(t string) bool { return t == "" })
		}
		if got := compatible(list(c.out), list(c.in)); got != c.want {
			t.Errorf("compatible(%s, %s) = %v, want %v", c.out, c.in, got, c.want)
		}
	}
}

// TestSpecificationExample is the worked example of the contract.
func TestSpecificationExample(t *testing.T) {
	tools := toolset(t, "filesystem:read: path:string -> content:string", "json:parse: jsonString:string -> parsed:object", "github:create: data:object")
	bindings := detect(tools, nil)
	want := []string{"filesystem:read→json:parse output.content → input.jsonString", "json:parse→github:create output.parsed → input.data"}
	if got := edges(tools, bindings); !cmp.Equal(got, want) {
		t.Fatalf("edges %q, want %q", got, want)
	}
	p, err := build(tools, bindings, nil)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, s := range p.Tasks {
		order = append(order, s.Tool)
	}
	if !cmp.Equal(order, []string{"filesystem:read", "json:parse", "github:create"}) || len(p.Layers) != 3 {
		t.Errorf("order %v in %d layers, want read, parse, create in 3", order, len(p.Layers))
	}
	if !cmp.Equal(p.Tasks[2].DependsOn, []string{"task_1"}) {
		t.Errorf("github:create waits for %v, want [task_1]", p.Tasks[2].DependsOn)
	}
}

func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		tools []string
		want  []string
	}{
		"two producers, both": {[]string{"a: -> city:string", "b: -> city:string", "w: city:string"},
			[]string{"a→w output.city → input.city", "b→w output.city → input.city"}},
		"string for an object":         {[]string{"a: -> text:string", "b: data:object"}, nil},
		"no schemas":                   {[]string{"a: ", "b: "}, nil},
		"type alone needs one output":  {[]string{"a: -> x:string y:string", "b: query:string"}, nil},
		"optional not by type alone":   {[]string{"a: -> x:string", "b: query:string?"}, nil},
		"optional not by half a name":  {[]string{"a: -> order_number:string", "b: order_date:string?"}, nil},
		"optional by its name":         {[]string{"a: -> query:string", "b: query:string?"}, []string{"a→b output.query → input.query"}},
		"mutual by type alone, none":   {[]string{"a: q:string -> x:string", "b: r:string -> y:string"}, nil},
		"the better name wins":         {[]string{"a: -> file_name:string", "b: -> file:string", "c: file:string"}, []string{"b→c output.file → input.file"}},
		"never itself":                 {[]string{"a: text:string -> text:string"}, nil},
		"a name beats the type's pull": {[]string{"a: -> city:string", "b: -> thing:string", "c: city:string"}, []string{"a→c output.city → input.city"}},
	} {
		tools := toolset(t, c.tools...)
		bindings := detect(tools, nil)
		if got := edges(tools, bindings); !cmp.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if name == "two producers, both" && (!bindings[0].Ambiguous || !bindings[1].Ambiguous) {
			t.Errorf("%s: not marked ambiguous", name)
		}
	}
	tools := toolset(t, "a: -> city:string", "w: city:string")
	if got := detect(tools, func(i int, input string) bool { return i == 1 && input == "city" }); len(got) != 0 {
		t.Errorf("a supplied input is bound: %v", edges(tools, got))
	}
}

func TestBuild(t *testing.T) {
	t.Run("no bindings, one layer", func(t *testing.T) {
		p, err := build(toolset(t, "a: ", "b: ", "c: "), nil, nil)
		if err != nil || len(p.Layers) != 1 || len(p.Layers[0]) != 3 {
			t.Errorf("%+v, %v; want one layer of three", p, err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		if p, err := build(nil, nil, nil); err != nil || len(p.Tasks) != 0 {
			t.Errorf("%+v, %v", p, err)
		}
	})
	t.Run("mutual by name is refused", func(t *testing.T) {
		tools := toolset(t, "a: left:string -> right:string", "b: right:string -> left:string")
		_, err := build(tools, detect(tools, nil), nil)
		var cycle *CycleError
		if !errors.As(err, &cycle) || !cmp.Equal(cycle.Path, []string{"a", "b", "a"}) {
			t.Errorf("error %v, want the cycle a b a", err)
		}
	})
	t.Run("type alone gives way", func(t *testing.T) {
		tools := toolset(t, "a: zz:number -> left:string", "b: left:string -> right:object", "c: right:object -> k:number")
		bindings := detect(tools, nil)
		p, err := build(tools, bindings, nil)
		if err != nil || len(p.Dropped) != 1 || p.Dropped[0].From != 2 || len(p.Layers) != 3 {
			t.Errorf("%+v, %v; want the type-only c→a dropped", p, err)
		}
	})
}

// TestBuildProperties: whatever the tools, a plan is acyclic, ordered, complete
// and the same every time, and every binding fits its types.
func TestBuildProperties(t *testing.T) {
	names := []string{"id", "city", "userId", "text", "content", "order", "report"}
	types := []string{"string", "object", "integer", "array"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 4))
		var specs []string
		for i := range 1 + r.IntN(7) {
			fields := func() (s string) {
				for _, k := range r.Perm(len(names))[:r.IntN(3)] {
					s += " " + names[k] + ":" + types[r.IntN(len(types))]
				}
				return s
			}
			specs = append(specs, fmt.Sprintf("t%d: %s -> %s", i, fields(), fields()))
		}
		tools := toolset(t, specs...)
		bindings := detect(tools, nil)
		for _, b := range bindings {
			if b.From == b.To || !compatible(b.Output.Types, b.Input.Types) || b.Grade < TypeOnly {
				t.Errorf("seed %d: bad binding %+v", seed, b)
			}
		}
		p, err := build(tools, bindings, nil)
		var cycle *CycleError
		if errors.As(err, &cycle) {
			continue
		}
		if err != nil || len(p.Tasks) != len(tools) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		placed := map[string]int{}
		for k, s := range p.Tasks {
			placed[s.ID] = k
			for _, d := range s.DependsOn {
				if at, ok := placed[d]; !ok || p.Tasks[at].Layer >= s.Layer {
					t.Errorf("seed %d: %s comes before %s", seed, s.ID, d)
				}
			}
		}
		again, _ := build(tools, detect(tools, nil), nil)
		if !cmp.Equal(p, again) {
			t.Errorf("seed %d: two plans of one input differ", seed)
		}
	}
}
