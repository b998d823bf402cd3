package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
)

// TestNextProcessFinishesRestore ends a restore before each of its writes, as a kill does,
// and then changes a card. The next process to open the folder or its tasks completes the
// restore, and keeps the changed card.
func TestNextProcessFinishesRestore(t *testing.T) {
	from, _ := recordedFolder(t, "new")
	var backup bytes.Buffer
	if _, err := from.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	restore := func(w *Workspace, at string) (steps []string) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			o := RestoreOptions{Overwrite: true, step: func(name string) error {
				if steps = append(steps, name); name == at {
					runtime.Goexit()
				}
				return nil
			}}
			if _, err := w.Restore(t.Context(), bytes.NewReader(backup.Bytes()), o); err != nil {
				t.Error(err)
			}
		}()
		<-done
		return steps
	}
	w, sel := recordedFolder(t, "old")
	steps := restore(w, "")
	want := content(t, w, sel.Root)
	for i, at := range steps {
		w, sel := recordedFolder(t, "old")
		restore(w, at)
		card := filepath.Join(sel.Root, ".cairn/cards/both.md")
		changed := i%2 == 0
		if changed {
			write(t, card, "changed since then")
		}
		if i > 2 {
			tasks, err := OpenTasks(sel, config.Default(), nil)
			if err != nil {
				t.Fatal(err)
			}
			tasks.Close()
		} else if err := w.Close(); err != nil {
			t.Fatal(err)
		} else {
			w = open(t, sel, Reading, hashed())
		}
		text := map[bool]string{true: "changed since then", false: "new both"}[changed]
		if got, err := os.ReadFile(card); err != nil || string(got) != text {
			t.Errorf("ended before %s: the card has %q, %v, want %q", at, got, err, text)
		}
		write(t, card, "new both")
		if diff := cmp.Diff(want, content(t, w, sel.Root)); diff != "" {
			t.Errorf("ended before %s (-want +got)\n%s", at, diff)
		}
		if _, err := os.Stat(filepath.Join(testutil.Place(t, sel.Root).Records, pendingRestore)); err == nil {
			t.Errorf("ended before %s: the restore is still pending", at)
		}
	}
}
