package index

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cairn/indexer"
	"cairn/internal/base/job"
	"cairn/internal/base/testutil"
	"cairn/models"
	"cairn/retriever"
)

// TestStillReading: a search by vectors that finds nothing while the first run reads the
// files waits for the first vectors, the end of the run or its limit, and says how many files
// are unread.
func TestStillReading(t *testing.T) {
	const unread, none = "note: still reading 20 of 20 files: search again soon", "note: nothing found: this folder has no index yet"
	for name, c := range map[string]struct {
		mode          retriever.Mode
		vectors, ends time.Duration
		took          time.Duration
		want          string
	}{
		"limit":      {retriever.Semantic, time.Hour, time.Hour, preferLimit, unread},
		"vectors":    {retriever.Semantic, 2 * time.Second, time.Hour, 2 * time.Second, none},
		"end of run": {retriever.Semantic, time.Hour, 3 * time.Second, 3 * time.Second, none},
		"hybrid":     {retriever.Hybrid, 2 * time.Second, time.Hour, 2 * time.Second, none}, // no file has the words
		"keyword":    {retriever.Keyword, time.Hour, time.Hour, 0, unread},                  // this process does not own the index, so it cannot prefer files
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &testutil.HashEmbedder{}
				x := New(Options{Settings: Settings{Description: e.Description(), Model: func() (models.Embedder, error) { return e, nil }}, Dir: t.TempDir()})
				defer x.Close()
				x.current = &run{Job: job.Start(func(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
					progress(Progress{Phase: indexer.PhaseScan, Done: 10, Total: 30})
					vectors, end := time.After(c.vectors), time.After(c.ends)
					for {
						select {
						case <-vectors:
							progress(Progress{Phase: indexer.PhaseVectors, Done: 1, Total: 30, Searchable: true})
						case <-end:
							return nil, errors.New("ended")
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}
				})}
				synctest.Wait()
				begun := time.Now()
				a, err := x.Search(t.Context(), retriever.Query{Text: "aardvark", Mode: c.mode})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took != c.took || !strings.HasPrefix(a.Text(), c.want) {
					t.Errorf("after %v: %s, want after %v: %s", took, a.Text(), c.took, c.want)
				}
			})
		})
	}
}
