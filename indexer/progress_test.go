package indexer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cairn/internal/base/job"
	"cairn/internal/store"
)

func TestProgressIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	var got []job.Progress
	m := newProgressReporter(func(p job.Progress) { got = append(got, p) }, func() time.Time { return now },
		PhaseVectors, 10, 1000)
	for range 100 { // a second of steps of 10 ms
		now = now.Add(10 * time.Millisecond)
		m.add(0, 5)
	}
	m.flush()
	if len(got) != 12 { // at the beginning, every 100 ms, at the end
		t.Errorf("%d reports in a second, want 12", len(got))
	}
	last := got[len(got)-1]
	want := job.Progress{Phase: PhaseVectors, Done: 500, Total: 1000, Searchable: true}
	if last != want {
		t.Errorf("after half of the chunks in a second:\n got %+v\nwant %+v", last, want)
	}
}

func TestQueueSortsAndJoinsEqualTexts(t *testing.T) {
	var jobs []pendingChunk
	for _, text := range []string{"aaaa", "b", "ccc", "b", "dd", "eeeee", "cached"} {
		j := pendingChunk{text: text, entry: store.VectorEntry{Key: store.Key{text[0]}}}
		if text == "cached" {
			j.entry.Vector = []float32{1}
		}
		jobs = append(jobs, j)
	}
	var got []string
	q := newQueue(jobs)
	for batch := q.next(2); len(batch) > 0; batch = q.next(2) {
		line := ""
		for _, same := range batch {
			line += fmt.Sprintf("%d×%s ", len(same), same[0].text)
		}
		got = append(got, line)
	}
	if want := []string{"1×eeeee 1×aaaa ", "1×dd 2×b ", "1×ccc "}; !slices.Equal(got, want) {
		t.Errorf("batches are %q, want %q", got, want)
	}
}

// TestFilesChangeWhileVectorsAreMade: a mark is cleared only for the version
// that was embedded, so a file that a watcher refreshes meanwhile is not lost.
func TestFilesChangeWhileVectorsAreMade(t *testing.T) {
	f := newFixture(t, generated(t, 8), &Options{WindowChunks: 1 << 20, BatchTexts: 16})
	var once sync.Once
	f.embedder.Before = func([]string) (err error) {
		once.Do(func() {
			f.write("part0/doc000.md", "# Another\n\nSomething else.\n")
			f.write("part9/new.md", "# New\n\nJust written.\n")
			_, err = f.Refresh(context.Background(), nil)
		})
		return err
	}
	f.run()
	counts, err := f.stores.Docs.Counts()
	if err != nil {
		t.Fatal(err)
	}
	if counts.Vectors.Files != 2 || counts.Keyword.Files != 0 {
		t.Errorf("after two files changed under the run, %d are pending for vectors and %d for keywords; want 2 and 0", counts.Vectors.Files, counts.Keyword.Files)
	}
	f.run()
	sameAsClean(t, f.root, f.stores, f.embedder, nil)
}
