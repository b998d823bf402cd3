package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/base/job"
	"cairn/internal/folder/index"
	"cairn/internal/store"
	"cairn/models/bpe"
	"cairn/retriever"
)

func request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

func TestParseReadContext(t *testing.T) {
	long := strings.Repeat("ü", 200)
	for _, c := range []struct {
		args string
		want retriever.Query
		bad  string // part of the message
	}{
		{args: `{"query":"auth flow"}`, want: retriever.Query{Text: "auth flow", Mode: "hybrid"}},
		{args: `{"query":"a","mode":"keyword","semantic":true}`, want: retriever.Query{Text: "a", Mode: "keyword"}},
		{args: `{"query":"a","semantic":true}`, want: retriever.Query{Text: "a", Mode: "semantic"}},
		{args: `{"query":"a","semantic":false,"mode":null,"filters":null,"limit":null}`, want: retriever.Query{Text: "a", Mode: "hybrid"}},
		{args: `{"query":"a","limit":50.0}`, want: retriever.Query{Text: "a", Mode: "hybrid", Limit: 50}},
		{args: `{"query":"` + long + `"}`, want: retriever.Query{Text: long, Mode: "hybrid"}},
		{args: `{"query":"a","filters":{"tags":["AUTH","x"],"priority":"HIGH","assignee":"@me","path_prefix":"docs/"}}`,
			want: retriever.Query{Text: "a", Mode: "hybrid", Filter: store.Filter{Tags: []string{"AUTH", "x"}, Priority: "HIGH", Assignee: "@me", PathPrefix: "docs/"}}},
		{args: `{"query":"a","cursor":"abc","max_tokens":900,"explain":true}`, want: retriever.Query{Text: "a", Mode: "hybrid", Cursor: "abc", MaxTokens: 900, Explain: true}},
		{args: `{"query":"a","limit":0}`, bad: "limit: 0"},
		{args: `{"query":"a","limit":"5"}`, bad: "limit: got string, want integer"},
		{args: `{"query":"a","limit":2.5}`, bad: "want integer"},
		{args: `{"query":"a","max_tokens":0}`, bad: "max_tokens: 0"},
		{args: `{"query":"a","mode":""}`, bad: `unknown mode "", want {keyword,semantic,hybrid,regexp}`},
		{args: `{"query":"a","format":"text"}`, bad: `format: unknown format "text", want {json} or no format`},
		{args: `{"query":"a","filters":{"kind":"pdf"}}`, bad: `kind: unknown kind "pdf", want {docs,code,cards,notes}`},
		{args: `{"query":7}`, bad: "query: got number, want string"},
		{args: `{"query":"a","semantic":"yes"}`, bad: "semantic: got string, want boolean"},
		{args: `{"query":"a","filters":{"tag":["x"]}}`, bad: `filters: unknown argument "tag", want {tags,priority,assignee,path_prefix,kind}`},
		{args: `{"query":"a","k":3}`, bad: `unknown argument "k", want {query,limit,mode`},
		{args: `{"query":"a"} {}`, bad: "trailing data"},
		{args: `[]`, bad: "must be an object"},
	} {
		got, err := parseReadContext(c.args)
		if c.bad != "" {
			f, ok := err.(*Failure)
			if !ok || f.Code != -32602 || !strings.Contains(f.Message, c.bad) {
				t.Errorf("%s: error %v, want -32602 with %q", c.args, err, c.bad)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.args, err, diff)
		}
	}
}

func parseReadContext(args string) (retriever.Query, error) {
	var a readContextArgs
	if err := decode(json.RawMessage(args), &a); err != nil {
		return retriever.Query{}, err
	}
	return a.query(retriever.Hybrid)
}

// TestPipelined sends 64 requests at once. The engine answers none of them
// before maxRunning are being worked on, so the test hangs unless they run
// at the same time.
func TestPipelined(t *testing.T) {
	var running atomic.Int32
	many := make(chan struct{})
	e := &fake{}
	e.search = func(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
		if running.Add(1) == maxRunning {
			close(many)
		}
		<-many
		return (&fake{}).Search(ctx, q)
	}
	s := newSession(t, e.folder(), &Options{NoRateLimit: true})
	lines := []string{request(1000, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`)}
	for id := range 64 {
		if id%2 == 0 {
			lines = append(lines, request(id, "read_context", `{"query":"a"}`))
		} else {
			lines = append(lines, request(id, "tools/call", `{"name":"read_context","arguments":{"query":"a"}}`))
		}
	}
	go s.sendAll(lines...)
	seen := map[float64]bool{}
	for range len(lines) {
		var m struct {
			ID    float64
			Error any
		}
		line := s.receive()
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error != nil || seen[m.ID] {
			t.Fatalf("answer %s: %v, want one result for each id", line, err)
		}
		seen[m.ID] = true
	}
	if rest := s.close(); rest != "" {
		t.Errorf("more answers than requests: %s", rest)
	}
}

func TestEndOfInputFlushesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &fake{search: func(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
			time.Sleep(time.Second) // the bubble's clock
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return (&fake{}).Search(ctx, q)
		}}
		s := newSession(t, e.folder(), nil)
		s.send(request(1, "read_context", `{"query":"a"}`), request(2, "read_context", `{"query":"b"}`))
		start := time.Now()
		rest := s.close()
		if got := strings.Count(rest, `"result"`); got != 2 {
			t.Errorf("%d of 2 answers arrived after the end of the input:\n%s", got, rest)
		}
		if took := time.Since(start); took >= 2*time.Second {
			t.Errorf("the session ended %v after its input, want less than 2 s", took)
		}
	})
}

// TestEndOfInputCancels: a call that never ends does not keep the process alive.
func TestEndOfInputCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &fake{search: func(ctx context.Context, _ retriever.Query) (*retriever.Answer, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		s := newSession(t, e.folder(), nil)
		s.send(request(1, "read_context", `{"query":"a"}`))
		start := time.Now()
		s.close()
		if took := time.Since(start); took >= 2*time.Second {
			t.Errorf("the session ended %v after its input, want less than 2 s", took)
		}
	})
}

func TestShutdownAnswersWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		inRead, inWrite := io.Pipe()
		var out bytes.Buffer
		done := make(chan error, 1)
		go func() { done <- New((&fake{}).folder(), nil).ServeStdio(ctx, inRead, &out) }()
		go io.WriteString(inWrite, request(1, "read_context", `{"query":"a"}`)+"\n")
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServeStdio = %v", err)
		}
		if !strings.Contains(out.String(), `"result"`) {
			t.Errorf("after a shutdown: %q, want the answer to what was sent before", &out)
		}
		inWrite.Close()
	})
}

func TestCancelledNotificationEndsADirectCall(t *testing.T) {
	e := &fake{search: func(ctx context.Context, _ retriever.Query) (*retriever.Answer, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	s := newSession(t, e.folder(), nil)
	s.send(request(1, "read_context", `{"query":"a"}`), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if line := s.receive(); !strings.Contains(line, "cancelled") {
		t.Errorf("answer %s, want one that says cancelled", line)
	}
	s.close()
}

// TestPanic: a panic of a tool or method fails its call, and the session answers the next ones.
func TestPanic(t *testing.T) {
	e := &fake{search: func(_ context.Context, q retriever.Query) (*retriever.Answer, error) {
		var none []string
		return nil, errors.New(none[len(q.Text)])
	}}
	var log strings.Builder
	s := newSession(t, e.folder(), &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.send(request(0, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	for id, params := range []string{
		`{"name":"read_context","arguments":{"query":"a"}}`,
		`{"name":"read_context","arguments":{"query":"a"},"_meta":{"progressToken":1}}`, // through the SDK
	} {
		s.send(request(id+1, "tools/call", params))
		if line := s.receive(); !strings.Contains(line, `"isError":true`) || !strings.Contains(line, "index out of range") {
			t.Errorf("answer %s, want an error with the cause", line)
		}
	}
	s.send(request(7, "prompts/get", `{"name":"find","arguments":{"question":"a"}}`))
	if line := s.receive(); !strings.Contains(line, `"code":-32603`) || !strings.Contains(line, "index out of range") {
		t.Errorf("prompt %s, want an error with the cause", line)
	}
	s.send(request(9, "tools/call", `{"name":"status","arguments":{}}`))
	if line := s.receive(); strings.Contains(line, "error") {
		t.Errorf("the next call: %s, want an answer", line)
	}
	s.close()
	if !strings.Contains(log.String(), "server_test.go") {
		t.Errorf("log %q, want the stack", log.String())
	}
}

// TestLongArgumentInFailure: a failure quotes the beginning of a long argument.
func TestLongArgumentInFailure(t *testing.T) {
	s := newSession(t, (&fake{}).folder(), nil)
	s.send(request(1, "read_context", `{"query":"a","mode":"`+strings.Repeat("x", 100_000)+`"}`))
	if line := s.receive(); !strings.Contains(line, "unknown mode") || len(line) > 5000 {
		t.Errorf("%d bytes: %.200s", len(line), line)
	}
	s.close()
}

// TestRateLimit is the specification's example: 15 calls pass, the 16th is
// refused; both ways of calling share the count.
func TestRateLimit(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newSession(t, (&fake{}).folder(), &Options{Now: func() time.Time { return now }})
	s.send(request(0, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	s.receive()
	for i := range 16 {
		method, params := "read_context", `{"query":"a"}`
		if i%2 == 1 {
			method, params = "tools/call", `{"name":"read_context","arguments":{"query":"a"}}`
		}
		s.send(request(i+1, method, params))
		line := s.receive()
		refused := strings.Contains(line, `"code":429`)
		if refused != (i == 15) {
			t.Errorf("call %d is refused: %v, want only the 16th\n%s", i+1, refused, line)
		}
		if refused && !strings.Contains(line, `"retry_after_seconds":60`) {
			t.Errorf("refusal %s, want retry_after_seconds 60", line)
		}
	}
	s.close()
}

func TestIndexReturnsWhileARunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &fake{index: func(ctx context.Context, _ index.IndexRequest, _ func(job.Progress)) (*index.IndexReport, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		s := newSession(t, e.folder(), nil)
		s.send(request(1, "index", `{"wait_seconds":3}`))
		start := time.Now()
		line := s.receive()
		if took := time.Since(start); took != 3*time.Second || !strings.Contains(line, `"done":false`) || !strings.Contains(line, `"status":{`) {
			t.Errorf("after %v: %s, want done=false with the status after 3 s", took, line)
		}
		s.close()
	})
}

func TestOversizedLine(t *testing.T) {
	s := newSession(t, (&fake{}).folder(), nil)
	go s.sendAll(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`+strings.Repeat("a", maxLine)+`"}}`, request(2, "ping", `{}`))
	if line := s.receive(); !strings.Contains(line, "-32600") || !strings.Contains(line, `"id":1,`) {
		t.Errorf("answer %.200s, want -32600 with the id", line)
	}
	if line := s.receive(); !strings.Contains(line, `"id":2`) {
		t.Errorf("answer %.200s, want the next request's", line)
	}
	s.close()
}

// TestSchemas checks real answers, failures included, against the schemas, and the
// size of the whole list against its budget.
func TestSchemas(t *testing.T) {
	s := New((&fake{}).folder(), nil)
	tokens, counter := 0, &bpe.Counter{}
	for _, tool := range s.tools {
		def, err := json.Marshal(tool.definition())
		if err != nil {
			t.Fatal(err)
		}
		tokens += counter.CountTokens(string(def))
		for name, schema := range map[string]*jsonschema.Schema{"input": argumentSchema(tool.args), "output": answerSchema(tool.answers)} {
			if schema.Type != "object" {
				t.Errorf("%s: the %s schema is not an object at its root", tool.name, name)
			}
		}
		resolved := outputSchema(t, tool)
		for _, args := range []string{`{"query":"a"}`, `{"path":"docs/auth.md"}`, `{"paths":["docs/auth.md","docs/missing.md"]}`, `{}`, `{"no":1}`} {
			answer, f := s.do(t.Context(), "t", tool, call{args: json.RawMessage(args)})
			if f != nil {
				answer = f
			}
			text, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			var instance any
			if err := json.Unmarshal(text, &instance); err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(instance); err != nil {
				t.Errorf("%s(%s) answers %s, which its schema refuses: %v", tool.name, args, text, err)
			}
		}
	}
	t.Logf("the definitions take %d tokens", tokens)
	if tokens > 3000 {
		t.Errorf("the definitions take %d tokens, want at most 3000", tokens)
	}
}

// TestParamsOfEveryMethod: a request of any method is answered for any parameters, and the
// session answers the next request.
func TestParamsOfEveryMethod(t *testing.T) {
	for method := range sdkMethods {
		for _, params := range []string{"", "null", "{}", "[]", `"x"`, `{"uri":"cairn://a\u0000\u007f"}`, `{"uri":"file:\u0007"}`, `{"cursor":"\u0000"}`} {
			if method == "subscriptions/listen" && params == "{}" {
				continue // a stream
			}
			var log strings.Builder
			s := newSession(t, (&fake{}).folder(), &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			s.send(request(0, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
			s.receive()
			s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			r := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
			if params == "" {
				r = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, method)
			}
			s.send(r, request(2, "ping", "{}"))
			both := s.receive() + s.receive()
			if !strings.Contains(both, `"id":1`) || !strings.Contains(both, `"id":2,"result"`) || log.Len() > 0 {
				t.Errorf("%s: %s, log %s", r, both, log.String())
			}
			s.close()
		}
	}
}
