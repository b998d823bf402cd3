package indexer

import "sync"

// Report says what a run found and did.
type Report struct {
	// Files is the number of files in the index after the run; Added, Changed
	// and Removed are the ones that came, changed their bytes, and left.
	Files, Added, Changed, Removed, Unchanged int
	// Skipped counts the files left out, by reason.
	Skipped map[string]int
	// Unreadable are paths that could not be read this time (permissions, I/O).
	// What the index had of them stays.
	Unreadable []Unreadable
	// Sections and Chunks are those of the whole index after the run.
	Sections, Chunks int
	// Embedded counts the texts given to the encoder, FromCache the chunks whose
	// vector was known from an equal text.
	Embedded, FromCache int
	// Seconds by phase.
	Seconds map[Phase]float64
	// Generation is the index's after the run. It grows only when something changed.
	Generation uint64
}

// Unreadable is a path that the index could not look at.
type Unreadable struct {
	Path string
	Err  error
}

// tally collects a Report from concurrent phases.
type tally struct {
	mu sync.Mutex
	Report
}

func newTally() *tally {
	return &tally{Report: Report{Skipped: map[string]int{}, Seconds: map[Phase]float64{}}}
}

func (t *tally) do(fn func(r *Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fn(&t.Report)
}
