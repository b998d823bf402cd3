package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/index"
	"cairn/internal/store/qdrant/qdranttest"
	"cairn/retriever"
)

// TestOutageDuringQueries stops and starts the store while 1,000 queries are put
// to the writer, which answers from the folder's index: none fails, is empty or
// lacks vectors.
func TestOutageDuringQueries(t *testing.T) {
	s := qdranttest.New(t, nil)
	sel := folder(t)
	if err := testutil.WriteFolder(filepath.Join(sel.Root, "many"), 50, 3); err != nil {
		t.Fatal(err)
	}
	writer := open(t, sel, Owning, clustered(t, s.Addr(), "docs"))
	fill(t, writer, index.IndexRequest{})
	const queries, stop, start = 1000, 200, 700
	var outage []time.Duration
	for i := range queries {
		switch i {
		case stop:
			s.Stop()
		case start:
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		a, err := index.SearchOp.Call(t.Context(), writer.Folder, retriever.Query{Text: []string{"login flow", "copy the folder", "token session"}[i%3]}, nil)
		took := time.Since(begun)
		switch {
		case err != nil:
			t.Fatalf("query %d: %v", i, err)
		case len(a.Results) == 0:
			t.Fatalf("query %d is empty: %+v", i, a)
		case a.Mode != retriever.Hybrid || len(a.Degraded) > 0:
			t.Fatalf("query %d is degraded: %+v", i, a)
		}
		if i >= stop && i < start {
			outage = append(outage, took)
		}
	}
	slices.Sort(outage)
	t.Logf("%d queries in the outage: p50 %v, p95 %v, longest %v", len(outage), outage[len(outage)/2], outage[len(outage)*95/100], outage[len(outage)-1])
}

// soakVariable says how long TestTwoServersOneWriter edits and asks.
const soakVariable = "CAIRN_CLUSTER_SOAK"

// TestTwoServersOneWriter edits a document and asks two servers meanwhile. Each
// version of the document says its number in both of its sections; an answer
// has to be of one version, and no older than the last one that was complete in the store
// before the query.
func TestTwoServersOneWriter(t *testing.T) {
	long := 2 * time.Second
	if v := os.Getenv(soakVariable); v != "" {
		var err error
		if long, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	addr := os.Getenv("QDRANT_ADDR")
	if addr == "" {
		addr = qdranttest.New(t, nil).Addr()
	}
	sel := folder(t)
	o := clustered(t, addr, fmt.Sprintf("cairn-soak-%d", os.Getpid()))
	writer := open(t, sel, Owning, o)
	servers := []*Workspace{server(t, o), server(t, o)}
	var mu sync.Mutex
	var complete int // the last version that is complete in the store
	version := func(n int) string {
		return fmt.Sprintf("# Ledger\n\n## Balance\n\nThe ledger balance is number %d.\n\n## Proof\n\nThe ledger proof is number %d.\n%s", n, n, strings.Repeat("\nfiller", n%5))
	}
	write(t, filepath.Join(sel.Root, "ledger.md"), version(0))
	fill(t, writer, index.IndexRequest{})
	done := make(chan struct{})
	var asking sync.WaitGroup
	answers := make([]int, len(servers))
	for i, w := range servers {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				least := complete
				mu.Unlock()
				r, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: "ledger.md"}, nil)
				if err != nil {
					t.Errorf("server %d, reading: %v", i, err)
					return
				}
				var balance, proof int
				text := r.Content
				if _, err := fmt.Sscanf(text[strings.Index(text, "balance is number"):], "balance is number %d", &balance); err != nil {
					t.Errorf("server %d: %q", i, text)
					return
				}
				if _, err := fmt.Sscanf(text[strings.Index(text, "proof is number"):], "proof is number %d", &proof); err != nil || proof != balance {
					t.Errorf("server %d: versions %d and %d in one document", i, balance, proof)
					return
				}
				a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "ledger balance", Limit: 3, MaxTokens: 2000}, nil)
				if err != nil || len(a.Results) == 0 || a.Results[0].Path != "ledger.md" {
					t.Errorf("server %d, searching: %+v, %v", i, a, err)
					return
				}
				found := -1
				if at := strings.Index(a.Results[0].Content, "is number"); at >= 0 {
					fmt.Sscanf(a.Results[0].Content[at:], "is number %d", &found)
				}
				if balance < least || found < least {
					t.Errorf("server %d: it reads version %d and finds version %d, want at least %d", i, balance, found, least)
				}
				answers[i]++
			}
		})
	}
	edits := 0
	for begun := time.Now(); time.Since(begun) < long && !t.Failed(); {
		edits++
		write(t, filepath.Join(sel.Root, "ledger.md"), version(edits))
		fill(t, writer, index.IndexRequest{})
		mu.Lock()
		complete = edits
		mu.Unlock()
	}
	close(done)
	asking.Wait()
	t.Logf("%v: %d edits, %v answers by the servers", long, edits, answers)
	if answers[0] == 0 || answers[1] == 0 || edits == 0 {
		t.Error("nothing was tested")
	}
}
