package suggest

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/graphrank"
	"cairn/internal/base/testutil"
	"cairn/internal/store/keyword"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

func index(t *testing.T, tools []catalog.Tool, traces ...toolsearch.Trace) *toolsearch.Index {
	t.Helper()
	ctx := context.Background()
	k, err := keyword.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	e := &testutil.HashEmbedder{}
	g := &graphrank.Graph{}
	for _, trace := range traces {
		for _, id := range trace.Tools {
			g.AddNode(id)
		}
		for _, e := range trace.Edges {
			g.Observe(trace.Tools[e[0]], trace.Tools[e[1]], graphrank.Dependency)
		}
		for i := 1; i < len(trace.Tools) && len(trace.Edges) == 0; i++ {
			g.Observe(trace.Tools[i-1], trace.Tools[i], graphrank.Sequence)
		}
	}
	u, err := toolsearch.NewUsage(ctx, g, traces, e, nil)
	if err == nil {
		err = u.Embed(ctx, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	x := toolsearch.New(k, toolsearch.Options{Embedder: e, Reader: testutil.Tagger, Usage: u})
	if err := x.Sync(ctx, tools, nil); err != nil {
		t.Fatal(err)
	}
	return x
}

func described(t *testing.T, spec, description string, needs ...string) catalog.Tool {
	t.Helper()
	raw := tool(t, spec)
	raw.Description, raw.DependsOn = description, needs
	raw.Server, _, _ = strings.Cut(spec, ":")
	return raw
}

func office(t *testing.T) []catalog.Tool {
	return []catalog.Tool{
		described(t, "fs:read_file: path:string -> content:string", "Read a file from disk"),
		described(t, "mail:send_email: to:string subject:string? body:string", "Send a message by mail"),
		described(t, "crm:find_customer: name:string -> customerId:string", "Find a customer by name"),
		described(t, "crm:list_orders: customerId:string limit:integer? -> orders:array", "List the orders of a customer"),
		described(t, "web:fetch_page: url:string -> html:string", "Fetch a web page"),
		described(t, "db:delete_rows: table:string", "Delete rows of a table", "db:login"),
		described(t, "db:login: ", "Open a database session"),
	}
}

func suggest(t *testing.T, x *toolsearch.Index, r Request) *Suggestion {
	t.Helper()
	s, err := Suggest(context.Background(), x, r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func toolsOf(s *Suggestion) (list []string) {
	for _, task := range s.Tasks {
		list = append(list, task.Tool)
	}
	return list
}

// TestConfidence is golden vector 42, and the weights sum to 1 for every α.
func TestConfidence(t *testing.T) {
	if got := confidence(.80, .10, .95, .75); math.Abs(got.Base-.69625) > 1e-12 {
		t.Errorf("base %v, want .69625", got)
	}
	for alpha, want := range map[float64][3]float64{.5: {.55, .30, .15}, .6: {.61, .25, .14}, .75: {.70, .175, .125}, .9: {.79, .10, .11}, 1: {.85, .05, .10}, .2: {.55, .30, .15}} {
		c := confidence(0, 0, 0, alpha)
		got := [3]float64{c.HybridWeight, c.PageRankWeight, c.PathWeight}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12 {
				t.Errorf("weights at α %v are %v, want %v", alpha, got, want)
			}
		}
		if sum := got[0] + got[1] + got[2]; math.Abs(sum-1) > 1e-12 {
			t.Errorf("weights at α %v sum to %v", alpha, sum)
		}
	}
	for c, want := range map[float64]Mode{0: ExplicitRequired, .49: ExplicitRequired, .5: Advised, .69: Advised, .7: Speculative, 1: Speculative} {
		if got := modeOf(c); got != want {
			t.Errorf("mode of %v is %v, want %v", c, got, want)
		}
	}
}

// TestConfidenceFollowsTheEvidence: what a plan's edges stand on decides how far
// it may be acted upon. More evidence never lowers the confidence, and missing inputs do.
func TestConfidenceFollowsTheEvidence(t *testing.T) {
	last := 1.0
	for _, c := range []struct {
		name, producer, consumer string
		evidence                 float64
		counts                   EdgeCounts
		mode                     Mode
	}{
		{"exact and type only", "a: -> parsed:object ticket:string", "b: settings:object ticket:string", Exact, EdgeCounts{Exact: 1, TypeOnly: 1}, Advised},
		{"exact", "a: -> ticketNumber:string", "b: ticket_number:string", Exact, EdgeCounts{Exact: 1}, Speculative},
		{"alias", "a: -> tickets:array", "b: ticket:array", Alias, EdgeCounts{Alias: 1}, Speculative},
		{"partial", "a: -> ticketPath:string", "b: ticketText:string", Partial, EdgeCounts{Partial: 1}, Speculative},
		{"type only", "a: -> parsed:object", "b: settings:object", TypeOnly, EdgeCounts{TypeOnly: 1}, Advised},
		{"no edge", "a: x:string?", "b: ticket:string?", 0, EdgeCounts{}, Advised},
		{"no edge, two inputs missing", "a: x:string", "b: ticket:string", 0, EdgeCounts{}, ExplicitRequired},
	} {
		s := suggest(t, index(t, toolset(t, c.producer, c.consumer)), Request{Tools: []string{"a", "b"}})
		if math.Abs(s.Parts.Evidence-c.evidence) > 1e-12 || s.Parts.Edges != c.counts || s.Confidence > last || s.Mode != c.mode {
			t.Errorf("%s: confidence %.3f after %.3f, %+v, %s; want evidence %.2f, %+v, %s", c.name, s.Confidence, last, s.Parts, s.Mode, c.evidence, c.counts, c.mode)
		}
		last = s.Confidence
		if s.Tasks[0].Confidence != 1 {
			t.Errorf("%s: a given tool has confidence %v", c.name, s.Tasks[0].Confidence)
		}
	}
	// The worked example of the contract is worth more than tools without a relation.
	x := index(t, toolset(t, "filesystem:read: path:string -> content:string", "json:parse: jsonString:string -> parsed:object", "github:create: data:object"))
	if s := suggest(t, x, Request{Tools: []string{"github:create", "json:parse", "filesystem:read"}}); s.Confidence <= last || s.Mode == ExplicitRequired {
		t.Errorf("confidence %.3f, %s; without a relation %.3f", s.Confidence, s.Mode, last)
	}
	// However well the tools fit, type alone does not let a plan run by itself.
	x = index(t, toolset(t, "a: -> t0:string t1:string t2:string t3:string t4:string parsed:object",
		"b: t0:string t1:string t2:string t3:string t4:string settings:object"))
	s := suggest(t, x, Request{Tools: []string{"a", "b"}})
	if s.Confidence < speculateFrom || s.Mode != Advised || !strings.Contains(strings.Join(s.Warnings, "\n"), "1 of 6 edges stand on the types of values alone") {
		t.Errorf("confidence %v, %s, %q", s.Confidence, s.Mode, s.Warnings)
	}
	// A declared need is certain, and a prerequisite is as sure as what needs it.
	s = suggest(t, index(t, office(t)), Request{Intent: "Delete rows of a table"})
	if s.Parts.Evidence != 1 || s.Parts.Edges != (EdgeCounts{Declared: 1}) || s.Tasks[0].Confidence != s.Tasks[1].Confidence || s.Tasks[0].Confidence <= 0 {
		t.Errorf("%+v %+v", s.Parts, s.Tasks)
	}
}

// TestSizeIsLearnt: where similar intents took three tools, so does the plan;
// with nothing learnt the same intent takes the one that stands out.
func TestSizeIsLearnt(t *testing.T) {
	tools := toolset(t, "open_valve: ", "check_pump: ", "close_valve: ", "paint_fence: ")
	intent := "open valve at noon"
	if got := toolsOf(suggest(t, index(t, tools), Request{Intent: intent})); !slices.Equal(got, []string{"open_valve"}) {
		t.Fatalf("cold: %v", got)
	}
	var traces []toolsearch.Trace
	for _, when := range []string{"one", "two", "six"} {
		traces = append(traces, toolsearch.Trace{Intent: "open valve at " + when, Tools: []string{"open_valve", "check_pump", "close_valve"}, Edges: [][2]int{{0, 1}, {1, 2}}})
	}
	if got := toolsOf(suggest(t, index(t, tools, traces...), Request{Intent: intent})); !slices.Equal(got, []string{"open_valve", "check_pump", "close_valve"}) {
		t.Errorf("learnt: %v", got)
	}
}

// TestPaths holds golden vector 43 and that both directions are looked at.
func TestPaths(t *testing.T) {
	g := &graphrank.Graph{}
	for i := range 3 {
		g.Set(graphrank.Edge{From: fmt.Sprint("t", i), To: fmt.Sprint("t", i+1), Type: graphrank.Dependency, Source: graphrank.Observed})
	}
	got := paths(g, []string{"t3", "t0", "t2", "x"})
	want := []Path{
		{From: "t0", To: "t3", Path: []string{"t0", "t1", "t2", "t3"}, Hops: 3, Explanation: "Transitive: t0 → t1 → t2 → t3", Confidence: .65},
		{From: "t2", To: "t3", Path: []string{"t2", "t3"}, Hops: 1, Explanation: "Direct dependency: t2 → t3", Confidence: .95},
		{From: "t0", To: "t2", Path: []string{"t0", "t1", "t2"}, Hops: 2, Explanation: "Transitive: t0 → t1 → t2", Confidence: .80},
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestLiterals(t *testing.T) {
	for intent, want := range map[string][]string{
		`send "hi there" to ann@example.org`:                 {"quoted text hi there", "email address ann@example.org"},
		"fetch https://x.org/a?b=1, then /etc/hosts and 42.": {"web page https://x.org/a?b=1", "file /etc/hosts", "number 42"},
		"open notes/todo.md and report.pdf":                  {"file notes/todo.md", "file report.pdf"},
		"on 2024-05-06 at 10:30 in v1.2.3 with gpt4":         {"date 2024-05-06", "code gpt4"},
		"it isn't Ann's, don't":                              {"name Ann"},
		"raise by -3.5 to 7":                                 {"number -3.5", "number 7"},
		"set it to 'Annual Report' and “final”":              {"quoted text Annual Report", "quoted text final"},
		`look at "https://a.b/c"`:                            {"web page https://a.b/c"},
		"":                                                   nil,
	} {
		var got []string
		for _, l := range toolsearch.Literals(intent) {
			got = append(got, string(l.Kind)+" "+l.Text)
			if intent[l.Start:l.Start+len(l.Text)] != l.Text {
				t.Errorf("%q: %q does not stand at %d", intent, l.Text, l.Start)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("toolsearch.Literals(%q) = %q, want %q", intent, got, want)
		}
	}
}

func sureArguments(t *catalog.Tool, intent string) map[string]any {
	args := map[string]any{}
	valuesOf(intent).arguments(t, span{0, len(intent)}, args, true, nil)
	return args
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		spec, intent string
		want         map[string]any
	}{
		{"a: path:string", "read /tmp/x.txt", map[string]any{"path": "/tmp/x.txt"}},
		{"a: limit:integer? offset:integer?", "list with limit 5", map[string]any{"limit": int64(5)}},
		{"a: limit:integer? offset:integer?", "list 5", map[string]any{}}, // which of the two is not plain
		{"a: to:string subject:string? body:string?", `mail ann@b.org with subject "Hello"`, map[string]any{"to": "ann@b.org", "subject": "Hello"}},
		{"a: url:string other:string", "get http://a.b/c", map[string]any{"url": "http://a.b/c"}},
		{"a: source:string destination:string", "copy /a/b to /c/d", map[string]any{}},
		{"a: data:object", `put "x"`, map[string]any{}},
		{"a: price:number", "price 2.50", map[string]any{"price": 2.5}},
		{"a: to:array subject:string?", "email it to ann@example.com", map[string]any{"to": []any{"ann@example.com"}}},
		{"a: to:array", "email it to ann@example.com and bob@example.com", map[string]any{"to": []any{"ann@example.com", "bob@example.com"}}},
	} {
		made := tool(t, c.spec)
		if got := sureArguments(&made, c.intent); !cmp.Equal(got, c.want) {
			t.Errorf("%s for %q: %v, want %v", c.spec, c.intent, got, c.want)
		}
	}
}

// TestUnsureArguments has the values that a plan has after its edges are decided.
func TestUnsureArguments(t *testing.T) {
	for _, c := range []struct {
		input, intent string
		want          map[string]any
	}{
		{`"city":{"type":"string"}`, "What is the weather in New York?", map[string]any{"city": "New York"}},
		{`"city":{"type":"string","description":"as 'Boston, MA'"}`, "What is the weather in New York?", map[string]any{}},
		{`"unit":{"enum":["celsius","fahrenheit"]}`, "the temperature in Fahrenheit", map[string]any{"unit": "fahrenheit"}},
		{`"unit":{"enum":["celsius","fahrenheit"]}`, "from celsius to fahrenheit", map[string]any{}},
		{`"smoking":{"type":"boolean"}`, "a room without smoking", map[string]any{"smoking": false}},
		{`"pool":{"type":"boolean"}`, "a hotel that has a pool", map[string]any{"pool": true}},
		{`"day":{"type":"string","format":"date","description":"YYYY-MM-DD"}`, "on the day 2024-05-06", map[string]any{"day": "2024-05-06"}},
		{`"user_id":{"type":"string"}`, "show the user 4711", map[string]any{"user_id": "4711"}},
		{`"price":{"type":"number"},"n":{"type":"integer"}`, "sell 3 for a price of $1,250.50", map[string]any{"price": 1250.5, "n": int64(3)}},
		{`"countries":{"type":"array","items":{"type":"string"}}`, "the capitals of the countries Chile, Peru and Bolivia", map[string]any{"countries": []any{"Chile", "Peru", "Bolivia"}}},
		{`"numbers":{"type":"array","items":{"type":"number"}}`, "the mean of [1, 2, 3]", map[string]any{"numbers": []any{1., 2., 3.}}},
		{`"name":{"type":"string"},"other":{"type":"string"}`, "show me Ada Lovelace", map[string]any{}},
		{`"projectId":{"type":"string"},"taskId":{"type":"string"}`, "approve task-7 of proj-3", map[string]any{"projectId": "proj-3", "taskId": "task-7"}},
		{`"username":{"type":"string"}`, "show the ranking of neal_wu", map[string]any{"username": "neal_wu"}},
		{`"contract":{"type":"string"}`, "show the contract 0x09ff88ee77dd66cc", map[string]any{"contract": "0x09ff88ee77dd66cc"}},
		{`"selector":{"type":"string"}`, "click input[name=q]", map[string]any{"selector": "input[name=q]"}},
		{`"barcode":{"type":"string"}`, "analyze the product 3017620422003", map[string]any{"barcode": "3017620422003"}},
		{`"city":{"type":"string"}`, "show a mid-range hotel", map[string]any{}},
		{`"comment_id":{"type":"string"},"message":{"type":"string"}`, `post the comment "Looks great"`, map[string]any{"message": "Looks great"}},
		{`"state":{"enum":["open","completed","all"]}`, "list all completed projects", map[string]any{"state": "completed"}},
		{`"way":{"enum":["show","squash"]}`, "show the commit", map[string]any{}},
		{`"way":{"enum":["show","squash"]}`, "show and squash the commit", map[string]any{"way": "squash"}},
		{`"owner":{"type":"string"},"repo":{"type":"string"}`, "list the branches of acme/web-site", map[string]any{"owner": "acme", "repo": "web-site"}},
		{`"owner":{"type":"string"},"repo":{"type":"string"},"title":{"type":"string"}`, `open the issue "Broken link" in acme/site`, map[string]any{"owner": "acme", "repo": "site", "title": "Broken link"}},
		{`"path":{"type":"string"},"content":{"type":"string"}`, "write docs/guide", map[string]any{}},
		{`"where":{"type":"string"}`, "list the branches of acme/site", map[string]any{"where": "acme/site"}},
		{`"category":{"enum":["database","shell"]}`, "problems about databases", map[string]any{"category": "database"}},
		{`"meal":{"type":"string","description":"Type (breakfast, lunch, dinner)"}`, "eggs for lunch", map[string]any{"meal": "lunch"}},
		{`"query":{"type":"string"}`, "search for oat milk, please", map[string]any{"query": "oat milk"}},
		{`"query":{"type":"string"}`, "look for memories about verbs", map[string]any{"query": "verbs"}},
		{`"date":{"anyOf":[{"type":"string"},{"type":"null"}]}`, "what did I eat on 2026-03-04", map[string]any{"date": "2026-03-04"}},
	} {
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal([]byte(`{"properties":{`+c.input+`}}`), &schema); err != nil {
			t.Fatal(err)
		}
		required, _ := json.Marshal(slices.Sorted(maps.Keys(schema.Properties)))
		made, err := catalog.New(catalog.Tool{Name: "show", Input: json.RawMessage(`{"type":"object","properties":{` + c.input + `},"required":` + string(required) + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		valuesOf(c.intent).arguments(&made, span{0, len(c.intent)}, got, false, nil)
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s for %q: %v, want %v", c.input, c.intent, got, c.want)
		}
	}
}

// TestToolInArguments has what the name and the description of a tool say of its arguments.
func TestToolInArguments(t *testing.T) {
	made, err := catalog.New(catalog.Tool{Server: "figma-mcp", Name: "show", Description: "Show a point.\n\nArgs:\n    x (float): Longitude of the point\n    key: The key",
		Input: json.RawMessage(`{"type":"object","properties":{"x":{"type":"number"},"key":{"type":"string"}},"required":["x","key"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	got, intent := map[string]any{}, "show my Figma point at longitude 13.4 in 3 colours"
	valuesOf(intent).arguments(&made, span{0, len(intent)}, got, false, nil)
	if want := map[string]any{"x": 13.4}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestArgumentOfAnotherStep checks that a part without values has the identifier of another part.
func TestArgumentOfAnotherStep(t *testing.T) {
	x := index(t, []catalog.Tool{tool(t, "chess:show_profile: username:string"), tool(t, "chess:show_ranking: username:string")})
	s := suggest(t, x, Request{Intent: "Show the profile of neal_wu, then show his ranking"})
	if len(s.Tasks) != 2 || s.Tasks[1].Arguments["username"] != "neal_wu" || len(s.Missing) > 0 {
		t.Errorf("tasks %+v, missing %v", s.Tasks, s.Missing)
	}
}

func TestSuggest(t *testing.T) {
	x := index(t, office(t))
	s := suggest(t, x, Request{Intent: "List the orders of a customer, limit 5"})
	if got := toolsOf(s); !slices.Equal(got, []string{"crm:find_customer", "crm:list_orders"}) {
		t.Fatalf("tools %v, want the orders and, for the id they require, the customer", got)
	}
	edge := Edge{From: "crm:find_customer", To: "crm:list_orders", DataPath: "output.customerId → input.customerId", Kind: "data", Grade: 1, Reason: "the output has the name of the input", FromTask: "task_0", ToTask: "task_1"}
	if !cmp.Equal(s.DAG.Edges, []Edge{edge}) {
		t.Errorf("edges %+v", s.DAG.Edges)
	}
	if n := s.DAG.Nodes[1]; n.ToolID != "crm:list_orders" || !cmp.Equal(n.Inputs, map[string]any{"limit": int64(5)}) || !slices.Equal(n.Dependencies, []string{"crm:find_customer"}) {
		t.Errorf("node %+v", n)
	}
	if !cmp.Equal(s.Layers, [][]string{{"task_0"}, {"task_1"}}) || !slices.Equal(s.Tasks[1].DependsOn, []string{"task_0"}) {
		t.Errorf("layers %v, tasks %+v", s.Layers, s.Tasks)
	}
	if !cmp.Equal(s.Missing, []Missing{{"task_0", "crm:find_customer", "name", ""}}) {
		t.Errorf("missing %v, want the name", s.Missing)
	}
	if math.Abs(s.Confidence-s.Parts.Value) > 0 || s.Rationale == "" || s.Mode != modeOf(s.Confidence) {
		t.Errorf("confidence %v %+v %v", s.Confidence, s.Parts, s.Mode)
	}

	s = suggest(t, x, Request{Intent: "Delete rows of a table"})
	if got := toolsOf(s); !slices.Equal(got, []string{"db:login", "db:delete_rows"}) || s.DAG.Edges[0].Kind != "declared" || s.Mode == Speculative {
		t.Errorf("%v %+v %v, want the login before what is declared to need it, and no speculation", got, s.DAG.Edges, s.Mode)
	}
	if !s.Tasks[1].Dangerous || !strings.Contains(strings.Join(s.Warnings, "\n"), "dangerous by name, confirm before running: db:delete_rows") {
		t.Errorf("not flagged: %+v, %v", s.Tasks[1], s.Warnings)
	}
}

func TestSuggestAlwaysAnswers(t *testing.T) {
	empty := index(t, nil)
	for name, s := range map[string]*Suggestion{
		"empty catalogue": suggest(t, empty, Request{Intent: "do it"}),
		"nothing fits":    suggest(t, index(t, office(t)), Request{Intent: "zzz qqq"}),
	} {
		b, err := json.Marshal(s)
		if err != nil || strings.Contains(string(b), "null") || s.Mode != ExplicitRequired || len(s.Warnings) == 0 || len(s.Unmatched) == 0 && name == "nothing fits" {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	for name, r := range map[string]Request{"nothing asked": {}, "blank": {Intent: " \n"}, "too many": {Intent: "x", MaxTools: 21}, "negative": {Intent: "x", MaxTools: -1}} {
		if s, err := Suggest(context.Background(), empty, r); err == nil {
			t.Errorf("%s: %+v, want an error", name, s)
		}
	}
}

func TestUnmatched(t *testing.T) {
	s := suggest(t, index(t, office(t)), Request{Intent: "Fetch a web page and paint my garden fence blue", MaxTools: 1})
	if !slices.Equal(s.Unmatched, []string{"paint my garden fence blue"}) {
		t.Errorf("unmatched %q", s.Unmatched)
	}
}

// TestGivenTools: nothing is chosen and nothing added; the worked example of the
// contract (golden 44) comes out, cycles are errors (46).
func TestGivenTools(t *testing.T) {
	x := index(t, toolset(t, "filesystem:read: path:string -> content:string", "json:parse: jsonString:string -> parsed:object",
		"github:create: data:object", "l: a:string -> b:string", "r: b:string -> a:string"))
	s := suggest(t, x, Request{Tools: []string{"github:create", "json:parse", "filesystem:read"}})
	if got := toolsOf(s); !slices.Equal(got, []string{"filesystem:read", "json:parse", "github:create"}) || len(s.Layers) != 3 {
		t.Errorf("order %v in %d layers", got, len(s.Layers))
	}
	var data []string
	for _, e := range s.DAG.Edges {
		data = append(data, e.From+" "+e.DataPath)
	}
	slices.Sort(data)
	if !slices.Equal(data, []string{"filesystem:read output.content → input.jsonString", "json:parse output.parsed → input.data"}) {
		t.Errorf("edges %q", data)
	}
	if _, err := Suggest(context.Background(), x, Request{Tools: []string{"l", "r"}}); !isCycle(err) {
		t.Errorf("error %v, want a cycle", err)
	}
	var unknown *UnknownToolError
	if _, err := Suggest(context.Background(), x, Request{Tools: []string{"l", "nobody"}}); !errors.As(err, &unknown) || !slices.Equal(unknown.IDs, []string{"nobody"}) {
		t.Errorf("error %v, want nobody named", err)
	}
	if s := suggest(t, x, Request{Tools: []string{"l", "l"}}); len(s.DAG.Nodes) != 2 || s.DAG.Nodes[0].ID == s.DAG.Nodes[1].ID {
		t.Errorf("a tool used twice: %+v", s.DAG.Nodes)
	}
}

// TestChainsAreLearnt: where similar intents ran one tool after the other, so
// does the plan, in the order that they and the intent's words say.
func TestChainsAreLearnt(t *testing.T) {
	tools := toolset(t, "book_hotel: ", "book_flight: ", "send_note: ")
	x := index(t, tools,
		toolsearch.Trace{Intent: "book flight and hotel for my trip", Tools: []string{"book_flight", "book_hotel"}, Edges: [][2]int{{0, 1}}},
		toolsearch.Trace{Intent: "book flight and hotel for the team", Tools: []string{"book_flight", "book_hotel"}, Edges: [][2]int{{0, 1}}})
	s := suggest(t, x, Request{Intent: "book flight and hotel for a trip"})
	if got := toolsOf(s); !slices.Equal(got, []string{"book_flight", "book_hotel"}) || len(s.DAG.Edges) != 1 || s.DAG.Edges[0].Kind != "sequence" || len(s.Remembered) != 2 {
		t.Errorf("%v %+v %v", got, s.DAG.Edges, s.Remembered)
	}
	// A word that may refer to an earlier result does not overrule them; "then" does.
	for intent, want := range map[string][]string{
		"book the hotel for the flight and book a flight for that hotel": {"book_flight", "book_hotel"},
		"book a hotel for the trip, then book a flight for it":           {"book_hotel", "book_flight"},
	} {
		if got := toolsOf(suggest(t, x, Request{Intent: intent})); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", intent, got, want)
		}
	}
	// The same tools with nothing learnt are one layer (golden 47).
	if s := suggest(t, index(t, tools), Request{Tools: []string{"book_flight", "book_hotel"}}); len(s.Layers) != 1 || len(s.DAG.Edges) != 0 {
		t.Errorf("%v %+v, want one layer", s.Layers, s.DAG.Edges)
	}
}

func TestDangerous(t *testing.T) {
	for name, want := range map[string]bool{"delete_file": true, "sendEmail": true, "EXECUTE_SHELL": true, "read_file": false, "list": false, "transferFunds": true} {
		if got := Dangerous(name); got != want {
			t.Errorf("Dangerous(%s) = %v", name, got)
		}
	}
}

// TestArrange compares the moves of large plans with the exact order of small ones.
func TestArrange(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(9)
		want := r.Perm(n)
		rank := make([]int, n)
		for at, i := range want {
			rank[i] = at
		}
		e := &evidence{pair: make([][]float64, n)}
		for i := range n {
			e.pair[i] = make([]float64, n)
			for j := range n {
				e.pair[i][j] = float64(rank[j]-rank[i]) * .1
			}
		}
		if got := e.arrange(); !slices.Equal(got, want) {
			t.Fatalf("seed %d: order %v, want %v", seed, got, want)
		}
	}
}

// TestSuggestProperties: whatever the tools, what was learnt and the intent, a
// plan is acyclic, its bindings fit their types, its tools are in the catalogue,
// and the same input gives the same output.
func TestSuggestProperties(t *testing.T) {
	names := []string{"id", "city", "userId", "text", "content", "order", "report", "path", "limit"}
	types := []string{"string", "object", "integer", "array"}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 9))
		var tools []catalog.Tool
		for i := range 2 + r.IntN(20) {
			fields := func() (s string) {
				for _, k := range r.Perm(len(names))[:r.IntN(3)] {
					s += " " + names[k] + ":" + types[r.IntN(len(types))]
				}
				return s
			}
			made := described(t, fmt.Sprintf("t%d: %s -> %s", i, fields(), fields()), testutil.Sentence(r, r.IntN(7)))
			for range r.IntN(2) {
				made.DependsOn = append(made.DependsOn, fmt.Sprintf("t%d", r.IntN(22)))
			}
			tools = append(tools, made)
		}
		var traces []toolsearch.Trace
		for range r.IntN(6) {
			calls := []string{tools[r.IntN(len(tools))].ID, tools[r.IntN(len(tools))].ID, "gone"}
			traces = append(traces, toolsearch.Trace{Intent: testutil.Sentence(r, 5), Tools: calls, Edges: [][2]int{{0, 1}, {1, 2}}})
		}
		x := index(t, tools, traces...)
		req := Request{Intent: testutil.Sentence(r, 1+r.IntN(20)) + ` "quoted" 7 a/b.md`, MaxTools: 1 + r.IntN(8), ContextTools: []string{"t0", "nobody"}}
		s := suggest(t, x, req)
		if again := suggest(t, x, req); !cmp.Equal(s, again) {
			t.Fatalf("seed %d: two plans for one intent:\n%s", seed, cmp.Diff(s, again))
		}
		checkPlan(t, fmt.Sprint("seed ", seed), x, s)
		var all []string
		for _, made := range tools {
			all = append(all, made.ID)
		}
		s, err := Suggest(context.Background(), x, Request{Tools: all})
		if err != nil && !isCycle(err) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err == nil {
			checkPlan(t, fmt.Sprint("given, seed ", seed), x, s)
		}
	}
}

func checkPlan(t *testing.T, name string, x *toolsearch.Index, s *Suggestion) {
	t.Helper()
	at := map[string]int{}
	for n, task := range s.Tasks {
		at[task.ID] = n
		made, ok := x.Tool(task.Tool)
		if !ok || s.DAG.Nodes[n].ToolID != task.Tool {
			t.Fatalf("%s: %s is not in the catalogue or not the node's", name, task.Tool)
		}
		for _, d := range task.DependsOn {
			if before, ok := at[d]; !ok || before >= n || s.Tasks[before].Layer >= task.Layer {
				t.Fatalf("%s: %s waits for %s, which does not come before", name, task.ID, d)
			}
		}
		for path, v := range task.Arguments {
			if _, isList := v.([]any); isList {
				if !slices.ContainsFunc(made.Takes, func(p catalog.Parameter) bool { return p.Path == path && slices.Contains(p.Types, "array") }) {
					t.Fatalf("%s: a list for %s of %s", name, path, task.Tool)
				}
				continue
			}
			i := slices.IndexFunc(made.Takes, func(p catalog.Parameter) bool { return p.Path == path })
			if _, isText := v.(string); i < 0 || isText && !compatible([]string{"string"}, made.Takes[i].Types) || !isText && !compatible([]string{"integer"}, made.Takes[i].Types) {
				t.Fatalf("%s: argument %s = %v of %s", name, path, v, task.Tool)
			}
		}
	}
	p := s.Parts
	if p.estimate(); s.Confidence < 0 || s.Confidence > 1 || len(s.Tasks) > 0 &&
		(math.Abs(s.Confidence-p.Value) > 1e-12 || math.Abs(p.Base-(p.HybridWeight*p.Hybrid+p.PageRankWeight*p.PageRank+p.PathWeight*p.Path)) > 1e-12) {
		t.Fatalf("%s: confidence %v is not what its parts give: %+v", name, s.Confidence, p)
	}
	if !slices.IsSortedFunc(s.DAG.Edges, func(a, b Edge) int {
		return stdcmp.Or(at[a.FromTask]-at[b.FromTask], at[a.ToTask]-at[b.ToTask], strings.Compare(a.DataPath, b.DataPath))
	}) {
		t.Fatalf("%s: edges are not in the order in which they run: %+v", name, s.DAG.Edges)
	}
	for _, e := range s.DAG.Edges {
		if e.Grade < TypeOnly != (e.Kind == TextEdge) || e.Grade > 1 || e.Reason == "" {
			t.Fatalf("%s: grade or reason of %+v", name, e)
		}
		from, ok1 := at[e.FromTask]
		to, ok2 := at[e.ToTask]
		if !ok1 || !ok2 || from >= to || !slices.Contains(s.Tasks[to].DependsOn, e.FromTask) {
			t.Fatalf("%s: edge %+v runs backwards or is no dependency", name, e)
		}
		if e.Kind != "data" {
			continue
		}
		producer, _ := x.Tool(e.From)
		consumer, _ := x.Tool(e.To)
		out, in, _ := strings.Cut(e.DataPath, " → ")
		o := slices.IndexFunc(producer.Gives, func(p catalog.Parameter) bool { return "output."+p.Path == out })
		i := slices.IndexFunc(consumer.Takes, func(p catalog.Parameter) bool { return "input."+p.Path == in })
		if o < 0 || i < 0 || !compatible(producer.Gives[o].Types, consumer.Takes[i].Types) {
			t.Fatalf("%s: binding %+v does not fit", name, e)
		}
	}
}

func FuzzLiterals(f *testing.F) {
	f.Add(`a "b" https://c.d e@f.gh /i/j.md 1.5 'k'`)
	f.Fuzz(func(t *testing.T, s string) {
		last := 0
		for _, l := range toolsearch.Literals(s) {
			if l.Start < last || s[l.Start:l.Start+len(l.Text)] != l.Text {
				t.Fatalf("%q: %+v", s, l)
			}
			last = l.Start + len(l.Text)
		}
	})
}

func isCycle(err error) bool {
	_, ok := errors.AsType[*CycleError](err)
	return ok
}
