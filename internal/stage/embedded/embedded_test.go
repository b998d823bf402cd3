package embedded

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/stage"
	"cairn/internal/store/kv"
)

func openFile(t testing.TB, path string) *kv.File {
	file := kv.NewFile(path, nil)
	t.Cleanup(func() { file.Close() })
	return file
}

func create(t *testing.T, s *Store, id string) (*stage.State, error) {
	return stage.NewEngine(s, nil).Create(t.Context(), stage.Request{ID: id, UserID: "u", Query: "q"})
}

// TestSharedCommit: a batch stores its valid changes and nothing of refused ones.
func TestSharedCommit(t *testing.T) {
	s := Open(openFile(t, filepath.Join(t.TempDir(), "stage.db")))
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			id := fmt.Sprint("t", i%32) // each id twice
			if _, err := create(t, s, id); err != nil && !errors.Is(err, stage.Is(stage.CodeExists)) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := s.List(t.Context(), stage.Query{Limit: 100})
	if err != nil || len(list) != 32 {
		t.Errorf("%d tasks, %v, want 32", len(list), err)
	}
}

// TestReopened: acknowledged changes are present after reopening.
func TestReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stage.db")
	file := openFile(t, path)
	st, err := create(t, Open(file), "a")
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := Open(openFile(t, path)).Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(st, got); diff != "" {
		t.Errorf("after opening again (-want +got):\n%s", diff)
	}
}

// TestDamaged: the error for an unreadable task names the task.
func TestDamaged(t *testing.T) {
	file := openFile(t, filepath.Join(t.TempDir(), "stage.db"))
	s := Open(file)
	if _, err := create(t, s, "abc"); err != nil {
		t.Fatal(err)
	}
	if err := file.Update(func(tx *kv.Tx) error {
		b, err := tx.Bucket(tasks)
		return errors.Join(err, b.Put([]byte("abc"), []byte("{")))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), "abc"); err == nil || !strings.Contains(err.Error(), "abc") {
		t.Errorf("loading a damaged task: %v", err)
	}
}
