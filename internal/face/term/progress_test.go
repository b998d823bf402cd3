package term

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/base/job"
)

// TestProgressOfOneStep shows a step that comes at once and is the last.
func TestProgressOfOneStep(t *testing.T) {
	for _, test := range []struct {
		tty   bool
		after time.Duration
		want  string
	}{
		{false, firstLine, "waiting for [2J ann\n"},
		{true, firstBar, "\r\x1b[Kwaiting for [2J ann\r\x1b[K"},
		{false, firstLine / 2, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			w := New(&out)
			w.tty = test.tty
			p := NewProgress(w)
			p.Show(job.Progress{Phase: "starting"})
			p.Show(job.Progress{Phase: "waiting for \x1b[2J ann"})
			time.Sleep(test.after)
			synctest.Wait()
			p.Close()
			time.Sleep(time.Minute)
			if got := out.String(); got != test.want {
				t.Errorf("on a terminal %v, after %v: %q, want %q", test.tty, test.after, got, test.want)
			}
		})
	}
}
