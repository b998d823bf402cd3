package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/graphrank"
	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/usage"
)

// answerOf is what search_tools answers on a box, without a session.
func answerOf(t *testing.T, box *owner.Folder) string {
	t.Helper()
	answer, f := New((&fake{}).folder(), &Options{Groups: []Group{Catalog}, Toolbox: box}).Call(t.Context(), "search_tools", json.RawMessage(`{"query":"reads a file","context_tools":["fs:write"],"include_related":true}`))
	if f != nil {
		t.Fatal(f)
	}
	text, err := marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func edgesOf(t *testing.T, box *owner.Folder) (list []string) {
	t.Helper()
	if err := new(toolbox.Graph).Read(t.Context(), box, func(g *graphrank.Graph) {
		for e := range g.Edges() {
			list = append(list, e.From+" > "+e.To)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// work is one piece of work: search, fetch a hit, search, fetch a hit.
var work = []struct{ tool, args string }{
	{"search_tools", `{"query":"write"}`},
	{"get_tool", `{"name":"write"}`},
	{"search_tools", `{"query":"stat"}`},
	{"get_tool", `{"name":"fs:stat"}`},
	{"get_tool", `{"name":"nobody"}`},
}

// TestSessionsTeach: tools that agents fetch together over stdio and HTTP change the
// order from the third such session on, forgetting restores the order byte for
// byte, and without a recorder nothing is recorded.
func TestSessionsTeach(t *testing.T) {
	stdio := func(t *testing.T, o *Options) {
		s := newSession(t, (&fake{}).folder(), o)
		for i, step := range work {
			s.send(request(i+1, step.tool, step.args))
			if got := s.receive(); !strings.Contains(got, fmt.Sprintf(`"id":%d`, i+1)) {
				t.Fatalf("%s is answered with %s", step.tool, got)
			}
		}
		s.close()
	}
	overHTTP := func(caller as) func(*testing.T, *Options) {
		return func(t *testing.T, o *Options) {
			_, server := startHTTP(t, (&fake{}).folder(), o, nil)
			session := connectHTTP(t, server.URL, caller, nil)
			for _, step := range work {
				if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: step.tool, Arguments: json.RawMessage(step.args)}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *Options)
	}{{"stdio", stdio}, {"http", overHTTP("w-ann")}} {
		t.Run(c.name, func(t *testing.T) {
			box := openBox(t)
			hybrid := answerOf(t, box)
			for n := range graphrank.ObservedAfter + 1 {
				c.run(t, &Options{Groups: []Group{Catalog}, Toolbox: box})
				if got := answerOf(t, box); n < graphrank.ObservedAfter && got != hybrid {
					t.Fatalf("after %d recorded sessions the answer is\n%s\nwant\n%s", n, got, hybrid)
				} else if n == graphrank.ObservedAfter && (got == hybrid || !slices.Contains(edgesOf(t, box), "fs:write > fs:stat")) {
					t.Errorf("after %d recorded sessions the answer is still\n%s\nwith edges %v", n, got, edgesOf(t, box))
				}
				if intents, err := intentsOf(t, box); err != nil || len(intents) != 2*(n/graphrank.ObservedAfter) {
					t.Errorf("after %d sessions %+v is remembered, %v", n, intents, err)
				}
				r := Record(box, nil)
				c.run(t, &Options{Groups: []Group{Catalog}, Toolbox: box, Recorder: r})
				r.Close()
			}
			if _, err := toolbox.ForgetOp.Call(t.Context(), box, toolbox.ForgetRequest{Name: "fs:stat"}, nil); err != nil {
				t.Fatal(err)
			}
			if got := edgesOf(t, box); len(got) > 0 {
				t.Errorf("after forgetting there are edges: %v", got)
			}
			if _, err := toolbox.ForgetOp.Call(t.Context(), box, toolbox.ForgetRequest{All: true}, nil); err != nil {
				t.Fatal(err)
			}
			if got := answerOf(t, box); got != hybrid {
				t.Errorf("after forgetting the answer is\n%s\nwant\n%s", got, hybrid)
			}
		})
	}
}

// TestPlansTeach: a plan whose tools are fetched is recorded, and what record_usage
// reports is not recorded twice.
func TestPlansTeach(t *testing.T) {
	box := openBox(t)
	for range graphrank.ObservedAfter {
		r := Record(box, nil)
		s := New((&fake{}).folder(), &Options{Groups: []Group{Catalog}, Toolbox: box, Recorder: r})
		do := func(session, tool, args string) {
			t.Helper()
			c, _ := s.find(tool)
			if _, f := s.do(s.requestContext(t.Context(), session), session, c, call{args: json.RawMessage(args)}); f != nil {
				t.Fatal(f)
			}
		}
		do("plan", "suggest_dag", `{"tools":["read","stat"]}`)
		do("plan", "get_tool", `{"name":"read"}`)
		do("plan", "get_tool", `{"name":"stat"}`)
		do("telling", "get_tool", `{"name":"write"}`)
		do("telling", "get_tool", `{"name":"fs:copy"}`)
		do("telling", "record_usage", `{"calls":[{"tool":"write"},{"tool":"fs:copy"}]}`)
		do("other", "get_tool", `{"name":"net:copy"}`)
		r.Close()
	}
	var got []string
	if err := new(toolbox.Graph).Read(t.Context(), box, func(g *graphrank.Graph) {
		for e := range g.Edges() {
			got = append(got, fmt.Sprintf("%s > %s %.0f", e.From, e.To, e.Count))
		}
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if want := []string{"fs:stat > fs:read 3", "fs:write > fs:copy 3"}; !slices.Equal(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
}

// TestRecorderIsBounded: a disk that does not keep up costs changes, never a
// caller's time, and sessions beyond the bound end.
func TestRecorderIsBounded(t *testing.T) {
	box := openBox(t)
	stopped := &Recorder{} // commits nothing
	one := usage.NewSession(stopped.enqueue, nil)
	for i := range 2 * maxQueue {
		one.Used(graphrank.DocumentID(fmt.Sprint(i%2, ".md")))
	}
	if n := len(stopped.queue.Observations); n != maxQueue {
		t.Errorf("%d observations wait, want %d", n, maxQueue)
	}
	r := Record(box, nil)
	for i := range 2 * maxSessions {
		r.record(fmt.Sprint("session ", i), func(s *usage.Session) {
			s.Searched("q", []string{"fs:read"})
			s.Fetched("fs:read")
		})
	}
	if n := r.sessions.Len(); n != maxSessions {
		t.Errorf("%d sessions are in memory, want %d", n, maxSessions)
	}
	r.Close()
	if intents, err := intentsOf(t, box); err != nil || len(intents) != 1 || intents[0].Count != 2*maxSessions {
		t.Errorf("%+v, %v, want one intent of all sessions", intents, err)
	}
	never := func(*usage.Session) { t.Error("a call without a session, or after the end, is recorded") }
	record(t.Context(), never)
	r.record("late", never)
}

// TestWhoseWork: over HTTP the calls of a session, or of a token, are recorded as one
// agent's work; those of clients that cannot be told apart are not recorded.
func TestWhoseWork(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		noted  bool
	}{
		{"session", nil, true},
		{"token", []string{"X-Caller", "w-ann", "Mcp-Protocol-Version", firstStateless}, true},
		{"nobody", []string{"Mcp-Protocol-Version", firstStateless}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := openBox(t)
			r := Record(box, nil)
			_, server := startHTTP(t, (&fake{}).folder(), &Options{Groups: []Group{Catalog}, Toolbox: box, Recorder: r}, nil)
			for range graphrank.ObservedAfter {
				header, meta := slices.Clone(c.header), `,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+firstStateless+`","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"}}`
				if c.header == nil {
					_, _, got := post(t, server.URL, request(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
					header, meta = []string{"Mcp-Session-Id", got.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}, ""
					post(t, server.URL, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header...)
				}
				for i, step := range work {
					more := header
					if meta != "" {
						more = append(slices.Clone(header), "Mcp-Method", "tools/call", "Mcp-Name", step.tool)
					}
					status, answer, _ := post(t, server.URL, request(2+i, "tools/call", `{"name":"`+step.tool+`","arguments":`+step.args+meta+`}`), more...)
					if status != 200 {
						t.Fatalf("%s: %d %s", step.tool, status, answer)
					}
				}
				if c.name == "token" { // a token's work goes on; the pause between two pieces of it is the store's to see
					r.Close()
					r = Record(box, nil)
					_, server = startHTTP(t, (&fake{}).folder(), &Options{Groups: []Group{Catalog}, Toolbox: box, Recorder: r}, nil)
				}
			}
			r.Close()
			if got := slices.Contains(edgesOf(t, box), "fs:write > fs:stat"); got != c.noted {
				t.Errorf("noted: %v with edges %v, want %v", got, edgesOf(t, box), c.noted)
			}
		})
	}
}

// intentsOf returns the intents that count.
func intentsOf(t *testing.T, box *owner.Folder) (list []usage.Intent, err error) {
	_, err = toolbox.ExportOp.Call(t.Context(), box, struct{}{}, func(x toolbox.Exported) {
		if x.Intent != nil && !x.Intent.Weak {
			list = append(list, *x.Intent)
		}
	})
	return list, err
}
