package web

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/store"
	"cairn/internal/text/markdown"
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
	named := func(name string) string {
		file, _ := s.last.places.Find("", markdown.Target{Path: "elsewhere/" + name, Wiki: true})
		return file
	}
	folders, documents := s.last.children("b/")
	if len(folders) != 1 || folders[0] != (count{"b/c/", 1}) || len(documents) != 1 || named("a") != "" || named("d") != "b/c/d.txt" {
		t.Errorf("in b/: %v, %v", folders, documents)
	}
}

// TestChips: the chips count the documents found, and hidden folders are last.
func TestChips(t *testing.T) {
	lib := &library{Documents: []index.DocumentEntry{{Path: ".cairn/cards/a.md"}, {Path: "a.md"}, {Path: "src/b.go"}, {Path: "src/main.go", Tags: []string{"go"}}}}
	for _, c := range []struct {
		paths []string
		kind  store.Kind
		want  []string
	}{
		{[]string{"a.md"}, "", []string{"words only 0", "meaning only 0"}},
		{[]string{"src/main.go", "a.md", "src/main.go"}, "", []string{"documents 1", "source code 1", "src/ 1", "#go 1", "words only 0", "meaning only 0"}},
		{[]string{"src/b.go", "src/main.go"}, store.Code, []string{"#go 1", "words only 0", "meaning only 0"}},
		{[]string{".cairn/cards/a.md", "src/b.go"}, "", []string{"source code 1", "cards 1", "src/ 1", ".cairn/ 1", "words only 0", "meaning only 0"}},
	} {
		p := &searchPage{Query: "main", Kind: c.kind}
		var got []string
		for _, chip := range p.chips(lib.only(c.paths)) {
			got = append(got, fmt.Sprint(chip.Label, " ", chip.Documents))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("of %q: %q, want %q", c.paths, got, c.want)
		}
	}
}
