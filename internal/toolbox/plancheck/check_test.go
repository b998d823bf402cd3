package plancheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cairn/graphrank"
	"cairn/internal/base/testutil"
	"cairn/internal/store/keyword"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// tool reads "name | description | in:type in2:type? | out:type | needs"; "?" marks optional.
func tool(t *testing.T, spec string) catalog.Tool {
	t.Helper()
	fields := append(strings.Split(spec, "|"), "", "", "", "")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	schema := func(list string) []byte {
		props, required := map[string]any{}, []string{}
		for f := range strings.FieldsSeq(list) {
			f, optional := strings.CutSuffix(f, "?")
			name, kind, _ := strings.Cut(f, ":")
			props[name] = map[string]string{"type": kind}
			if !optional {
				required = append(required, name)
			}
		}
		b, err := json.Marshal(map[string]any{"type": "object", "properties": props, "required": required})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	made, err := catalog.New(catalog.Tool{Name: fields[0], Description: fields[1], Input: schema(fields[2]), Output: schema(fields[3]), DependsOn: strings.Fields(fields[4])})
	if err != nil || made.SchemaError != "" {
		t.Fatalf("%s: %v %s", spec, err, made.SchemaError)
	}
	return made
}

// check checks a plan in JSON over some tools, after traces were learnt.
func check(t *testing.T, plan string, traces ...toolsearch.Trace) *Report {
	t.Helper()
	tools := []catalog.Tool{
		tool(t, "read_file | Read a text file | path:string | content:string"),
		tool(t, "parse_json | Parse JSON text | text:string | parsed:object"),
		tool(t, "create_issue | Open an issue in a repository | title:string body:string? count:integer? labels:array? | number:integer"),
		tool(t, "create_event | Put an event into the calendar | summary:string start:string | id:string"),
		tool(t, "delete_file | Delete a file | path:string"),
		tool(t, "send_location | Send my location | to:string | | get_location"),
		tool(t, "get_location | Where am I | | location:string"),
	}
	list, err := catalog.New(catalog.Tool{Name: "list_issues", Input: json.RawMessage(`{"type":"object","properties":{"state":{"enum":["open","closed"]},"limit":{"type":"integer","maximum":100}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := catalog.New(catalog.Tool{Name: "add_lines", Input: json.RawMessage(`{"type":"object","required":["invoice","lines"],"properties":{"invoice":{"$ref":"#/$defs/invoice"},"lines":{"type":"array","items":
		{"type":"object","required":["sku","unit_count"],"properties":{"sku":{"anyOf":[{"type":"string"},{"type":"null"}]},"unit_count":{"type":"integer"}},"additionalProperties":false}}},"$defs":{"invoice":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	tools = append(tools, list, lines, tool(t, "close_issue | Close an issue | issueId:string"), tool(t, "show_issue | Show an issue | issue_id:string"))
	k, err := keyword.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	e := &testutil.HashEmbedder{}
	u, err := toolsearch.NewUsage(t.Context(), &graphrank.Graph{}, traces, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := toolsearch.New(k, toolsearch.Options{Embedder: e, Reader: testutil.Tagger, Usage: u})
	if err := x.Sync(t.Context(), tools, nil); err != nil {
		t.Fatal(err)
	}
	p, err := ReadPlan(json.RawMessage(plan))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check(t.Context(), x, func(name string) (catalog.Tool, error) {
		for _, t := range tools {
			if t.ID == name {
				return t, nil
			}
		}
		return catalog.Tool{}, &catalog.UnknownError{Name: name, Nearest: []string{"read_file"}}
	}, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text prints the calls and edges of a plan.
func text(p *Plan) string {
	if p == nil {
		return ""
	}
	var list []string
	for _, c := range p.Calls {
		args, _ := json.Marshal(c.Arguments)
		list = append(list, c.Tool+strings.ReplaceAll(string(args), `"`, ""))
	}
	for _, e := range p.Edges {
		list = append(list, e.From+">"+e.To)
	}
	return strings.Join(list, " ")
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		want       []string // kind, call and input of each finding
		repaired   string
	}{
		{"right", `[{"tool":"read_file","arguments":{"path":"a"}},{"tool":"parse_json","arguments":{"text":"$c0.content"}}]`, nil, ""},
		{"names alone", `["read_file","parse_json"]`, nil, ""},
		{"a wrong name and a wrong argument", `[{"tool":"read_fil","arguments":{"path":5}}]`, []string{"unknown_tool c0 ", "wrong_type c0 path"}, "read_file{path:5}"},
		{"a name with a letter wrong", `[{"tool":"read_fil","arguments":{"path":"a"}}]`, []string{"unknown_tool c0 "}, "read_file{path:a}"},
		{"an output for a required input", `[{"tool":"read_file","arguments":{"path":"a"}},{"tool":"parse_json","arguments":{}}]`,
			[]string{"missing_input c1 text"}, "read_file{path:a} parse_json{text:$c0.content}"},
		{"a number as text", `[{"tool":"create_issue","arguments":{"title":"x","count":"5"}}]`, []string{"wrong_type c0 count"}, "create_issue{count:5,title:x}"},
		{"one value for an array", `[{"tool":"create_issue","arguments":{"title":"x","labels":"bug"}}]`, []string{"wrong_type c0 labels"}, "create_issue{labels:[bug],title:x}"},
		{"an array as text", `[{"tool":"create_issue","arguments":{"title":"x","labels":"[\"Bug\"]"}}]`, []string{"wrong_type c0 labels"}, "create_issue{labels:[Bug],title:x}"},
		{"another name of an input", `[{"tool":"read_file","arguments":{"file_path":"a"}}]`, []string{"wrong_input c0 file_path"}, "read_file{path:a}"},
		{"a name in another case that another tool has", `[{"tool":"close_issue","arguments":{"issue_id":"7"}}]`, []string{"wrong_input c0 issue_id"}, "close_issue{issueId:7}"},
		{"no option of an enumeration", `[{"tool":"list_issues","arguments":{"state":"shut"}}]`, []string{"wrong_type c0 state"}, ""},
		{"an option of an enumeration", `[{"tool":"list_issues","arguments":{"state":"open"}}]`, nil, ""},
		{"a number out of range", `[{"tool":"list_issues","arguments":{"limit":500}}]`, []string{"wrong_type c0 limit"}, ""},
		{"an option in other letters", `[{"tool":"list_issues","arguments":{"state":"OPEN"}}]`, []string{"wrong_type c0 state"}, "list_issues{state:open}"},
		{"null for an optional input", `[{"tool":"list_issues","arguments":{"limit":null}}]`, []string{"wrong_type c0 limit"}, "list_issues{}"},
		{"null for a required input", `[{"tool":"read_file","arguments":{"path":null}}]`, []string{"missing_input c0 path"}, ""},
		{"values in an array of objects", `[{"tool":"add_lines","arguments":{"invoice":{"id":"7"},"lines":[{"sku":"a","unitCount":"2"},{"sku":5,"unit_count":1}]}}]`,
			[]string{"wrong_type c0 lines"}, "add_lines{invoice:{id:7},lines:[{sku:a,unit_count:2},{sku:5,unit_count:1}]}"},
		{"an output in an array of objects", `[{"id":"a","tool":"read_file","arguments":{"path":"x"}},{"tool":"add_lines","arguments":{"invoice":{"id":"7"},"lines":[{"sku":"a","unit_count":"$a.content"}]}}]`, nil, ""},
		{"calls that refer to each other", `{"calls":[{"id":"a","tool":"read_file","arguments":{"path":"$b.content"}},{"id":"b","tool":"read_file","arguments":{"path":"$a.content"}}],"edges":[]}`, []string{"cycle b "}, ""},
		{"a call that refers to itself", `[{"id":"a","tool":"read_file","arguments":{"path":"$a.content"}}]`, []string{"cycle a "}, ""},
		{"values of the intent without a call", `{"intent":"Read notes.txt and plan.txt","calls":[{"tool":"read_file","arguments":{"path":"plan.txt"}}]}`, []string{"missing_step  "}, "read_file{path:plan.txt} read_filenull"},
		{"all values of the intent", `{"intent":"1. Read notes.txt and plan.txt for the 3rd time","calls":[{"tool":"read_file","arguments":{"path":"plan.txt"}},{"tool":"read_file","arguments":{"path":"notes.txt"}}]}`, nil, ""},
		{"a call without arguments", `{"intent":"Read notes.txt and plan.txt","calls":[{"tool":"read_file","arguments":{"path":"plan.txt"}},{"tool":"read_file"}]}`, nil, ""},
		{"a placeholder", `[{"tool":"close_issue","arguments":{"issueId":"<issue_id>"}}]`, []string{"missing_input c0 issueId"}, ""},
		{"a placeholder for an output", `[{"tool":"read_file","arguments":{"path":"a"}},{"tool":"parse_json","arguments":{"text":"{{text}}"}}]`,
			[]string{"missing_input c1 text"}, "read_file{path:a} parse_json{text:$c0.content}"},
		{"markup", `[{"tool":"parse_json","arguments":{"text":"<b>"}}]`, nil, ""},
		{"the arguments of another tool", `[{"tool":"create_issue","arguments":{"summary":"x","start":"noon"}}]`, []string{"wrong_tool c0 "}, "create_event{start:noon,summary:x}"},
		{"an output of another type", `[{"tool":"create_issue","arguments":{"title":"a"}},{"tool":"parse_json","arguments":{"text":"$c0.text"}}]`, []string{"type_conflict c1 text"}, ""},
		{"an output of a later call", `[{"tool":"parse_json","arguments":{"text":"$c1.content"}},{"tool":"read_file","arguments":{"path":"a"}}]`,
			[]string{"wrong_order c0 "}, "read_file{path:a} parse_json{text:$c1.content}"},
		{"a call that the plan lacks", `[{"tool":"parse_json","arguments":{"text":"$x"}}]`, []string{"missing_step c0 "}, ""},
		{"a cycle", `{"calls":[{"id":"a","tool":"read_file"},{"id":"b","tool":"parse_json"}],"edges":[{"from":"a","to":"b"},{"from":"b","to":"a"}]}`,
			[]string{"cycle a "}, "read_filenull parse_jsonnull b>a"},
		{"a declared need", `["send_location"]`, []string{"missing_step c0 "}, "get_locationnull send_locationnull"},
		{"a declared need too late", `["send_location","get_location"]`, []string{"wrong_order c0 "}, "get_locationnull send_locationnull"},
		{"a declared need without an edge", `{"calls":["get_location","send_location"],"edges":[]}`, []string{"missing_edge c1 "}, "get_locationnull send_locationnull c0>c1"},
		{"something else in place of a need", `["parse_json","send_location"]`, []string{"wrong_tool c0 "}, "get_locationnull send_locationnull"},
		{"a deletion", `["delete_file"]`, []string{"unguarded c0 "}, ""},
		{"a deletion after a look", `["read_file","delete_file"]`, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := check(t, c.plan)
			var got []string
			for _, f := range r.Findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.Kind, f.Call, f.Input))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) || text(r.Repaired) != c.repaired {
				t.Errorf("findings %q, repaired %q, want %q, %q", got, text(r.Repaired), c.want, c.repaired)
			}
			if faulty := len(c.want) > 0 && c.want[0] != "unguarded c0 "; faulty != (r.Score < .5) {
				t.Errorf("score %.2f", r.Score)
			}
		})
	}
}

// TestGuards checks that only a deletion that the intent does not request is unguarded.
func TestGuards(t *testing.T) {
	for intent, want := range map[string]bool{
		"Show an issue": true, "Show an issue without deleting anything": true, "Show an issue, the last step is deleting": false,
	} {
		r := check(t, fmt.Sprintf(`{"intent":%q,"calls":[{"tool":"delete_file","arguments":{"path":"notes.txt"}}]}`, intent))
		if got := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == Unguarded }); got != want {
			t.Errorf("%q: unguarded %t, want %t", intent, got, want)
		}
	}
}

// TestRepairedIsRight checks that a repair has no findings left.
func TestRepairedIsRight(t *testing.T) {
	r := check(t, `[{"tool":"parse_json","arguments":{}},{"tool":"read_file","arguments":{"path":["a"]}},{"tool":"send_location","arguments":{"to":"x"}}]`)
	for range 3 {
		if r.Repaired == nil {
			break
		}
		b, err := json.Marshal(r.Repaired)
		if err != nil {
			t.Fatal(err)
		}
		r = check(t, string(b))
	}
	for _, f := range r.Findings {
		if f.Repair != "" {
			t.Errorf("the repaired plan has %+v", f)
		}
	}
}

func TestLearntOrder(t *testing.T) {
	var traces []toolsearch.Trace
	for i := range 9 {
		traces = append(traces, toolsearch.Trace{Intent: fmt.Sprint("parse the file ", i), Tools: []string{"read_file", "parse_json"}, Edges: [][2]int{{0, 1}}})
	}
	for _, c := range []struct {
		plan, repaired string
		want           Kind
	}{
		{`["parse_json","read_file"]`, "read_filenull parse_jsonnull", WrongOrder},
		{`{"calls":["parse_json","read_file"],"edges":[]}`, "parse_jsonnull read_filenull c1>c0", MissingEdge},
	} {
		r := check(t, c.plan, traces...)
		if len(r.Findings) != 1 || r.Findings[0].Kind != c.want || text(r.Repaired) != c.repaired {
			t.Errorf("%s: findings %+v, repaired %q; want %s, %q", c.plan, r.Findings, text(r.Repaired), c.want, c.repaired)
		}
	}
}

func TestReadPlan(t *testing.T) {
	p, err := ReadPlan(json.RawMessage(`{"intent":"x","dag":{"nodes":[{"id":"task_0","toolId":"a","inputs":{}},{"id":"task_1","toolId":"b","inputs":{"k":1}}],
		"edges":[{"from":"a","to":"b","from_task":"task_0","to_task":"task_1","dataPath":"output.o → input.k"}]}}`))
	if err != nil || p.Intent != "x" || text(&p) != "anull b{k:1} task_0>task_1" || p.Edges[0].Input != "k" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ReadPlan(json.RawMessage(`[{"tool":"a","description":"it reads","inputs":{"k":1}}]`)); err != nil || text(&p) != "a{k:1}" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{``, `{}`, `[]`, `"a"`, `[{"arguments":{}}]`, `[{"id":"a","tool":"x"},{"id":"a","tool":"y"}]`, `[1]`,
		`[` + strings.Repeat(`"a",`, MaxCalls) + `"a"]`, strings.Repeat(`{"dag":`, 20_000)} {
		if _, err := ReadPlan(json.RawMessage(bad)); err == nil {
			t.Errorf("%.40q is a plan", bad)
		}
	}
	for plan, want := range map[string]string{
		`7`:                                 "want an array of calls, or an object with calls or a dag: got number",
		`{"calls":"a"}`:                     "want an array of calls, or an object with calls or a dag: calls: got string",
		`{"dag":"a"}`:                       "dag: got string",
		`[1]`:                               "calls[0]: want the name of a tool, or an object with tool and arguments: got number",
		`["x",{"tool":"x","args":{"k":1}}]`: `calls[1]: unknown field "args", want {id,tool,arguments,description,retries,timeout_s}; edges state the order`,
		`[{"tool":"x","arguments":{},"if":"$a.done"}]`: `calls[0]: unknown field "if", want {id,tool,arguments,description,retries,timeout_s}; edges state the order`,
		`[{"id":"a b","tool":"x"}]`:                    `calls[0]: the id is "a b", want letters, digits, - and _`,
		`[{"tool":["x"]}]`:                             "calls[0]: want the name of a tool, or an object with tool and arguments: tool: got array",
	} {
		if _, err := ReadPlan(json.RawMessage(plan)); err == nil || err.Error() != want {
			t.Errorf("ReadPlan(%s): %v, want %s", plan, err, want)
		}
	}
}
