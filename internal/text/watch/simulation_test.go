package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil"
	"cairn/internal/text/walk"
)

// simEvents is a source that reports changes late, out of order and twice, loses some,
// of which it says so, and gives up at last.
type simEvents struct {
	*testutil.Chance
	changes chan change
	ends    time.Time
	told    sync.WaitGroup
}

func (s *simEvents) run(ctx context.Context, tell func(change)) error {
	end := time.After(time.Until(s.ends))
	for {
		select {
		case c := <-s.changes:
			tell(c)
		case <-end:
			return errors.New("no more events")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *simEvents) close() error { return nil }

// report tells of a path once or twice, or that events were lost.
func (s *simEvents) report(ctx context.Context, path string) {
	r := s.Of("report")
	c := change{path: path}
	if r.IntN(20) == 0 {
		c = change{all: true}
	}
	for range 1 + r.IntN(2) {
		late := time.Duration(r.Int64N(int64(50*time.Millisecond))) + 1
		s.told.Go(func() {
			time.Sleep(late)
			select {
			case s.changes <- c:
			case <-ctx.Done():
			}
		})
	}
}

// TestWatchSimulation: while files change, events come late, twice or not at all, their
// source ends, and batches are refused, a reader that looks only at reported paths ends
// with what is in the folder.
func TestWatchSimulation(t *testing.T) {
	testutil.Simulate(t, func(t *testing.T, c *testutil.Chance) {
		v := &view{t: t, root: t.TempDir(), o: Options{Walk: documents}, files: map[string]string{}, told: map[string]int{}}
		var err error
		if v.tree, err = walk.Open(walk.Root{Dir: v.root}); err != nil {
			t.Fatal(err)
		}
		r := c.Of("edits")
		s := &simEvents{Chance: c, changes: make(chan change), ends: time.Now().Add(time.Duration(r.Int64N(int64(40 * time.Second))))}
		v.w = &Watcher{tree: v.tree, source: s, retry: firstRetry, options: Options{Walk: documents, Quiet: defaultQuiet, Most: defaultMost, PollEvery: defaultPoll, Held: v.held, Logger: slog.New(slog.DiscardHandler)}}
		var calm atomic.Bool
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- v.w.Run(ctx, true, func(_ context.Context, b Batch) error {
				r := c.Of("batch")
				time.Sleep(time.Duration(r.Int64N(int64(2*time.Second))) + 1)
				if !calm.Load() && r.IntN(4) == 0 {
					return errors.New("not now")
				}
				v.mu.Lock()
				defer v.mu.Unlock()
				v.look(b)
				return nil
			})
		}()
		for n := range 100 {
			for _, path := range v.edit(r, n) {
				s.report(ctx, path)
			}
			time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
			if r.IntN(3) == 0 { // a file that is there for a moment
				brief := fmt.Sprint("brief", n, ".md")
				v.write(brief, "brief")
				s.report(ctx, brief)
				time.Sleep(time.Duration(r.Int64N(int64(defaultPoll))))
				v.do(os.Remove(filepath.Join(v.root, brief)))
				s.report(ctx, brief)
			}
		}
		calm.Store(true)
		time.Sleep(lastRetry + 10*time.Second)
		v.mu.Lock()
		if diff := cmp.Diff(v.disk(), v.files); diff != "" {
			t.Errorf("seed %d: the reported paths do not lead to what is there (-there +read):\n%s", c.Seed, diff)
		}
		v.mu.Unlock()
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("seed %d: Run = %v", c.Seed, err)
		}
		s.told.Wait()
		v.do(errors.Join(v.w.Close(), v.tree.Close()))
	})
}

// edit makes the nth change of a folder, and returns the paths. No two edits leave a file
// of the same size: the clock of the files is not that of the simulation.
func (v *view) edit(r *rand.Rand, n int) []string {
	dir := fmt.Sprint("d", r.IntN(3))
	name := fmt.Sprintf("%s/f%d.md", dir, r.IntN(4))
	at := func(path string) string { return filepath.Join(v.root, path) }
	switch r.IntN(8) {
	case 0:
		v.do(os.RemoveAll(at(dir)))
		return []string{dir}
	case 1:
		v.do(os.RemoveAll(at(name)))
		return []string{name}
	case 2: // a folder under another name
		v.do(os.MkdirAll(at(dir), 0o755))
		v.do(os.RemoveAll(at("d3")))
		v.do(os.Rename(at(dir), at("d3")))
		return []string{dir, "d3"}
	}
	v.write(name, strings.Repeat("x", n+1))
	return []string{name}
}
