package plancheck

import (
	"encoding/json"
	"strings"
	"testing"

	"cairn/internal/toolbox/catalog"
)

func TestFill(t *testing.T) {
	var a any
	if err := json.Unmarshal([]byte(`{"title":"One","issue":{"number":7,"labels":["x","y"]},"items":[{"n":1},{"n":2}],"text":"all","dup":{"same":1},"other":{"same":2}}`), &a); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ plan, want string }{
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"$a.issue.number"}}]`, `{"v":7}`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":["$a.issue.labels[1]",{"w":"${a.items[].n}"}]}}]`, `{"v":["y",{"w":[1,2]}]}`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"$a.items.0.n"}}]`, `{"v":1}`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"$a.number"}}]`, `{"v":7}`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"${a.title}: ${a.items} in ${HOME}, $${a.title}"}}]`, `{"v":"One: [{\"n\":1},{\"n\":2}] in ${HOME}, ${a.title}"}`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"$$a","w":"costs $5 or $$"}}]`, `{"v":"$a","w":"costs $5 or $$"}`},
		{`{"calls":[{"id":"a","tool":"t"},{"id":"b","tool":"t"}],"edges":[{"from":"a","to":"b","input":"x","output":"title"},{"from":"a","to":"b","input":"text"}]}`, `{"text":"all","x":"One"}`},
		{`{"calls":[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"x":"mine"}}],"edges":[{"from":"a","to":"b","dataPath":"output.title → input.x"}]}`, `{"x":"mine"}`},
		{`{"calls":[{"id":"a","tool":"t"},{"id":"b","tool":"t"}],"edges":[{"from":"a","to":"b","dataPath":"output.issue.number → input.n"}]}`, `{"n":7}`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"$a.issue.title"}}]`, `error: $a.issue.title: the result has no "title", but {labels,number}`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"is ${a.items[5].n}"}}]`, `error: $a.items[5].n: the result has no "[5]" in an array of 2`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"$a.same"}}]`, `error: $a.same: the result has no "same"`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"$a.title.x"}}]`, `error: $a.title.x: the result has no "x", because it is string`},
		{`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"$c"}}]`, `error: $c: the output of the call is not known`},
		{`{"parameters":{"who":"$a","n":3},"calls":[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"v":"for ${params.who}","n":"$params.n"}}]}`, `{"n":3,"v":"for $a"}`},
	} {
		p, err := ReadPlan(json.RawMessage(c.plan))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		filled, err := p.Fill("b", map[string]any{"a": a})
		if text, _ := json.Marshal(filled); err == nil {
			got = string(text)
		} else {
			got = "error: " + err.Error()
		}
		if got != c.want && !(err != nil && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s\nis filled as %s\nwant %s", c.plan, got, c.want)
		}
	}
}

// TestFillTypes: an output becomes a value of the type that its input has.
func TestFillTypes(t *testing.T) {
	for _, c := range []struct{ output, reference, types, want string }{
		{`{"content":"# A\n"}`, "$a", "string", `"# A\n"`}, // of a server that wraps its text
		{`{"result":[1,2]}`, "$a", "array", `[1,2]`},
		{`{"result":{"n":1}}`, "$a", "object", `{"result":{"n":1}}`},
		{`{"result":{"n":1}}`, "$a", "string", `"{\"n\":1}"`},
		{`{"at":"noon","n":1}`, "$a", "string", `"{\"at\":\"noon\",\"n\":1}"`},
		{`{"content":"<b>"}`, "It is ${a}", "string", `"It is \u003cb\u003e"`},
		{`{"n":12,"v":"<b>"}`, "It is ${a}", "string", `"It is {\"n\":12,\"v\":\"\u003cb\u003e\"}"`},
		{`{"n":12,"m":0}`, "$a.n", "string", `"12"`},
		{`{"n":"12","m":0}`, "$a.n", "integer", `12`},
		{`{"n":"x","m":0}`, "$a.n", "integer", `"x"`},
		{`{"n":"12","m":0}`, "$a.n", "", `"12"`},
		{`"{\n  \"n\": 12 }"`, "$a", "string", `"{\n  \"n\": 12 }"`}, // the text stays as it is
		{`"{\n  \"n\": 12 }"`, "$a", "object", `{"n":12}`},
		{`"{\n  \"n\": 12 }"`, "$a", "", `{"n":12}`},
		{`"{\n  \"n\": 12 }"`, "$a.n", "integer", `12`},
		{`"0123"`, "$a", "string", `"0123"`},
		{`{"content":"{\"name\":\"x\"}"}`, "$a.content.name", "string", `"x"`},
		{`"one"`, "$a", "array", `"one"`},
		{`"[{\"n\":1},{\"n\":2}]"`, "$a[].n", "array", `[1,2]`},
		{`{"result":["x","y"]}`, "$a[1]", "string", `"y"`},
		{`["x","y"]`, "first ${a[0]} of ${b[0]}", "string", `"first x of ${b[0]}"`},
	} {
		var a any
		if err := json.Unmarshal([]byte(c.output), &a); err != nil {
			t.Fatal(err)
		}
		in := catalog.Parameter{Name: "v", Path: "v", Types: strings.Fields(c.types)}
		p := Plan{Calls: []Call{{ID: "call", Arguments: map[string]any{"v": c.reference}, Takes: []catalog.Parameter{in}}}}
		filled, err := p.Fill("call", map[string]any{"a": a})
		if got, _ := json.Marshal(filled["v"]); err != nil || string(got) != c.want {
			t.Errorf("%s of %s as %q is %s, %v, want %s", c.reference, c.output, c.types, got, err, c.want)
		}
	}
}

func TestReadDocument(t *testing.T) {
	p, err := ReadDocument("# Publish a note\r\n\r\nWhen it is ready.\r\n\r\n```json\r\n{\"parameters\":{\"path\":null,\"n\":1},\"calls\":[{\"tool\":\"t\",\"arguments\":{\"p\":\"$params.path\"}}]}\r\n```\r\n")
	if err != nil || p.Intent != "Publish a note" || len(p.Calls) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, c := range []struct{ name, text, want string }{{"path", "5", `"5"`}, {"n", "5", `5`}, {"n", "x", "error"}, {"m", "x", "error"}} {
		got := "error"
		if err := p.Set(c.name, c.text); err == nil {
			text, _ := json.Marshal(p.Parameters[c.name])
			got = string(text)
		}
		if got != c.want {
			t.Errorf("Set(%s, %s) gives %s, want %s", c.name, c.text, got, c.want)
		}
	}
	if _, err := ReadDocument("# Nothing\n"); err == nil {
		t.Error("a document without a plan is read")
	}
	r := check(t, `{"parameters":{"path":"a"},"calls":[{"tool":"read_file","arguments":{"path":"$params.path"}},{"tool":"parse_json","arguments":{"text":"in ${params.paht}"}}]}`)
	if len(r.Findings) != 1 || r.Findings[0].Evidence != `the plan has no parameter "paht"` {
		t.Errorf("%+v", r.Findings)
	}
}

// TestTemplates: a reference in a text orders the calls, and the text is a string.
func TestTemplates(t *testing.T) {
	r := check(t, `[{"id":"r","tool":"read_file","arguments":{"path":"a"}},{"id":"i","tool":"create_issue","arguments":{"title":"About ${r.content} in ${HOME}","labels":["$r.content"]}}]`)
	if len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
	p, err := ReadPlan(json.RawMessage(`{"calls":[{"id":"b","tool":"t","arguments":{"v":"of ${a}"}},{"id":"a","tool":"t"},{"id":"c","tool":"t"}],"edges":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := p.Layers()
	if text, _ := json.Marshal(layers); err != nil || string(text) != `[["a","c"],["b"]]` {
		t.Errorf("layers %s, %v", text, err)
	}
	for _, bad := range []string{`{"parameters":{},"calls":[{"id":"params","tool":"t"}]}`, `[{"tool":"t","retries":6}]`, `[{"tool":"t","timeout_s":601}]`, `[{"tool":"t","retries":-1}]`} {
		if _, err := ReadPlan(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
