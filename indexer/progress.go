package indexer

import (
	"sync"
	"time"

	"cairn/internal/base/job"
)

// The phases of a run, in order. Keyword search is complete after PhaseKeywords.
const (
	PhaseScan     = "scan"     // walk, read, parse, store
	PhaseKeywords = "keywords" // update the keyword index
	PhaseVectors  = "vectors"  // embed
)

// progressInterval is the minimum time between two reports. Ten reports a second look
// smooth on a terminal.
const progressInterval = 100 * time.Millisecond

// progressReporter reports progress at the beginning and the end of a phase, and at most
// once per interval in between. It is safe for concurrent use and calls fn from one
// goroutine at a time.
type progressReporter struct {
	mu     sync.Mutex
	fn     func(job.Progress) // nil reports nothing
	now    func() time.Time
	state  job.Progress
	chunks bool // count chunks instead of files
	last   time.Time
}

// newProgressReporter begins a phase with the given total of files and chunks, or 0 if
// they are not known yet. It counts chunks if their total is not 0, otherwise files.
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

// flush reports the state of the phase at once.
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
