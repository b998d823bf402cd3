package embedded

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/stage"
	"cairn/internal/stage/stagetest"
	"cairn/internal/store/kv"
)

func TestStore(t *testing.T) {
	dbs := map[string]*kv.DB{} // one file a test; both of its stores share it
	stagetest.Store(t, func(t *testing.T) stage.Store {
		db := dbs[t.Name()]
		if db == nil {
			db = openFile(t, filepath.Join(t.TempDir(), "stage.db"))
			dbs[t.Name()] = db
		}
		return Open(db, nil)
	})
}

func openFile(t testing.TB, path string) *kv.DB {
	db, err := kv.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestSharedCommit: a batch stores its valid changes and nothing of refused ones.
func TestSharedCommit(t *testing.T) {
	s := Open(openFile(t, filepath.Join(t.TempDir(), "stage.db")), nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			id := fmt.Sprint("t", i%32) // each id twice
			st, fx, err := stage.New(stage.Request{ID: id, UserID: "u", Query: "q", At: time.Now()})
			if err != nil {
				t.Error(err)
			}
			if err := s.Create(t.Context(), st, fx); err != nil && !errors.Is(err, stage.Is(stage.CodeExists)) {
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
	db := openFile(t, path)
	st := stagetest.Make(t, Open(db, nil), stage.Request{ID: "a", At: time.Now()})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Open(openFile(t, path), nil).Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	stagetest.Same(t, "after opening again", got, st)
}

// TestDamaged: the error for an unreadable task names the task.
func TestDamaged(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "stage.db"))
	s := Open(db, nil)
	stagetest.Make(t, s, stage.Request{ID: "abc", At: time.Now()})
	if err := db.Update(func(tx *kv.Tx) error {
		b, err := tx.Bucket(tasks)
		return errors.Join(err, b.Put([]byte("abc"), []byte("{")))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), "abc"); err == nil || !strings.Contains(err.Error(), "abc") {
		t.Errorf("loading a damaged task: %v", err)
	}
}
