package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/internal/task/notes"
	"cairn/retriever"
)

// section is a section of a document in TestNotesStayTrue. Its lines are unique.
type section struct {
	name, body string
	file       int // -1 if it is removed
}

// citedSections are sections with a note on each, in a few documents.
type citedSections struct {
	*testing.T
	root     string
	notes    *notes.Store
	r        *rand.Rand
	sections []*section
	lead     []int               // lines above the sections of a file
	cited    map[string]*section // by note
	body     map[string]string   // of the section, when its note was written or confirmed
}

func newCitedSections(t *testing.T, root string, store *notes.Store) *citedSections {
	t.Helper()
	const files, perFile = 4, 5
	c := &citedSections{T: t, root: root, notes: store, r: rand.New(rand.NewPCG(1, 1)), lead: make([]int, files), cited: map[string]*section{}, body: map[string]string{}}
	for f := range files {
		for i := range perFile {
			name := fmt.Sprintf("part%d%d", f, i)
			text := "The " + name + " holds"
			for range 12 {
				text += fmt.Sprintf(" word%d", c.r.IntN(1000))
			}
			c.sections = append(c.sections, &section{name, text + ".", f})
		}
	}
	c.save()
	for _, s := range c.sections {
		made, err := c.notes.Remember(t.Context(), s.name, notes.Request{Text: "We found out about the items of " + s.name + ".", RestsOn: []string{s.place()}})
		if err != nil {
			t.Fatal(err)
		}
		c.cited[made.Path], c.body[made.Path] = s, s.body
	}
	return c
}

func (s *section) place() string { return fmt.Sprintf("doc%d.md#%s", s.file, s.name) }

// save writes the documents.
func (c *citedSections) save() {
	c.Helper()
	for f, lead := range c.lead {
		text := fmt.Sprintf("# File %d\n%s", f, strings.Repeat("\nA line above.\n", lead))
		for _, s := range c.sections {
			if s.file == f {
				text += fmt.Sprintf("\n## %s\n\n%s\n", s.name, s.body)
			}
		}
		write(c.T, filepath.Join(c.root, fmt.Sprintf("doc%d.md", f)), text)
	}
}

// edit changes one section or what is above it, or confirms its note. It reports whether the
// section is in another file now.
func (c *citedSections) edit(n int) (moved bool) {
	c.Helper()
	s := c.sections[c.r.IntN(len(c.sections))]
	what, home := c.r.IntN(7), s.file
	switch {
	case s.file < 0: // it returns, as it was
		s.file = c.r.IntN(len(c.lead))
	case what == 0:
		c.lead[s.file]++
	case what == 1:
		s.file = c.r.IntN(len(c.lead)) // moved to another file
	case what == 2:
		s.body = strings.Replace(s.body, "holds", "does not hold", 1)
	case what == 3:
		s.body = strings.Replace(s.body, "does not hold", "holds", 1)
	case what == 4:
		s.body += fmt.Sprintf(" That is %d.", n)
	case what == 5:
		s.file = -1 // removed
	default:
		c.confirm(n, s)
	}
	c.save()
	return s.file != home
}

// confirm confirms the note on a section, if the section has changed.
func (c *citedSections) confirm(n int, s *section) {
	c.Helper()
	for path, of := range c.cited {
		if of != s || c.body[path] == s.body {
			continue
		}
		r := notes.Request{ID: strings.TrimSuffix(filepath.Base(path), ".md")}
		_, err := c.notes.Remember(c.Context(), s.name, r)
		if err != nil && strings.Contains(err.Error(), "removed") { // and another text is elsewhere
			r.RestsOn = []string{s.place()}
			_, err = c.notes.Remember(c.Context(), s.name, r)
		}
		if err != nil {
			c.Fatalf("edit %d: %v", n, err)
		}
		c.body[path] = s.body
	}
}

// TestNotesStayTrue edits documents 200 times. After each edit a ranked search and an exact one
// serve without a warning exactly the notes whose lines are still in the folder, and the others
// with one.
func TestNotesStayTrue(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	tasks, err := w.Tasks(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	c := newCitedSections(t, sel.Root, tasks.Notes)
	fill(t, w, index.IndexRequest{})
	warned, fresh := 0, 0
	for edit := range 200 {
		if c.edit(edit) { // the index finds the file that has a section now; what changed is read
			fill(t, w, index.IndexRequest{})
		}
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "what did we find out about the items", Limit: retriever.MaxLimit, Filter: store.Filter{Kind: store.Notes}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		scanned, err := w.Scan(t.Context(), scan.Request{Pattern: "We found out"})
		if err != nil {
			t.Fatal(err)
		}
		known, err := index.NotesOp.Call(t.Context(), w.Folder, index.NotesRequest{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Results) != len(c.cited) {
			t.Fatalf("edit %d: %d notes are found, want %d", edit, len(a.Results), len(c.cited))
		}
		for _, found := range a.Results {
			s := c.cited[found.Path]
			holds := s.file >= 0 && s.body == c.body[found.Path]
			if holds != (len(found.Outdated) == 0) {
				t.Errorf("edit %d: the note about %s holds: %v, warnings: %v", edit, s.name, holds, found.Outdated)
			}
			if _, warned := scanned.Outdated[found.Path]; holds == warned {
				t.Errorf("edit %d: the note about %s holds: %v, but its line has a warning: %v", edit, s.name, holds, warned)
			}
			if _, listed := known.Outdated[found.Path]; holds == listed {
				t.Errorf("edit %d: the note about %s holds: %v, but is listed as outdated: %v", edit, s.name, holds, listed)
			}
			if holds {
				fresh++
			} else {
				warned++
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d notes without a warning, %d with one", fresh, warned)
	if warned < 200 || fresh < 200 {
		t.Errorf("%d notes with a warning and %d without prove little", warned, fresh)
	}
}

// TestOutdatedNoteRanksLower: of two notes with the same words, the one whose lines changed
// is second, and read_doc shows the difference.
func TestOutdatedNoteRanksLower(t *testing.T) {
	sel := folder(t)
	write(t, filepath.Join(sel.Root, "a.md"), "# A\n\nThe limit of requests is twenty a second.\n")
	write(t, filepath.Join(sel.Root, "b.md"), "# B\n\nThe limit of uploads is forty a minute.\n")
	w := open(t, sel, Owning, hashed())
	tasks, err := w.Tasks(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	paths := []string{}
	for _, at := range []string{"a.md:3", "b.md:3"} {
		made, err := tasks.Notes.Remember(t.Context(), "", notes.Request{Text: "Mind the limits when you retry. See " + at, RestsOn: []string{at}})
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, made.Path)
	}
	fill(t, w, index.IndexRequest{})
	for n, name := range []string{"a.md", "b.md"} {
		old, err := os.ReadFile(filepath.Join(sel.Root, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(sel.Root, name), strings.Replace(string(old), "limit", "bound", 1))
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "mind limits retry", Filter: store.Filter{Kind: store.Notes}, Explain: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := a.Results[1]
		if last.Path != paths[n] || len(last.Outdated) != 1 || len(a.Results[0].Outdated) != 0 || last.Explain.Code >= 0 {
			t.Errorf("%s changed, but the last note is %s, outdated %v", name, last.Path, last.Outdated)
		}
		read, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: paths[n]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text := read.Text(); !strings.Contains(text, "warning: outdated") || !strings.Contains(text, "\n+The bound of") || strings.Contains(read.Content, "receipt") {
			t.Errorf("read_doc: %s", text)
		}
		write(t, filepath.Join(sel.Root, name), string(old))
	}
}

// TestWatcherMarksNotes: the status counts the notes whose lines changed, and reads no note for
// that.
func TestWatcherMarksNotes(t *testing.T) {
	sel := folder(t)
	const line = "The limit of uploads is forty a minute."
	at := func(name, text string) { write(t, filepath.Join(sel.Root, name), "# Limits\n\n"+text+"\n") }
	at("b.md", line)
	o := hashed()
	o.Watch, o.Background = true, true
	w := open(t, sel, Owning, o)
	following(t, w)
	tasks, err := w.Tasks(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	made, err := tasks.Notes.Remember(t.Context(), "", notes.Request{Text: "Mind the limit.", RestsOn: []string{"b.md:3"}})
	if err != nil {
		t.Fatal(err)
	}
	marked := func(what string, all, outdated int) {
		t.Helper()
		testutil.Await(t, func() string {
			s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Notes == all && s.Outdated == outdated && len(s.OutdatedNotes) == outdated {
				return ""
			}
			return fmt.Sprintf("%s: %d notes, outdated %q; want %d and %d", what, s.Notes, s.OutdatedNotes, all, outdated)
		})
	}
	marked("written", 1, 0)
	at("b.md", "Nothing of that kind is bounded here.")
	marked("changed", 1, 1)
	at("c.md", line)
	marked("moved to another file", 1, 0)
	at("c.md", "Another line of this file.")
	marked("changed in the other file", 1, 1)
	if _, err := tasks.Notes.Remember(t.Context(), "", notes.Request{ID: made.ID}); err != nil {
		t.Fatal(err)
	}
	marked("confirmed", 1, 0)
	if _, err := tasks.Notes.Remember(t.Context(), "", notes.Request{ID: made.ID, Drop: true}); err != nil {
		t.Fatal(err)
	}
	marked("dropped", 0, 0)
}
