package indexer

import (
	"sync"
	"time"
)

// Phase is a part of a run.
type Phase string

// The phases, in the order of a run. Keyword answers are complete when
// PhaseKeywords has ended.
const (
	PhaseScan     Phase = "scan"     // walk, read, parse, store
	PhaseKeywords Phase = "keywords" // bring the keyword index up to date
	PhaseVectors  Phase = "vectors"  // embed
)

// Progress is the state of a phase. Totals are 0 while they are unknown, as long
// as the walk finds files.
type Progress struct {
	Phase                   Phase
	FilesDone, FilesTotal   int
	ChunksDone, ChunksTotal int
	// TextsPerSecond is the speed of embedding so far, without cached vectors;
	// 0 outside of PhaseVectors.
	TextsPerSecond float64
	// ETA is the estimated time to the end of the phase; 0 while it is unknown.
	ETA time.Duration
}

// progressInterval bounds the rate of reports: ten a second look smooth on a
// terminal and cost nothing.
const progressInterval = 100 * time.Millisecond

// progressReporter reports progress at a bounded rate: at the beginning and the
// end of a phase, and in between at most once an interval. It is safe for
// concurrent use; one goroutine at a time calls fn.
type progressReporter struct {
	mu    sync.Mutex
	fn    func(Progress)
	now   func() time.Time
	state Progress
	start time.Time
	last  time.Time
	texts int // embedded in this phase
}

func newProgressReporter(fn func(Progress), now func() time.Time, p Progress) *progressReporter {
	r := &progressReporter{fn: fn, now: now, state: p, start: now()}
	r.report(true)
	return r
}

// add counts completed work; texts are those that the encoder embedded.
func (p *progressReporter) add(files, chunks, texts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.FilesDone += files
	p.state.ChunksDone += chunks
	p.texts += texts
	p.report(false)
}

// expect sets the number of files to read.
func (p *progressReporter) expect(files int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.FilesTotal = files
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
	state := p.state
	spent := now.Sub(p.start)
	if state.Phase == PhaseVectors && spent > 0 {
		state.TextsPerSecond = float64(p.texts) / spent.Seconds()
	}
	done, total := state.ChunksDone, state.ChunksTotal
	if total == 0 {
		done, total = state.FilesDone, state.FilesTotal
	}
	if done > 0 && total > done {
		state.ETA = time.Duration(float64(spent) / float64(done) * float64(total-done))
	}
	p.fn(state)
}
