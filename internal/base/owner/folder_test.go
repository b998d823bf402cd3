package owner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cairn/internal/base/home"
)

type evidence struct{ N int }

func (e *evidence) Error() string { return fmt.Sprint("evidence ", e.N) }

const (
	addOp  Op[int, int, string]      = "add"
	failOp Op[int, int, struct{}]    = "fail"
	slowOp Op[int, string, struct{}] = "slow"
)

// sum is a service whose operations work on one number.
type sum struct {
	n       atomic.Int64
	closed  atomic.Bool
	removed atomic.Bool
}

func (s *sum) Removed() bool { return s.removed.Load() }
func (s *sum) Close() error  { s.closed.Store(true); return nil }

func (s *sum) serve(server *Server) {
	addOp.Handle(server, func(_ context.Context, in int, ahead func(string)) (int, error) {
		ahead("adding")
		if s.closed.Load() {
			return 0, ErrEnded
		}
		return int(s.n.Add(int64(in))), nil
	})
	failOp.Handle(server, func(_ context.Context, in int, _ func(struct{})) (int, error) {
		return 0, fmt.Errorf("wrapped: %w", &evidence{in})
	})
	slowOp.Handle(server, func(ctx context.Context, _ int, _ func(struct{})) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
}

func openSum(t *testing.T, dir string, change func(*Options)) (*Folder, *sum) {
	t.Helper()
	s := &sum{}
	o := Options{
		Dir: dir, Make: func() error { return home.Private(dir) }, Command: "test",
		Errors: Kinds{"evidence": KindOf[*evidence]()},
		Serve: func(server *Server) (Service, error) {
			s.closed.Store(false)
			s.removed.Store(false)
			s.serve(server)
			return s, nil
		},
	}
	if change != nil {
		change(&o)
	}
	f, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, s
}

// TestOneOwner: calls of all folders run in the first, with lines and typed errors;
// when it closes, another takes over.
func TestOneOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	first, state := openSum(t, dir, nil)
	second, taken := openSum(t, dir, nil)
	for i, f := range []*Folder{first, second} {
		var lines []string
		if got, err := addOp.Call(t.Context(), f, 3, func(line string) { lines = append(lines, line) }); err != nil || got != 3*(i+1) || len(lines) != 1 {
			t.Errorf("folder %d: add = %v, %v, lines %q", i, got, err, lines)
		}
		_, err := failOp.Call(t.Context(), f, 7, nil)
		if e, ok := errors.AsType[*evidence](err); !ok || e.N != 7 {
			t.Errorf("folder %d: fail = %v, want the evidence 7", i, err)
		}
	}
	if !first.Owns() || second.Owns() || state.n.Load() != 6 {
		t.Errorf("owns %v, %v, sum %d, want the first to own all", first.Owns(), second.Owns(), state.n.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := slowOp.Call(ctx, second, 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context has ended: %v", err)
	}
	if err := first.Close(); err != nil || !state.closed.Load() {
		t.Errorf("Close = %v, service closed %v", err, state.closed.Load())
	}
	if got, err := addOp.Call(t.Context(), second, 5, nil); err != nil || got != 5 || !second.Owns() || taken.n.Load() != 5 {
		t.Errorf("after the owner ended: %v, %v, owns %v", got, err, second.Owns())
	}
	if _, err := addOp.Call(t.Context(), first, 5, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a call after Close = %v, want ErrClosed", err)
	}
}

// TestOwnersComeAndGo: no call fails while folders open, call once and close.
func TestOwnersComeAndGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				f, _ := openSum(t, dir, nil)
				if _, err := addOp.Call(t.Context(), f, 1, nil); err != nil {
					t.Errorf("add = %v", err)
				}
				if err := f.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// TestPanicOfAnOperation: a panic of an operation fails the call of a client at once, and the
// owner answers the next one.
func TestPanicOfAnOperation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	first, _ := openSum(t, dir, nil)
	runs := 0
	const panicOp Op[int, int, struct{}] = "panic"
	panicOp.Answer(first.current.server, func(context.Context, int) (int, error) {
		runs++
		panic("a defect")
	})
	second, _ := openSum(t, dir, nil)
	if _, err := panicOp.Call(t.Context(), second, 1, nil); err == nil || !strings.Contains(err.Error(), "a defect") || runs != 1 {
		t.Errorf("%d runs, error %v, want one and the cause", runs, err)
	}
	if got, err := addOp.Call(t.Context(), second, 3, nil); err != nil || got != 3 || !first.Owns() {
		t.Errorf("the next call = %v, %v, want 3", got, err)
	}
}

// TestRemovedFolder: an owner whose folder, or whose files, were removed starts again.
func TestRemovedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	f, s := openSum(t, dir, nil)
	for _, remove := range []func(){func() { os.RemoveAll(dir) }, func() { s.removed.Store(true) }} {
		remove()
		if _, err := addOp.Call(t.Context(), f, 1, nil); err != nil || !f.Owns() {
			t.Errorf("add after the removal = %v, owns %v", err, f.Owns())
		}
		if h := readHolder(filepath.Join(dir, "lock")); h.PID != os.Getpid() {
			t.Errorf("the lock names %+v", h)
		}
	}
}

func TestOwnerIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	openSum(t, dir, func(o *Options) { o.Identity = map[string]string{"model": "a"} })
	refused := errors.New("refused")
	_, err := Open(t.Context(), Options{
		Dir: dir, Make: func() error { return nil },
		Accept: func(h Holder, identity map[string]string) error {
			if h.Command != "test" || identity["model"] != "a" {
				t.Errorf("accepting %+v, %v", h, identity)
			}
			return refused
		},
	})
	if !errors.Is(err, refused) {
		t.Errorf("Open = %v, want %v", err, refused)
	}
}

func TestLongPathsGetAShortSocket(t *testing.T) {
	if got := socketPath("/a/b", "/tmp"); got != filepath.Join("/a/b", "sock") {
		t.Errorf("socketPath = %s", got)
	}
	got := socketPath("/"+strings.Repeat("long/", 25), "/tmp")
	if len(got) > maxSocketPath || !strings.HasPrefix(got, "/tmp/cairn-") {
		t.Errorf("socketPath = %s, want a short path below /tmp", got)
	}
}
