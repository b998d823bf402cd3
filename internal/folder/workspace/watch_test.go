package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/index"
	"cairn/models"
	"cairn/retriever"
)

// following watches w and returns the channel of its events.
func following(t *testing.T, w *Workspace) <-chan index.WatchEvent {
	t.Helper()
	events := make(chan index.WatchEvent, 1000)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Watch(ctx, func(e index.WatchEvent) { events <- e }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v", err)
		}
	})
	return events
}

// until reads events up to one that ok accepts.
func until(t *testing.T, events <-chan index.WatchEvent, what string, ok func(index.WatchEvent) bool) {
	t.Helper()
	testutil.Await(t, func() string {
		for {
			select {
			case e := <-events:
				if ok(e) {
					return ""
				}
			default:
				return "no event: " + what
			}
		}
	})
}

// finds searches until the results are as wanted.
func finds(t *testing.T, w *Workspace, events <-chan index.WatchEvent, q retriever.Query, want ...string) {
	t.Helper()
	testutil.Await(t, func() string {
		a, err := index.SearchOp.Call(t.Context(), w.Folder, q, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, r := range a.Results {
			got = append(got, r.Path)
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return ""
		}
		return fmt.Sprintf("%+v finds %q, want %q", q, got, want)
	})
}

func byKeyword(text string) retriever.Query {
	return retriever.Query{Text: text, Mode: retriever.Keyword}
}

func TestWatchedFolderIsUpToDate(t *testing.T) {
	for _, poll := range []bool{false, true} {
		sel := folder(t)
		o := hashed()
		o.Watch, o.Background, o.Poll = true, true, poll
		w := open(t, sel, Owning, o)
		events := following(t, w)
		until(t, events, "the first", func(e index.WatchEvent) bool { return (e.Polling != "") == poll })
		fill(t, w, index.IndexRequest{Join: true})
		at := func(name string) string { return filepath.Join(sel.Root, name) }
		write(t, at("auth.md"), "# Auth\n\nNow about a zebra.\n")
		finds(t, w, events, byKeyword("zebra"), "auth.md")
		until(t, events, "vectors", func(e index.WatchEvent) bool { return e.Vectors })
		finds(t, w, events, retriever.Query{Text: "Now about a zebra", Mode: retriever.Semantic, Limit: 1}, "auth.md")
		write(t, at("new/deep/okapi.md"), "# Okapi\n")
		finds(t, w, events, byKeyword("okapi"), "new/deep/okapi.md")
		if err := os.Rename(at("new"), at("newer")); err != nil {
			t.Fatal(err)
		}
		finds(t, w, events, byKeyword("okapi"), "newer/deep/okapi.md")
		if err := os.Remove(at("auth.md")); err != nil {
			t.Fatal(err)
		}
		finds(t, w, events, byKeyword("zebra"))
		s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
		if err != nil || (s.Watching == "events") == poll || s.Watching == "" || s.Problem != "" {
			t.Errorf("Status = %+v, %v", s, err)
		}
		// A rebuild takes the stores from under the watcher.
		write(t, at("more.md"), "# More\n\nquagga\n")
		fill(t, w, index.IndexRequest{Rebuild: true, Join: true})
		finds(t, w, events, byKeyword("quagga"), "more.md")
		write(t, at("more.md"), "# More\n\ntapir\n")
		finds(t, w, events, byKeyword("tapir"), "more.md")
	}
}

// TestWatchThroughTheOwner: who is not the owner follows the owner's watching,
// which begins when it is asked for, and takes over when the owner ends.
func TestWatchThroughTheOwner(t *testing.T) {
	sel := folder(t)
	owner := open(t, sel, Owning, hashed()) // does not watch by itself
	fill(t, owner, index.IndexRequest{})
	write(t, filepath.Join(sel.Root, "before.md"), "# Written before\n\nzebra\n")
	w := open(t, sel, Owning, hashed())
	events := following(t, w)
	finds(t, w, events, byKeyword("zebra"), "before.md")
	write(t, filepath.Join(sel.Root, "after.md"), "# Written after\n\nokapi\n")
	finds(t, w, events, byKeyword("okapi"), "after.md")
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(sel.Root, "later.md"), "# Written later\n\nquagga\n")
	finds(t, w, events, byKeyword("quagga"), "later.md")
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.Owner == nil || s.Watching != "events" {
		t.Errorf("Status = %+v, %v, want this process to own and watch", s, err)
	}
}

// TestEditsDoNotWaitForVectors: while a thousand files are embedded, an edit is
// found by its words.
func TestEditsDoNotWaitForVectors(t *testing.T) {
	sel := folder(t)
	o := hashed()
	hold := make(chan struct{})
	embedding := make(chan struct{}, 1)
	o.Watch = true
	o.Model = func() (models.Embedder, error) {
		return &testutil.HashEmbedder{Before: func([]string) error {
			select {
			case embedding <- struct{}{}:
			default:
			}
			<-hold
			return nil
		}}, nil
	}
	w := open(t, sel, Owning, o)
	events := following(t, w)
	<-embedding // the first look's
	write(t, filepath.Join(sel.Root, "auth.md"), "# Auth\n\nzebra\n")
	finds(t, w, events, byKeyword("zebra"), "auth.md")
	close(hold)
	until(t, events, "vectors", func(e index.WatchEvent) bool { return e.Vectors })
}

func TestWatchProblemIsTold(t *testing.T) {
	sel := folder(t)
	o := hashed()
	fail := make(chan error, 1)
	fail <- errors.New("out of order")
	o.Watch = true
	o.Model = func() (models.Embedder, error) {
		return &testutil.HashEmbedder{Before: func([]string) error {
			select {
			case err := <-fail:
				return err
			default:
				return nil
			}
		}}, nil
	}
	w := open(t, sel, Owning, o)
	events := following(t, w)
	until(t, events, "the problem", func(e index.WatchEvent) bool { return e.Problem != "" })
	until(t, events, "vectors after the problem", func(e index.WatchEvent) bool { return e.Vectors })
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil); err != nil || s.Problem != "" {
		t.Errorf("Status = %+v, %v, want no problem any more", s, err)
	}
}

// TestFirstIndexIsAnEvent: clients that listed nothing before the first index learn of its end.
func TestFirstIndexIsAnEvent(t *testing.T) {
	sel := folder(t)
	o := hashed()
	hold := make(chan struct{})
	o.Watch, o.Background = true, true
	o.Model = func() (models.Embedder, error) {
		return &testutil.HashEmbedder{Before: func([]string) error { <-hold; return nil }}, nil
	}
	w := open(t, sel, Owning, o)
	events := following(t, w)
	until(t, events, "the watcher", func(index.WatchEvent) bool { return true })
	close(hold)
	until(t, events, "the first index", func(e index.WatchEvent) bool { return e.Changed > 0 })
}
