package indexer

import (
	"sync"
	"time"

	"cairn/internal/job"
)

// The phases of a run, in their order. Keyword answers are complete when
// PhaseKeywords has ended.
const (
	PhaseScan     = "scan"     // walk, read, parse, store
	PhaseKeywords = "keywords" // bring the keyword index up to date
	PhaseVectors  = "vectors"  // embed
)

// progressInterval bounds the rate of reports: ten a second look smooth on a
// terminal and cost nothing.
const progressInterval = 100 * time.Millisecond

// progressReporter reports progress at a bounded rate: at the beginning and the
// end of a phase, and in between at most once an interval. It is safe for
// concurrent use; one goroutine at a time calls fn.
type progressReporter struct {
	mu     sync.Mutex
	fn     func(job.Progress) // nil reports nothing
	now    func() time.Time
	state  job.Progress
	chunks bool // chunks are counted, not files
	last   time.Time
}

// newProgressReporter begins a phase with so many files and chunks; both are 0 while they
// are not known. Chunks are counted if there are some.
func newProgressReporter(fn func(job.Progress), now func() time.Time, phase string, files, chunks int) *progressReporter {
	p := &progressReporter{fn: fn, now: now, state: job.Progress{Phase: phase, Total: files, Searchable: phase == PhaseVectors}}
	if chunks > 0 {
		p.chunks, p.state.Total = true, chunks
	}
	p.report(true)
	return p
}

// add counts completed work.
func (p *progressReporter) add(files, chunks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chunks {
		p.state.Done += chunks
	} else {
		p.state.Done += files
	}
	p.report(false)
}

// expect sets the number of files to read.
func (p *progressReporter) expect(files int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.Total = files
	p.report(false)
}

// flush reports the state of the phase, as at its end.
func (p *progressReporter) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(true)
}

func (p *progressReporter) report(always bool) {
	now := p.now()
	if p.fn == nil || !always && now.Sub(p.last) < progressInterval {
		return
	}
	p.last = now
	p.fn(p.state)
}
