package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/folder/index"
	"cairn/internal/store"
	"cairn/internal/task/notes"
	"cairn/retriever"
)

// section is a section of a document in TestNotesStayTrue. Its lines are unique.
type section struct {
	name, body string
	file       int // -1 if it is removed
}

// TestNotesStayTrue edits documents 200 times. After each edit a search serves without a
// warning exactly the notes whose lines are still in the folder, and the others with one.
func TestNotesStayTrue(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	tasks, err := w.Tasks(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	r := rand.New(rand.NewPCG(1, 1))
	const files, perFile = 4, 5
	var sections []*section
	lead := make([]int, files) // lines above the sections of a file
	for f := range files {
		for i := range perFile {
			name := fmt.Sprintf("part%d%d", f, i)
			text := "The " + name + " holds"
			for range 12 {
				text += fmt.Sprintf(" word%d", r.IntN(1000))
			}
			sections = append(sections, &section{name, text + ".", f})
		}
	}
	save := func() {
		for f := range files {
			text := fmt.Sprintf("# File %d\n%s", f, strings.Repeat("\nA line above.\n", lead[f]))
			for _, s := range sections {
				if s.file == f {
					text += fmt.Sprintf("\n## %s\n\n%s\n", s.name, s.body)
				}
			}
			write(t, filepath.Join(sel.Root, fmt.Sprintf("doc%d.md", f)), text)
		}
	}
	save()
	cited := map[string]*section{} // by note
	body := map[string]string{}    // of the section, when it was cited
	remember := func(s *section) {
		made, err := tasks.Notes.Remember(t.Context(), s.name, notes.Request{Text: "We found out about the items of " + s.name + ".", RestsOn: []string{fmt.Sprintf("doc%d.md#%s", s.file, s.name)}})
		if err != nil {
			t.Fatal(err)
		}
		cited[made.Path], body[made.Path] = s, s.body
	}
	for _, s := range sections {
		remember(s)
	}
	fill(t, w, index.IndexRequest{})
	warned, fresh := 0, 0
	for edit := range 200 {
		s := sections[r.IntN(len(sections))]
		what, home := r.IntN(7), s.file
		switch {
		case s.file < 0: // it returns, as it was
			s.file = r.IntN(files)
		case what == 0:
			lead[s.file]++
		case what == 1:
			s.file = r.IntN(files) // moved to another file
		case what == 2:
			s.body = strings.Replace(s.body, "holds", "does not hold", 1)
		case what == 3:
			s.body = strings.Replace(s.body, "does not hold", "holds", 1)
		case what == 4:
			s.body += fmt.Sprintf(" That is %d.", edit)
		case what == 5:
			s.file = -1 // removed
		default: // the note is confirmed
			for path, of := range cited {
				if of == s && body[path] != s.body {
					r := notes.Request{ID: strings.TrimSuffix(filepath.Base(path), ".md")}
					_, err := tasks.Notes.Remember(t.Context(), s.name, r)
					if err != nil && strings.Contains(err.Error(), "removed") { // and another text is elsewhere
						r.RestsOn = []string{fmt.Sprintf("doc%d.md#%s", s.file, s.name)}
						_, err = tasks.Notes.Remember(t.Context(), s.name, r)
					}
					if err != nil {
						t.Fatalf("edit %d: %v", edit, err)
					}
					body[path] = s.body
				}
			}
		}
		save()
		if s.file != home { // the index finds the file that has a section now; what changed is read
			fill(t, w, index.IndexRequest{})
		}
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "what did we find out about the items", Limit: retriever.MaxLimit, Filter: store.Filter{Kind: store.Notes}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Results) != len(cited) {
			t.Fatalf("edit %d: %d notes are found, want %d", edit, len(a.Results), len(cited))
		}
		for _, found := range a.Results {
			s := cited[found.Path]
			holds := s.file >= 0 && s.body == body[found.Path]
			if holds != (len(found.Outdated) == 0) {
				t.Errorf("edit %d (%d): the note about %s holds: %v, warnings: %v", edit, what, s.name, holds, found.Outdated)
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
