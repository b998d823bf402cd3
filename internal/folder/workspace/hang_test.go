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

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/toolsearch"
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

// reads calls every operation that reads, while process pid, the owner, does not answer.
func reads(t *testing.T, w *Workspace, pid int) {
	t.Helper()
	lacks := []string{index.OwnerLacking}
	want := func(what string, degraded []string, whole bool, err error) {
		t.Helper()
		if err != nil || !whole || !slices.Equal(degraded, lacks) {
			t.Errorf("%s without the owner: whole %v, degraded %q, %v", what, whole, degraded, err)
		}
	}
	for _, mode := range []retriever.Mode{retriever.Hybrid, retriever.Keyword, retriever.Semantic} {
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login flow", Mode: mode}, nil)
		want("Search, "+string(mode), a.Degraded, len(a.Results) > 0 && a.Results[0].Path == "auth.md", err)
	}
	reading, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: "auth.md"}, nil)
	want("Read", reading.Degraded, strings.Contains(reading.Content, "#"), err)
	readings, err := index.ReadAllOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Paths: []string{"auth.md"}}, nil)
	want("ReadAll", readings.Degraded, len(readings.Documents) == 1, err)
	trace, err := index.ExplainOp.Call(t.Context(), w.Folder, index.ExplainRequest{Query: retriever.Query{Text: "login"}}, nil)
	want("Explain", lacks, trace != nil, err)
	list, err := index.DocumentsOp.Call(t.Context(), w.Folder, index.DocumentsRequest{}, nil)
	want("Documents", list.Degraded, len(list.Documents) == 3, err)
	s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
	want("Status", s.Degraded, s.State == "ready" && s.Files == 3 && s.Owner.PID == pid && strings.Contains(s.Problem, fmt.Sprintf("kill -KILL %d", pid)), err)
	tools, err := toolbox.ListOp.Call(t.Context(), toolsOf(t, w), toolbox.ListRequest{}, nil)
	want("List", tools.Degraded, len(tools.Tools) == 0, err)
	found, err := toolbox.SearchOp.Call(t.Context(), toolsOf(t, w), toolsearch.Query{Text: "login"}, nil)
	want("Search of tools", found.Degraded, true, err)
}

// TestOwnerThatHangs: while the owner is stopped, every call that writes fails with an error
// that names it, and other processes answer all others without it. Everything works again
// when the owner continues. Then the owner is killed while it is stopped, and this process
// takes over.
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
	refused("Index", func() error {
		_, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil)
		return err
	})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { reads(t, w, pid) })
	}
	wg.Wait()
	for _, access := range []Access{Reading, Owning} {
		another := open(t, sel, access, hashed())
		reads(t, another, pid)
		if err := another.Close(); err != nil {
			t.Error(err)
		}
	}
	for e := range events { // the watcher reports it too
		if strings.Contains(e.Problem, "does not answer") {
			break
		}
	}

	signal(t, holder, syscall.SIGCONT)
	owned := func() bool {
		s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
		return err == nil && s.Degraded == nil
	}
	eventually(t, "an answer of the owner that continues", owned)
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.Owner == nil || s.Owner.PID != pid || s.Degraded != nil || s.Problem != "" {
		t.Errorf("Status after the owner continued = %+v, %v", s, err)
	}
	write(t, filepath.Join(sel.Root, "new.md"), "# New\n\nA walrus in the login flow.\n")
	eventually(t, "an index of 4 files", func() bool { // the owner may still complete the run of above
		return fill(t, w, index.IndexRequest{Join: true}).Files == 4
	})

	signal(t, holder, syscall.SIGSTOP)
	signal(t, holder, syscall.SIGKILL)
	holder.cmd.Wait()
	eventually(t, "an answer after the owner was killed", owned)
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.Owner == nil || s.Owner.PID != os.Getpid() {
		t.Errorf("Status after the owner was killed = %+v, %v, want this process as the owner", s, err)
	}
	if report := fill(t, w, index.IndexRequest{Join: true}); report.Files != 4 || report.Pending != 0 {
		t.Errorf("Index after taking over = %+v, want 4 files and nothing pending", report)
	}
}
