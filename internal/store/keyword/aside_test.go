//go:build unix

package keyword

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"cairn/internal/store"
)

// TestOpenAside reads an index beside the one that has it open: what there was
// is found whatever becomes of the segments.
func TestOpenAside(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), "with [signs] in it")
	x, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Update(ctx, crashEntries(1), nil); err != nil {
		t.Fatal(err)
	}
	a, err := OpenAside(dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := 2; n < 8; n++ {
		if err := x.Update(ctx, crashEntries(n), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Optimize(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(search(t, a, "batch1", 100, store.Filter{})); n != 50 {
		t.Errorf("%d hits, want the 50 of the batch that was there", n)
	}
	if err := a.Update(ctx, crashEntries(9), nil); err == nil {
		t.Error("an index opened aside takes updates")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "cairn-aside-*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
	if _, err := OpenAside(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent index: %v, want fs.ErrNotExist", err)
	}
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, catalogueFile), []byte("not a catalogue"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAside(damaged); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged index: %v, want ErrCorrupt", err)
	}
}

// TestOpenAsideHalted stops a writer at moments of its own: what it had said to be
// durable, or one batch more, is found beside it.
func TestOpenAsideHalted(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := startWriter(t, dir)
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for n := 0; n < 12; n++ {
		if !lines.Scan() {
			t.Fatal("the writer ended")
		}
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		var state syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
			t.Fatalf("stopping the writer: %v, %v", state, err)
		}
		a, err := OpenAside(dir)
		if err != nil {
			t.Fatalf("after batch %d: %v", n, err)
		}
		found := 0
		for batch := n; found == 0 && batch < n+1000; batch++ { // it may have gone on before it halted
			found = len(search(t, a, fmt.Sprint("batch", batch), 100, store.Filter{}))
		}
		if found != 50 {
			t.Errorf("after batch %d: %d chunks of one batch, want all 50", n, found)
		}
		a.Close()
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
}
