package term

import (
	"fmt"
	"strings"
	"time"

	"cairn/internal/base/job"
)

// Progress shows the progress of a run: a bar on a terminal, lines elsewhere.
type Progress struct {
	out   *Writer
	phase string
	begun time.Time // when phase was first shown
	next  time.Time // earliest time of the next line
}

// Progress first shows the bar after barInterval, and changes it at most that often. Without a
// terminal, it writes the first line after firstLine, and then at most one line per
// lineInterval.
const (
	barInterval  = 100 * time.Millisecond
	firstLine    = time.Second
	lineInterval = 5 * time.Second
)

// NewProgress returns a Progress that writes to o.
func NewProgress(o *Writer) *Progress {
	wait := firstLine
	if o.tty {
		wait = barInterval
	}
	return &Progress{out: o, next: time.Now().Add(wait)}
}

// Show updates the display to step.
func (p *Progress) Show(step job.Progress) {
	now := time.Now()
	if step.Total == 0 && step.Done == 0 || now.Before(p.next) {
		return
	}
	if !p.out.tty {
		p.next = now.Add(lineInterval)
		fmt.Fprintln(p.out.w, step)
		return
	}
	if step.Phase != p.phase {
		p.phase, p.begun = step.Phase, now
	}
	p.next = now.Add(barInterval)
	p.out.Replace(bar(step, now.Sub(p.begun)))
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

// Close removes the bar, if there is one.
func (p *Progress) Close() {
	if p.phase != "" {
		p.out.Replace("")
	}
}

// Replace replaces the last line of a terminal; "" clears it. Without a terminal
// it writes nothing.
func (o *Writer) Replace(line string) {
	if o.tty {
		fmt.Fprint(o.w, "\r\x1b[K"+line)
	}
}
