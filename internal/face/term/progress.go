package term

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"cairn/internal/base/job"
)

// Progress shows the progress of a run: a bar on a terminal, lines elsewhere.
type Progress struct {
	out *Writer

	mu    sync.Mutex
	step  job.Progress // the newest
	begun time.Time    // when the phase of step began
	next  time.Time    // earliest time of the next display
	timer *time.Timer  // displays step at next; nil if it is displayed
	drawn bool         // there is a bar
}

// Progress first shows the bar after firstBar, and changes it at most once per barInterval.
// Without a terminal, it writes the first line after firstLine, and then at most one line per
// lineInterval.
const (
	firstBar     = 300 * time.Millisecond
	barInterval  = 100 * time.Millisecond
	firstLine    = time.Second
	lineInterval = 5 * time.Second
)

// NewProgress returns a Progress that writes to o.
func NewProgress(o *Writer) *Progress {
	wait := firstLine
	if o.tty {
		wait = firstBar
	}
	return &Progress{out: o, next: time.Now().Add(wait)}
}

// Show displays step as soon as the intervals allow, unless a newer step replaces it.
func (p *Progress) Show(step job.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if step.Phase != p.step.Phase {
		p.begun = time.Now()
	}
	if p.step = step; p.timer == nil {
		p.timer = time.AfterFunc(time.Until(p.next), p.draw)
	}
}

func (p *Progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		return // Close came first
	}
	p.timer = nil
	now := time.Now()
	if !p.out.tty {
		p.next = now.Add(lineInterval)
		fmt.Fprintln(p.out, Plain(p.step.String()))
		return
	}
	p.next, p.drawn = now.Add(barInterval), true
	p.out.Replace(bar(p.step, now.Sub(p.begun)))
}

// bar returns the line of a terminal: the phase, a bar, the counts, and the time that is left
// at the speed so far.
func bar(step job.Progress, passed time.Duration) string {
	if step.Total == 0 || step.Done > step.Total {
		return step.String()
	}
	const width = 30
	full := width * step.Done / step.Total
	line := fmt.Sprintf("%-9s %3d%% [%s%s] %d of %d", step.Phase, 100*step.Done/step.Total,
		strings.Repeat("=", full), strings.Repeat(" ", width-full), step.Done, step.Total)
	if left := passed.Seconds() * float64(step.Total-step.Done) / float64(max(step.Done, 1)); step.Done > 0 && left >= 1 {
		line += fmt.Sprint(", ", time.Duration(left)*time.Second, " left")
	}
	return line
}

// Close removes the bar, if there is one, and does not display a step that waits.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.drawn {
		p.out.Replace("")
	}
}

// Replace replaces the last line of a terminal; "" clears it. Without a terminal
// it writes nothing.
func (o *Writer) Replace(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tty {
		fmt.Fprint(o.w, "\r\x1b[K"+Plain(line))
	}
}
