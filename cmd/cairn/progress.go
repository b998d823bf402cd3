package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"cairn/indexer"
	"cairn/internal/workspace"
)

// progress shows how far a run is, on standard error: a bar on a terminal,
// else a line at the beginning of each phase and every few seconds.
type progress struct {
	out   io.Writer
	tty   bool
	bar   *progressbar.ProgressBar
	phase string
	last  time.Time
}

// lineEvery keeps logs short where nobody watches.
const lineEvery = 5 * time.Second

func (a *app) newProgress() *progress {
	return &progress{out: raw(a.stderr), tty: isTerminal(a.stderr)}
}

// statusLine returns what shows a line in place of the one before, on standard
// error, and what removes the last. Without a terminal show is nil.
func (a *app) statusLine() (show func(string), clear func()) {
	if !isTerminal(a.stderr) {
		return nil, func() {}
	}
	const clearLine = "\r\x1b[K"
	show = func(what string) { fmt.Fprint(raw(a.stderr), clearLine+what) }
	return show, func() { show("") }
}

func isTerminal(w any) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (p *progress) show(step workspace.Progress) {
	if step.Total == 0 && step.Done == 0 {
		return
	}
	if !p.tty {
		if step.Phase != p.phase || time.Since(p.last) >= lineEvery {
			p.phase, p.last = step.Phase, time.Now()
			fmt.Fprintln(p.out, step)
		}
		return
	}
	if step.Phase != p.phase {
		p.end()
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
	// Drawing fails only with the terminal, and then there is nothing to show.
	_ = p.bar.Set(step.Done)
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

// benchProgress is the indexer's progress as the workspace would tell it.
func benchProgress(p indexer.Progress) workspace.Progress {
	if p.ChunksTotal > 0 {
		return workspace.Progress{Phase: string(p.Phase), Done: p.ChunksDone, Total: p.ChunksTotal}
	}
	return workspace.Progress{Phase: string(p.Phase), Done: p.FilesDone, Total: p.FilesTotal}
}
