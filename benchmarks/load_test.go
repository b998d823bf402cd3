package benchmarks

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLoad: every query is asked as often as it should be, by as many clients
// as there are at most, and what goes wrong is counted.
func TestLoad(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	var now, most atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer now.Add(-1)
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		q := r.URL.Query().Get("q")
		mu.Lock()
		asked[q]++
		mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bearer t":
			w.WriteHeader(401)
		case q == "broken":
			w.WriteHeader(500)
		case q == "nothing":
			fmt.Fprint(w, `{"results":[],"degraded":[]}`)
		case q == "words":
			fmt.Fprint(w, `{"results":[{}],"degraded":["vectors"]}`)
		default:
			fmt.Fprint(w, `{"results":[{}],"degraded":[]}`)
		}
	}))
	defer server.Close()
	queries := []string{"a", "broken", "nothing", "words"}
	for _, rate := range []float64{0, 2000} {
		clear(asked)
		r, err := Load(t.Context(), LoadOptions{URL: server.URL, Token: "t", Queries: queries, Requests: 40, Clients: 4, Rate: rate})
		if err != nil {
			t.Fatal(err)
		}
		if r.Errors != 10 || r.Empty != 10 || r.Degraded != 10 || r.Requests != 40 || r.Distinct != 4 || !strings.Contains(r.FirstError, "500") {
			t.Errorf("at rate %g: %+v, want 10 errors, 10 empty and 10 degraded of 40", rate, r)
		}
		if asked["a"] != 11 || asked["words"] != 10 { // one of the first query ahead
			t.Errorf("at rate %g: asked %v, want each 10 times", rate, asked)
		}
		if r.P50 <= 0 || r.P95 < r.P50 || r.Longest < r.P99 || r.PerSecond <= 0 {
			t.Errorf("at rate %g: times out of order: %+v", rate, r)
		}
	}
	if n := most.Load(); n > 4 {
		t.Errorf("%d requests at once, want at most 4", n)
	}
	if _, err := Load(t.Context(), LoadOptions{URL: server.URL, Queries: queries}); err == nil {
		t.Error("without a token: no error")
	}
	if _, err := Load(t.Context(), LoadOptions{URL: server.URL}); err == nil {
		t.Error("without queries: no error")
	}
}

// TestLoadCountsFromTheMomentDue: with one client and a server that takes its
// time, an open loop shows how far the server falls behind.
func TestLoadCountsFromTheMomentDue(t *testing.T) {
	gate := make(chan struct{})
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 2 {
			<-gate // the first search of the load waits until all are due
		}
		fmt.Fprint(w, `{"results":[{}]}`)
	}))
	defer server.Close()
	ended := make(chan *LoadReport, 1)
	go func() {
		r, err := Load(t.Context(), LoadOptions{URL: server.URL, Queries: []string{"a"}, Requests: 20, Clients: 1, Rate: 200})
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	// The gate opens after the last was due: 20 at 200 a second take 95 ms.
	r, err := Load(t.Context(), LoadOptions{URL: httptestCounter(t), Queries: []string{"a"}, Requests: 40, Clients: 1, Rate: 200})
	if err != nil || r == nil {
		t.Fatal(err)
	}
	close(gate)
	if r := <-ended; r != nil && r.P50 < 20 {
		t.Errorf("the median is %.1f ms, want the time all had to wait", r.P50)
	}
}

// httptestCounter is a server that answers at once: asking it 40 times at 200 a
// second is a clock.
func httptestCounter(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"results":[{}]}`) }))
	t.Cleanup(s.Close)
	return s.URL
}

func TestSampleQueries(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("# One\n\n"+strings.Repeat("alpha beta gamma delta epsilon zeta eta theta iota kappa\n", 1)+"one two three four five\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := SampleQueries(dir, 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := SampleQueries(dir, 10, 1)
	seen := map[string]bool{}
	for i, q := range a {
		if seen[q] || q != b[i] || len(strings.Fields(q)) < 3 {
			t.Errorf("query %d is %q and %q, want the same, new ones of three words", i, q, b[i])
		}
		seen[q] = true
	}
	if _, err := SampleQueries(dir, 500, 1); err == nil {
		t.Error("more queries than there are: no error")
	}
}
