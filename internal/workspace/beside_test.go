//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cairn/retriever"
)

// haltLimit bounds what a call may take beside an owner that does not answer. It
// leaves room for a busy machine: without load it is below three seconds.
const haltLimit = 6 * time.Second

func signal(t *testing.T, p *process, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	if s == syscall.SIGSTOP { // its threads halt one after the other
		var state syscall.WaitStatus
		if _, err := syscall.Wait4(p.cmd.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
			t.Fatalf("stopping: %v, %v", state, err)
		}
	}
}

// returns fails the test unless fn returns in time; a call that hangs is told
// apart from one that is slow.
func returns(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	begin := time.Now()
	go func() { defer close(done); fn() }()
	select {
	case <-done:
		if took := time.Since(begin); took > haltLimit {
			t.Errorf("%s took %v, want at most %v", what, took, haltLimit)
		}
	case <-time.After(10 * haltLimit):
		t.Fatalf("%s hangs", what)
	}
}

// recovered asks until the answer lacks nothing any more.
func recovered(t *testing.T, w *Workspace) *retriever.Answer {
	t.Helper()
	for begin := time.Now(); ; {
		a, err := w.Search(t.Context(), retriever.Query{Text: "login flow"})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Degraded) == 0 {
			return a
		}
		if time.Since(begin) > 10*haltLimit {
			t.Fatalf("still degraded: %v", a.Degraded)
		}
	}
}

// indexedFolder is a folder with an index that nobody has open.
func indexedFolder(t *testing.T) Selection {
	t.Helper()
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	index(t, w, IndexRequest{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return sel
}

// TestOwnerThatHalts: beside an owner that is stopped in the midst of a session
// every call returns soon, searches say what they lack, indexing is refused, and
// everything is as before once the owner goes on. Then it is killed while it is
// stopped, and this process takes over.
func TestOwnerThatHalts(t *testing.T) {
	sel := indexedFolder(t)
	owner := start(t, "hold", sel)
	owner.line(t)
	pid := owner.cmd.Process.Pid
	w := open(t, sel, Owning, hashed())
	if a := recovered(t, w); len(a.Results) == 0 || a.Results[0].Path != "auth.md" {
		t.Fatalf("Search beside a lively owner = %+v", a)
	}
	events := make(chan WatchEvent, 1024)
	watching, unwatch := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() {
		if err := w.Watch(watching, func(e WatchEvent) { events <- e }); !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v", err)
		}
	})
	defer watcher.Wait()
	defer unwatch()
	<-events // watching has begun

	signal(t, owner, syscall.SIGSTOP)
	returns(t, "searching and reading beside a halted owner", func() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				a, err := w.Search(t.Context(), retriever.Query{Text: "login flow"})
				if err != nil || len(a.Results) == 0 || a.Results[0].Path != "auth.md" || !slices.Equal(a.Degraded, []string{OwnerLacking}) {
					t.Errorf("Search = %+v, %v, want auth.md, degraded by the owner", a, err)
					return
				}
				if !strings.Contains(a.Hint, fmt.Sprintf("process %d", pid)) || !strings.Contains(a.Hint, "does not answer") {
					t.Errorf("hint %q, want the owner's pid and that it does not answer", a.Hint)
				}
				if r, err := w.Read(t.Context(), retriever.ReadRequest{Path: "auth.md#login"}); err != nil || !strings.Contains(r.Content, "asks for a token") {
					t.Errorf("Read = %+v, %v", r, err)
				}
			})
		}
		wg.Wait()
	})
	returns(t, "indexing beside a halted owner", func() {
		_, err := w.Index(t.Context(), IndexRequest{}, nil)
		if lock, ok := errors.AsType[*LockError](err); !ok || !lock.Silent || lock.Holder.PID != pid || !strings.Contains(lock.Error(), fmt.Sprintf("kill -CONT %d", pid)) {
			t.Errorf("Index = %v, want a silent *LockError of process %d", err, pid)
		}
	})
	s, err := w.Status(t.Context())
	if err != nil || s.State != "ready" || s.Owner == nil || s.Owner.PID != pid || !slices.Equal(s.Degraded, []string{OwnerLacking}) || s.Problem == "" {
		t.Errorf("Status = %+v, %v, want it to name the owner that does not answer", s, err)
	}
	if d, err := w.Documents(t.Context(), DocumentsRequest{}); err != nil || len(d.Documents) != 3 {
		t.Errorf("Documents = %+v, %v, want 3", d, err)
	}
	if _, err := w.Explain(t.Context(), ExplainRequest{Query: retriever.Query{Text: "login"}}); err != nil {
		t.Errorf("Explain: %v", err)
	}
	for e := range events { // who follows the folder is told as well
		if strings.Contains(e.Problem, "does not answer") {
			break
		}
	}
	returns(t, "opening beside a halted owner", func() {
		for _, access := range []Access{Reading, Owning} {
			other := open(t, sel, access, hashed())
			if a, err := other.Search(t.Context(), retriever.Query{Text: "backup"}); err != nil || len(a.Results) == 0 || !slices.Contains(a.Degraded, OwnerLacking) {
				t.Errorf("Search of another process = %+v, %v, want results, degraded by the owner", a, err)
			}
			other.Close()
		}
	})

	signal(t, owner, syscall.SIGCONT)
	recovered(t, w)
	if s, err = w.Status(t.Context()); err != nil || s.Owner == nil || s.Owner.PID != pid || s.Degraded != nil || s.Problem != "" {
		t.Errorf("Status after the owner went on = %+v, %v", s, err)
	}
	write(t, filepath.Join(sel.Root, "new.md"), "# New\n\nA walrus in the login flow.\n")
	if report := index(t, w, IndexRequest{Join: true}); report.Files != 4 {
		t.Errorf("Index after the owner went on = %+v, want 4 files", report)
	}

	signal(t, owner, syscall.SIGSTOP)
	returns(t, "searching beside an owner that halted again", func() {
		if a, err := w.Search(t.Context(), retriever.Query{Text: "walrus", Mode: retriever.Keyword}); err != nil || len(a.Results) != 1 || !slices.Contains(a.Degraded, OwnerLacking) {
			t.Errorf("Search = %+v, %v, want what was indexed last", a, err)
		}
	})
	signal(t, owner, syscall.SIGKILL)
	owner.cmd.Wait()
	recovered(t, w)
	if s, err = w.Status(t.Context()); err != nil || s.Owner == nil || s.Owner.PID != os.Getpid() {
		t.Errorf("Status after the owner was killed = %+v, %v, want this process as the owner", s, err)
	}
	if report := index(t, w, IndexRequest{Join: true}); report.Files != 4 || report.Pending != 0 {
		t.Errorf("Index after taking over = %+v, want 4 files and nothing pending", report)
	}
}

// TestHaltedOwnerWithoutIndex: where there is nothing to answer from, the error
// says who does not answer, and callers at the same time wait for one another's
// answer, not each for one of their own.
func TestHaltedOwnerWithoutIndex(t *testing.T) {
	sel := folder(t)
	owner := start(t, "hold", sel)
	owner.line(t)
	w := open(t, sel, Owning, hashed())
	signal(t, owner, syscall.SIGSTOP)
	if err := os.Remove(filepath.Join(w.dir, documentsFile)); err != nil {
		t.Fatal(err)
	}
	returns(t, "searching beside a halted owner without an index", func() {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				_, err := w.Search(t.Context(), retriever.Query{Text: "login"})
				if lock, ok := errors.AsType[*LockError](err); !ok || !lock.Silent || lock.Holder.PID != owner.cmd.Process.Pid {
					t.Errorf("Search = %v, want a silent *LockError of process %d", err, owner.cmd.Process.Pid)
				}
			})
		}
		wg.Wait()
	})
}
