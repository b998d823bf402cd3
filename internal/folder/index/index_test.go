package index

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/models"
	"cairn/retriever"
)

// open returns the index of a folder with one document, as its owner.
func open(t *testing.T, change func(*Options)) *Index {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "auth.md"), []byte("# Auth\n\nThe login flow asks for a token.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := &testutil.HashEmbedder{}
	o := Options{
		Selection: config.Selection{Root: root}, Config: config.Default(), Dir: t.TempDir(), Holder: &owner.Holder{PID: os.Getpid()}, Write: true,
		Settings: Settings{
			Description: e.Description(), Model: func() (models.Embedder, error) { return e, nil },
			Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		},
	}
	if change != nil {
		change(&o)
	}
	x := New(o)
	t.Cleanup(func() { x.Close() })
	return x
}

// TestSearchesTakeTurns: as many searches run as there are processors; reads do not
// wait for them, and a search that waits ends with its context.
func TestSearchesTakeTurns(t *testing.T) {
	x := open(t, nil)
	if _, err := x.Index(t.Context(), IndexRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	all := int64(runtime.GOMAXPROCS(0))
	if !x.searches.TryAcquire(all) || x.searches.TryAcquire(1) {
		t.Fatalf("not as many turns as processors, %d", all)
	}
	if _, err := x.Read(t.Context(), retriever.ReadRequest{Path: "auth.md"}); err != nil {
		t.Errorf("a read while searches have every turn: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := x.Search(ended, retriever.Query{Text: "login"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a search without a turn whose context has ended: %v, want %v", err, context.Canceled)
	}
	failed := make(chan error)
	go func() {
		_, err := x.Search(t.Context(), retriever.Query{Text: "login"})
		failed <- err
	}()
	x.searches.Release(all)
	if err := <-failed; err != nil {
		t.Errorf("a search that waited for its turn: %v", err)
	}
}

// TestRunStopsWhereTheIndexWasRemoved: a run in progress writes nothing into an index
// that another process has made since.
func TestRunStopsWhereTheIndexWasRemoved(t *testing.T) {
	entered := make(chan struct{})
	e := &testutil.HashEmbedder{Before: func([]string) error { close(entered); return context.DeadlineExceeded }}
	removed := make(chan struct{})
	inner := e.Before
	e.Before = func(texts []string) error { _ = inner(texts); <-removed; return nil }
	x := open(t, func(o *Options) { o.Model = func() (models.Embedder, error) { return e, nil } })
	ended := make(chan error, 1)
	go func() {
		_, err := x.Index(context.Background(), IndexRequest{}, nil)
		ended <- err
	}()
	<-entered
	s := x.stores
	if err := os.RemoveAll(x.options.Dir); err != nil {
		t.Fatal(err)
	}
	if err := x.checkHeld(s); !errors.Is(err, owner.ErrEnded) {
		t.Errorf("checkHeld of stores that were removed = %v, want ErrEnded", err)
	}
	close(removed)
	if err := <-ended; !errors.Is(err, owner.ErrEnded) {
		t.Errorf("the run = %v, want ErrEnded", err)
	}
	if err := x.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

// TestWordsNeedNoModel: a run without vectors, and a search by words, do not open the model.
func TestWordsNeedNoModel(t *testing.T) {
	x := open(t, func(o *Options) {
		o.Model = func() (models.Embedder, error) { return nil, errors.New("the model was opened") }
		o.Tokenizer = func() (models.Tokenizer, error) { return testutil.HashTokenizer{}, nil }
	})
	if _, err := x.Index(t.Context(), IndexRequest{NoEmbed: true}, nil); err != nil {
		t.Fatal(err)
	}
	if a, err := x.Search(t.Context(), retriever.Query{Text: "login", Mode: retriever.Keyword}); err != nil || len(a.Results) == 0 {
		t.Errorf("a search by words: %+v, %v", a, err)
	}
}
