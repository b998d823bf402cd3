package web

import (
	"context"
	"slices"
	"testing"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/store"
	"cairn/retriever"
)

// listing is an index that counts how often its documents are listed.
type listing struct {
	files, lists int
}

// folder returns a folder whose operations call e.
func (e *listing) folder() *owner.Folder {
	return owner.Local(func(s *owner.Server) owner.Service {
		index.StatusOp.Answer(s, e.Status)
		index.DocumentsOp.Answer(s, e.Documents)
		return nil
	})
}

func (e *listing) Status(context.Context, index.StatusRequest) (*index.Status, error) {
	return &index.Status{IndexState: retriever.IndexState{Files: e.files}}, nil
}

func (e *listing) Documents(_ context.Context, r index.DocumentsRequest) (*index.Documents, error) {
	if r.After == "" {
		e.lists++
		return &index.Documents{Documents: []index.DocumentEntry{{Path: "a.md"}, {Path: "b/a.md"}}, More: true}, nil
	}
	return &index.Documents{Documents: []index.DocumentEntry{{Path: "b/c/d.txt"}, {Path: "e.md"}}}, nil
}

// TestLibrary: the documents are listed once while the index does not change.
func TestLibrary(t *testing.T) {
	e := &listing{files: 4}
	var s shelf
	for _, c := range []struct{ files, lists int }{{4, 1}, {4, 1}, {5, 2}, {5, 2}} {
		e.files, s.checked = c.files, time.Time{} // long ago
		l, err := s.library(t.Context(), e.folder())
		if err != nil || len(l.Documents) != 4 || e.lists != c.lists {
			t.Fatalf("%d documents after %d lists, %v, want 4 after %d", len(l.Documents), e.lists, err, c.lists)
		}
	}
	folders, documents := s.last.children("b/")
	if len(folders) != 1 || folders[0] != (count{"b/c/", 1}) || len(documents) != 1 || s.last.byName["a"] != "" || s.last.byName["d"] != "b/c/d.txt" {
		t.Errorf("in b/: %v, %v; names %v", folders, documents, s.last.byName)
	}
}

// TestKindChips: the kinds of files can be chosen where there are both.
func TestKindChips(t *testing.T) {
	docs := &library{Documents: []index.DocumentEntry{{Path: "a.md"}, {Path: "b.md"}}}
	both := &library{Documents: []index.DocumentEntry{{Path: "a.md"}, {Path: "src/main.go"}}}
	cards := &library{Documents: []index.DocumentEntry{{Path: ".cairn/cards/a.md"}, {Path: "a.md"}}}
	for _, c := range []struct {
		lib  *library
		kind store.Kind
		want []string
	}{
		{docs, "", []string{"by words", "by meaning"}},
		{both, "", []string{"src/", "by words", "by meaning", "documents", "source code"}},
		{both, store.Docs, []string{"by words", "by meaning", "source code"}},
		{cards, "", []string{".cairn/", "by words", "by meaning", "documents", "cards"}},
	} {
		p := &searchPage{Query: "main", Kind: c.kind}
		var got []string
		for _, chip := range p.chips(c.lib.of(c.kind), c.lib.kinds()) {
			got = append(got, chip.Label)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("kind %q: %q, want %q", c.kind, got, c.want)
		}
	}
}
