package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/folder/index"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/retriever"
)

// maxCalls is how many calls a search of a store may make: the state of the index, one for
// each leg, and the documents of the page. The first search looks up the chunks of each leg.
const maxCalls = 4

// TestCallsOfASearch counts the calls that reach the store, by a server that has
// just begun, by one that has what it can remember, and by one whose memory of the
// state has run out.
func TestCallsOfASearch(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	s := qdranttest.New(t, &qdranttest.Options{Fault: func(_ context.Context, method string) error {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasSuffix(method, "/Scroll") { // reads the names of chunks in the background
			calls = append(calls, method)
		}
		return nil
	}})
	sel, o := folder(t), clustered(t, s.Addr(), "docs")
	for n := range 100 { // fewer chunks than a leg asks for: all of these have equal scores somewhere
		write(t, filepath.Join(sel.Root, fmt.Sprintf("many/%03d.md", n)), fmt.Sprintf("# Session %d\n\nA backup asks for a token of session %d, the login flow of folder %d.\n", n, n, n%7))
	}
	writer := open(t, sel, Owning, o)
	fill(t, writer, index.IndexRequest{})
	if err := writer.Close(); err != nil { // its own calls are not counted
		t.Fatal(err)
	}
	now := time.Now()
	o.Now = func() time.Time { return now }
	ask := func(when string, w *Workspace, q retriever.Query, search func(retriever.Query) error) {
		t.Helper()
		mu.Lock()
		calls = nil
		mu.Unlock()
		if err := search(q); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		limit := maxCalls
		if when == "at first" {
			limit++
		}
		if len(calls) > limit {
			t.Errorf("%s, %s search of %q: %d calls, want at most %d:\n%s", when, q.Mode, q.Text, len(calls), limit, strings.Join(calls, "\n"))
		}
	}
	for _, mode := range []retriever.Mode{retriever.Hybrid, retriever.Keyword, retriever.Semantic} {
		for _, text := range []string{"login flow", `"asks for a token"`, "session token folder", "backup"} {
			w := server(t, o)
			q := retriever.Query{Text: text, Mode: mode}
			search := func(q retriever.Query) error {
				_, err := index.SearchOp.Call(t.Context(), w.Folder, q, nil)
				return err
			}
			explain := func(q retriever.Query) error {
				_, err := index.ExplainOp.Call(t.Context(), w.Folder, index.ExplainRequest{Query: q}, nil)
				return err
			}
			ask("at first", w, q, search)
			ask("again", w, q, search)
			now = now.Add(time.Hour)
			ask("after an hour", w, q, search)
			q.Explain, q.MaxTokens = true, 2000
			ask("with components and a budget", w, q, search)
			ask("explained", w, q, explain)
			now = now.Add(time.Hour)
			ask("explained after an hour", w, q, explain)
		}
	}
}

// BenchmarkSearchOfAStore searches and reads documents of a store. server-ms/op is the
// processor time that a real server would take: see qdranttest.Measured.
func BenchmarkSearchOfAStore(b *testing.B) {
	s := qdranttest.New(b, nil)
	sel, o := folder(b), clustered(b, s.Addr(), "docs")
	for n := range 400 {
		var words strings.Builder
		for i := range 40 + n%60 {
			fmt.Fprintf(&words, " %s%d", []string{"login", "flow", "token", "part"}[i%4], (n*i)%(7+n%11))
		}
		write(b, filepath.Join(sel.Root, fmt.Sprintf("many/%03d.md", n)), fmt.Sprintf("# Session %d\n\nA login flow of folder %d.\n\n## Words\n\nA session token:%s\n", n, n%7, &words))
	}
	fill(b, open(b, sel, Owning, o), index.IndexRequest{})
	w := server(b, o)
	run := func(name string, op func(n int) error) {
		b.Run(name, func(b *testing.B) {
			calls, spent := s.Calls(), s.Spent()
			for n := 0; b.Loop(); n++ {
				if err := op(n); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.Calls()-calls)/float64(b.N), "calls/op")
			b.ReportMetric(float64((s.Spent()-spent).Microseconds())/1e3/float64(b.N), "server-ms/op")
		})
	}
	for _, mode := range []retriever.Mode{retriever.Hybrid, retriever.Keyword, retriever.Semantic} {
		run(string(mode), func(n int) error {
			text := fmt.Sprintf("session login%d flow%d token%d", n%7, n%11, n%13)
			_, err := index.SearchOp.Call(b.Context(), w.Folder, retriever.Query{Text: text, Mode: mode}, nil)
			return err
		})
	}
	run("read", func(n int) error {
		_, err := index.ReadOp.Call(b.Context(), w.Folder, retriever.ReadRequest{Path: fmt.Sprintf("many/%03d.md#words", n%400)}, nil)
		return err
	})
}
