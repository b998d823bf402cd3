package retriever

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"cairn/internal/store"
	"cairn/internal/text/query"
	"cairn/internal/text/receipt"
)

// Outdated is a citation of a note whose lines changed or were removed.
type Outdated struct {
	Receipt string         `json:"receipt"`
	Status  receipt.Status `json:"status"` // changed or removed
	// Now is the receipt of the present lines, and Diff the difference, if they are known.
	Now  string `json:"now,omitempty"`
	Diff string `json:"diff,omitempty"`
}

// The bounds of the check of notes.
const (
	// noteWeight is the factor of the score of a note that rests on lines which changed.
	noteWeight = 0.5
	// checkedNotes is how many of the best documents are checked before they are ranked. A
	// note on the page is checked in any case.
	checkedNotes = 100
	// maxCited is the most receipts of a note that are checked. A note with more is outdated.
	maxCited = 50
	// maxDiff bounds a difference, in bytes.
	maxDiff = 600
	// maxOutdated is the most citations of a note in an answer.
	maxOutdated = 3
	// elsewhere is the most documents in which a search looks for lines that are missing from
	// theirs.
	elsewhere = 10
	// searchedWords is how many words of missing lines a search looks for.
	searchedWords = 60
)

// weighNotes lowers the scores of the notes among the best documents that are outdated.
func (s *search) weighNotes(ctx context.Context, documents []RankedDocument) error {
	lowered := false
	for i := range documents[:min(checkedNotes, len(documents))] {
		d := &documents[i]
		if !store.IsNote(d.Path) {
			continue
		}
		outdated, err := s.outdatedNote(ctx, d.Path)
		if err != nil {
			return err
		}
		if len(outdated) > 0 {
			d.codeWeight = noteWeight
			d.Score, lowered = d.weigh(), true
		}
	}
	if lowered {
		sortDocuments(documents)
	}
	return nil
}

// outdatedNote is outdated, once for each note of a search.
func (s *search) outdatedNote(ctx context.Context, path string) (list []Outdated, err error) {
	list, known := s.notes[path]
	if !known && store.IsNote(path) {
		if list, err = s.outdated(ctx, path); err != nil {
			return nil, err
		}
		if s.notes == nil {
			s.notes = map[string][]Outdated{}
		}
		s.notes[path] = list
	}
	return list, nil
}

// outdated returns the citations of a note whose lines are not the same, nor the same
// elsewhere.
func (r *Retriever) outdated(ctx context.Context, path string) ([]Outdated, error) {
	c, err := r.CheckNote(ctx, path)
	if errors.Is(err, ErrNoNote) {
		err = nil
	}
	return c.Outdated, err
}

// CheckedNote is what became of the lines that a note cites.
type CheckedNote struct {
	// Outdated lists the citations whose lines are not the same, nor the same elsewhere.
	Outdated []Outdated
	// Files are the paths with the cited lines, as they were and as they are.
	Files []string
}

// ErrNoNote reports that a path names no note that can be read.
var ErrNoNote = errors.New("there is no such note")

// CheckNote reads the present files that a note cites, so that its result depends on no
// earlier check. It looks for missing lines in the given documents, by default in those that
// match their words best.
func (r *Retriever) CheckNote(ctx context.Context, path string, documents ...string) (c CheckedNote, err error) {
	if r.sources.Files == nil || !store.IsNote(path) {
		return c, ErrNoNote
	}
	note, _, err := r.open(path)
	if err != nil {
		return c, cmp.Or(ctx.Err(), ErrNoNote)
	}
	cited := receipt.In(note.text, maxCited+1)
	if len(cited) > maxCited {
		c.Outdated = []Outdated{{Status: receipt.Changed, Diff: fmt.Sprintf("not checked: the note has more than %d receipts\n", maxCited)}}
		return c, nil
	}
	source := citedFiles{Retriever: r, documents: documents}
	full := make([]receipt.Full, len(cited))
	for i := range cited {
		full[i] = cited[i].Full
		source.texts = append(source.texts, full[i].Text)
	}
	findings, err := receipt.Check(ctx, &source, full)
	for _, f := range findings {
		if c.Files = append(c.Files, f.Receipt.Path); f.Now != nil {
			c.Files = append(c.Files, f.Now.Receipt.Path)
		}
		if err == nil && !f.Holds() && len(c.Outdated) < maxOutdated {
			c.Outdated = append(c.Outdated, newOutdated(f))
		}
	}
	return c, err
}

func newOutdated(f receipt.Finding) Outdated {
	o := Outdated{Receipt: f.Receipt.String(), Status: f.Status, Diff: f.Diff}
	if f.Status == receipt.Moved {
		o.Status = receipt.Changed // its lines have more text
	}
	if f.Now != nil {
		o.Now = f.Now.Receipt.String()
	}
	if f.Now != nil && o.Diff == "" {
		o.Diff = "+" + strings.ReplaceAll(f.Now.Text, "\n", "\n+") + "\n"
	}
	if len(o.Diff) > maxDiff {
		o.Diff = strings.ToValidUTF8(o.Diff[:maxDiff], "") + "...\n"
	}
	return o
}

// citedFiles is the receipt.Source of a note. It reads the files that Read reads, with secrets
// masked, and looks for missing texts in the documents that match their words best.
type citedFiles struct {
	*Retriever
	texts     []string
	documents []string
}

func (c *citedFiles) Text(path string) ([]byte, error) {
	if _, err := c.sources.Files.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, _, err := c.open(path)
	if err != nil {
		return nil, err
	}
	return f.text, nil
}

func (c *citedFiles) Documents(ctx context.Context) (paths []string, err error) {
	if len(c.documents) > 0 {
		return c.documents, nil
	}
	seen := map[string]bool{}
	for _, text := range c.texts {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue // the short form of a receipt
		}
		hits, err := c.sources.Keyword.Search(ctx, query.Query{Words: strings.Join(words[:min(searchedWords, len(words))], " ")}, 3*elsewhere, store.Filter{})
		if err != nil {
			return nil, err
		}
		found := 0
		for _, h := range hits {
			path, _, _, _ := store.SplitChunkID(h.Chunk)
			if found < elsewhere && !seen[path] && !store.IsNote(path) {
				seen[path], found = true, found+1
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}

// String returns what became of the lines, without their difference.
func (o *Outdated) String() string {
	line := fmt.Sprintf("outdated, %s %s", o.Receipt, o.Status)
	if o.Now != "" {
		line += ", now " + o.Now
	}
	return printed(line)
}

// writeOutdated writes a warning for each citation of a note that no longer holds.
func writeOutdated(b *strings.Builder, list []Outdated) {
	for i := range list {
		b.WriteString(mark + " warning: " + list[i].String() + "\n" + quoted(list[i].Diff))
	}
}
