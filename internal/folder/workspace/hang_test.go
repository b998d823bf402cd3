//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/retriever"
)

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

// TestOwnerThatHangs: when the owner is stopped, every call fails meanwhile with an
// error that names it, and everything works again when the owner continues. Then the
// owner is killed while it is stopped, and this process takes over.
func TestOwnerThatHangs(t *testing.T) {
	sel := indexedFolder(t)
	holder := start(t, "hold", sel)
	holder.line(t)
	pid := holder.cmd.Process.Pid
	w := open(t, sel, Owning, hashed())
	if !answers(t, w) {
		t.Fatal("no answer through the owner")
	}
	events := make(chan index.WatchEvent, 1024)
	watching, unwatch := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() {
		if err := w.Watch(watching, func(e index.WatchEvent) { events <- e }); !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v", err)
		}
	})
	defer watcher.Wait()
	defer unwatch()
	<-events // watching has begun

	signal(t, holder, syscall.SIGSTOP)
	refused := func(what string, call func() error) {
		t.Helper()
		begin := time.Now()
		err := call()
		lock, ok := errors.AsType[*owner.LockError](err)
		if !ok || !lock.Silent || lock.Holder.PID != pid || !strings.Contains(err.Error(), fmt.Sprintf("kill -KILL %d", pid)) {
			t.Errorf("%s = %v, want a silent *LockError of process %d", what, err, pid)
		}
		t.Logf("%s: %v", what, time.Since(begin))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			refused("Search", func() error {
				_, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login flow"}, nil)
				return err
			})
		})
	}
	wg.Wait()
	for what, call := range map[string]func() error{
		"Read": func() error {
			_, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: "auth.md"}, nil)
			return err
		},
		"ReadAll": func() error {
			_, err := index.ReadAllOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Paths: []string{"auth.md"}}, nil)
			return err
		},
		"Explain": func() error {
			_, err := index.ExplainOp.Call(t.Context(), w.Folder, index.ExplainRequest{Query: retriever.Query{Text: "login"}}, nil)
			return err
		},
		"Index": func() error {
			_, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil)
			return err
		},
		"Status": func() error {
			_, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
			return err
		},
		"Documents": func() error {
			_, err := index.DocumentsOp.Call(t.Context(), w.Folder, index.DocumentsRequest{}, nil)
			return err
		},
		"Open to read": func() error {
			_, err := Open(t.Context(), sel, config.Default(), Reading, hashed())
			return err
		},
		"Open to own": func() error {
			_, err := Open(t.Context(), sel, config.Default(), Owning, hashed())
			return err
		},
	} {
		refused(what, call)
	}
	for e := range events { // the watcher reports it too
		if strings.Contains(e.Problem, "does not answer") {
			break
		}
	}

	signal(t, holder, syscall.SIGCONT)
	eventually(t, "an answer of the owner that continues", func() bool { return answers(t, w) })
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.Owner == nil || s.Owner.PID != pid || s.Degraded != nil || s.Problem != "" {
		t.Errorf("Status after the owner continued = %+v, %v", s, err)
	}
	write(t, filepath.Join(sel.Root, "new.md"), "# New\n\nA walrus in the login flow.\n")
	if report := fill(t, w, index.IndexRequest{Join: true}); report.Files != 4 {
		t.Errorf("Index after the owner continued = %+v, want 4 files", report)
	}

	signal(t, holder, syscall.SIGSTOP)
	signal(t, holder, syscall.SIGKILL)
	holder.cmd.Wait()
	eventually(t, "an answer after the owner was killed", func() bool { return answers(t, w) })
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.Owner == nil || s.Owner.PID != os.Getpid() {
		t.Errorf("Status after the owner was killed = %+v, %v, want this process as the owner", s, err)
	}
	if report := fill(t, w, index.IndexRequest{Join: true}); report.Files != 4 || report.Pending != 0 {
		t.Errorf("Index after taking over = %+v, want 4 files and nothing pending", report)
	}
}
