package term

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"cairn/internal/base/job"
)

// Progress shows the progress of a run: a bar on a terminal, lines elsewhere.
type Progress struct {
	out   io.Writer
	tty   bool
	bar   *progressbar.ProgressBar
	phase string    // of bar
	next  time.Time // earliest time of the next line
}

// Without a terminal, Progress writes the first line after firstLine, and then at most one line
// per lineInterval.
const (
	firstLine    = time.Second
	lineInterval = 5 * time.Second
)

// NewProgress returns a Progress that writes to o.
func NewProgress(o *Writer) *Progress {
	return &Progress{out: o.w, tty: o.tty, next: time.Now().Add(firstLine)}
}

// Show updates the display to step.
func (p *Progress) Show(step job.Progress) {
	if step.Total == 0 && step.Done == 0 {
		return
	}
	if !p.tty {
		if now := time.Now(); !now.Before(p.next) {
			p.next = now.Add(lineInterval)
			fmt.Fprintln(p.out, step)
		}
		return
	}
	if step.Phase != p.phase {
		p.Close()
		p.phase = step.Phase
		total := step.Total
		if total == 0 {
			total = -1 // a spinner
		}
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription(fmt.Sprintf("%-9s", step.Phase)),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	if step.Total > 0 && p.bar.GetMax() != step.Total {
		p.bar.ChangeMax(step.Total)
	}
	_ = p.bar.Set(step.Done) // fails only with the terminal
}

// Close removes the bar.
func (p *Progress) Close() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

// Replace replaces the last line of a terminal; "" clears it. Without a terminal
// it writes nothing.
func (o *Writer) Replace(line string) {
	if o.tty {
		fmt.Fprint(o.w, "\r\x1b[K"+line)
	}
}
