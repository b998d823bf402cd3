package indexer

import "sync"

// Report is the result of a run.
type Report struct {
	// Files is the number of files in the index after the run. Changed files have
	// other bytes than before.
	Files, Added, Changed, Removed, Unchanged int
	// Skipped counts the files that are not indexed, by reason.
	Skipped map[string]int
	// Unreadable are paths that could not be read in this run (permissions, I/O).
	// The index keeps what it has of them.
	Unreadable []Unreadable
	// Sections and Chunks are those of the whole index after the run.
	Sections, Chunks int
	// Embedded counts the texts that the encoder embedded, FromCache the chunks
	// whose vector the cache held.
	Embedded, FromCache int
	// Seconds by phase.
	Seconds map[Phase]float64
	// Generation is the index's after the run. It grows only when something changed.
	Generation uint64
}

// Unreadable is a path that the indexer could not read.
type Unreadable struct {
	Path string
	Err  error
}

// report collects a Report from concurrent goroutines.
type report struct {
	mu sync.Mutex
	Report
}

func newReport() *report {
	return &report{Report: Report{Skipped: map[string]int{}, Seconds: map[Phase]float64{}}}
}

func (t *report) do(fn func(r *Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fn(&t.Report)
}
