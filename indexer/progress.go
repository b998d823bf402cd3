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

// Progress says how far a phase has come. Totals are 0 while they are unknown
// (the walk is still finding files).
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

// progressInterval bounds the rate of reports: ten a second are fluent on a
// terminal and cost nothing.
const progressInterval = 100 * time.Millisecond

// meter hands progress on at a bounded rate: at the beginning and the end of a
// phase, and in between at most once an interval. Safe for concurrent use; the
// receiver is called by one goroutine at a time.
type meter struct {
	mu    sync.Mutex
	fn    func(Progress)
	now   func() time.Time
	p     Progress
	start time.Time
	last  time.Time
	texts int // embedded in this phase
}

func newMeter(fn func(Progress), now func() time.Time, p Progress) *meter {
	m := &meter{fn: fn, now: now, p: p, start: now()}
	m.report(true)
	return m
}

// add counts work done; texts are those of the chunks that were embedded.
func (m *meter) add(files, chunks, texts int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.FilesDone += files
	m.p.ChunksDone += chunks
	m.texts += texts
	m.report(false)
}

// expect sets the number of files to be looked at.
func (m *meter) expect(files int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.FilesTotal = files
	m.report(false)
}

// end reports the last state of the phase.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report(true)
}

func (m *meter) report(always bool) {
	now := m.now()
	if m.fn == nil || !always && now.Sub(m.last) < progressInterval {
		return
	}
	m.last = now
	p := m.p
	spent := now.Sub(m.start)
	if p.Phase == PhaseVectors && spent > 0 {
		p.TextsPerSecond = float64(m.texts) / spent.Seconds()
	}
	done, total := p.ChunksDone, p.ChunksTotal
	if total == 0 {
		done, total = p.FilesDone, p.FilesTotal
	}
	if done > 0 && total > done {
		p.ETA = time.Duration(float64(spent) / float64(done) * float64(total-done))
	}
	m.fn(p)
}
