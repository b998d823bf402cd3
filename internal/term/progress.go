package term

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"cairn/internal/job"
)

// Progress shows how far a run is: as a bar on a terminal, else as a line when a
// phase begins and every few seconds.
type Progress struct {
	out   io.Writer
	tty   bool
	bar   *progressbar.ProgressBar
	phase string
	last  time.Time
}

// lineInterval keeps logs short.
const lineInterval = 5 * time.Second

// NewProgress returns a Progress on o.
func NewProgress(o *Writer) *Progress { return &Progress{out: o.w, tty: o.tty} }

// Show shows one step.
func (p *Progress) Show(step job.Progress) {
	if step.Total == 0 && step.Done == 0 {
		return
	}
	if !p.tty {
		if step.Phase != p.phase || time.Since(p.last) >= lineInterval {
			p.phase, p.last = step.Phase, time.Now()
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

// Replace replaces the last line of a terminal, "" clears it. It writes nothing
// where there is no terminal.
func (o *Writer) Replace(line string) {
	if o.tty {
		fmt.Fprint(o.w, "\r\x1b[K"+line)
	}
}
