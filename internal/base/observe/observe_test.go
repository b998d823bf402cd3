package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// recorder appends each event it receives to a list.
type recorder struct {
	name   string
	events *[]string
}

func (r recorder) record(format string, args ...any) {
	*r.events = append(*r.events, r.name+" "+fmt.Sprintf(format, args...))
}

func (r recorder) Begin(ctx context.Context, c *Call) context.Context {
	r.record("begin %s", c.Tool)
	return context.WithValue(ctx, r, true)
}

func (r recorder) End(ctx context.Context, c *Call, o Outcome, _ time.Duration) {
	r.record("end %s %s %v", c.Tool, o.Status, ctx.Value(r))
}

func (r recorder) Stage(_ context.Context, s Stage, start time.Time, took time.Duration) {
	r.record("stage %s %v", s, !start.IsZero() && took >= 0)
}

func (r recorder) Cached(_ context.Context, hit bool) { r.record("cached %v", hit) }

func TestListeners(t *testing.T) {
	var events []string
	a, b := recorder{"a", &events}, recorder{"b", &events}
	if Join() != nil || Join(nil, nil) != nil {
		t.Error("joining no listeners gives a listener")
	}
	both := Join(nil, a, b)
	ctx := both.Begin(t.Context(), &Call{Tool: "x"})
	both.End(ctx, &Call{Tool: "x"}, Outcome{Status: OK}, 0)
	// A listener to a part of a call adds to the listeners to the whole.
	inner := With(With(t.Context(), a), b)
	timer := Begin(inner, Embed)
	Cached(inner, false)
	timer.End(inner)
	want := "a begin x|b begin x|a end x ok true|b end x ok true|a cached false|b cached false|a stage embed true|b stage embed true"
	if got := strings.Join(events, "|"); got != want {
		t.Errorf("events %s\nwant %s", got, want)
	}
	events = nil
	quiet := With(t.Context(), nil)
	Begin(quiet, Keyword).End(quiet)
	Cached(quiet, true)
	if len(events) > 0 {
		t.Errorf("events %v without a listener", events)
	}
}

func TestStageNames(t *testing.T) {
	seen := map[string]bool{}
	for s := range Stages {
		if name := s.String(); name == "" || seen[name] || strings.HasPrefix(name, "stage ") {
			t.Errorf("stage %d is called %q", s, name)
		}
		seen[s.String()] = true
	}
	if got := Stages.String(); got != fmt.Sprintf("stage %d", Stages) {
		t.Errorf("an invalid stage is called %q", got)
	}
}

func TestIDs(t *testing.T) {
	if a, b := NewID(), NewID(); a == b || !id.MatchString(a) {
		t.Errorf("two calls are called %q and %q", a, b)
	}
	if got := IDOf("abc-1.2:3"); got != "abc-1.2:3" {
		t.Errorf("the ID abc-1.2:3 became %q", got)
	}
	for _, bad := range []string{"", "a b", "x\nlevel=ERROR", strings.Repeat("x", 65)} {
		if got := IDOf(bad); got == bad || !id.MatchString(got) {
			t.Errorf("the ID %q became %q", bad, got)
		}
	}
	if got := ID(WithID(t.Context(), "r1")) + ID(t.Context()); got != "r1" {
		t.Errorf("IDs of two contexts are %q, want r1 and none", got)
	}
}

func TestLog(t *testing.T) {
	for _, c := range []struct {
		name      string
		call      Call
		outcome   Outcome
		arguments bool
		level     slog.Level
		want      map[string]any // nil: no line
	}{
		{"a call", Call{ID: "1", Tool: "read_context", Workspace: "a", Arguments: json.RawMessage(`{"query":"secret"}`)}, Outcome{Status: OK}, false, slog.LevelInfo,
			map[string]any{"level": "INFO", "msg": "call", "id": "1", "tool": "read_context", "workspace": "a", "status": "ok", "took_ms": 1.5}},
		{"arguments asked for", Call{ID: "1", Tool: "x", TraceID: "ab", Arguments: json.RawMessage(`{"query":"q"}`)}, Outcome{Status: Refused, Code: 1001}, true, slog.LevelInfo,
			map[string]any{"level": "INFO", "msg": "call", "id": "1", "tool": "x", "status": "refused", "code": 1001.0, "took_ms": 1.5, "trace": "ab", "arguments": `{"query":"q"}`}},
		{"below the level", Call{ID: "1", Tool: "x"}, Outcome{Status: OK}, false, slog.LevelWarn, nil},
		{"a request at info", Call{ID: "1", Method: "GET", Route: "/"}, Outcome{Status: OK, Code: 200}, false, slog.LevelInfo, nil},
		{"a request at debug", Call{ID: "1", Method: "GET", Route: "/", Arguments: json.RawMessage(`{}`)}, Outcome{Status: OK, Code: 200}, false, slog.LevelDebug,
			map[string]any{"level": "DEBUG", "msg": "request", "id": "1", "method": "GET", "route": "/", "status": "ok", "code": 200.0, "took_ms": 1.5}},
		{"a refused request", Call{ID: "1", Method: "GET"}, Outcome{Status: Refused, Code: 404}, false, slog.LevelInfo,
			map[string]any{"level": "INFO", "msg": "request", "id": "1", "method": "GET", "route": "", "status": "refused", "code": 404.0, "took_ms": 1.5}},
		{"a failure", Call{ID: "1", Tool: "x"}, Outcome{Status: Failed, Code: -32603}, false, slog.LevelWarn,
			map[string]any{"level": "WARN", "msg": "call", "id": "1", "tool": "x", "status": "failed", "code": -32603.0, "took_ms": 1.5}},
	} {
		var b bytes.Buffer
		l := Log(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: c.level})), c.arguments)
		l.End(l.Begin(t.Context(), &c.call), &c.call, c.outcome, 1500*time.Microsecond)
		var got map[string]any
		if b.Len() > 0 {
			if err := json.Unmarshal(b.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v in %s", c.name, err, b.String())
			}
			delete(got, "time")
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	var b bytes.Buffer
	long := Call{ID: "1", Tool: "x", Arguments: bytes.Repeat([]byte("x"), 5000)}
	Log(slog.New(slog.NewTextHandler(&b, nil)), true).End(t.Context(), &long, Outcome{Status: OK}, 0)
	if n := strings.Count(b.String(), "x"); n < maxArguments || n > maxArguments+10 {
		t.Errorf("%d bytes of 5000 bytes of arguments are logged, want %d", n, maxArguments)
	}
}

// TestCost: every query measures its stages, so that must not allocate.
func TestCost(t *testing.T) {
	ctx := With(WithID(t.Context(), "x"), Silent{})
	for name, ctx := range map[string]context.Context{"with a listener": ctx, "without": t.Context()} {
		if n := testing.AllocsPerRun(100, func() {
			timer := Begin(ctx, Embed)
			Cached(ctx, true)
			timer.End(ctx)
		}); n != 0 {
			t.Errorf("%s: a stage allocates %g times, want 0", name, n)
		}
	}
}

func BenchmarkStage(b *testing.B) {
	for name, ctx := range map[string]context.Context{"with a listener": With(b.Context(), Silent{}), "without": b.Context()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				timer := Begin(ctx, Embed)
				timer.End(ctx)
			}
		})
	}
}
