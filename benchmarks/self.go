package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/folder/config"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
	"cairn/retriever"
)

// SelfOptions configures Self.
type SelfOptions struct {
	// DocsOptions are the options of Docs, except for Data, Split and Learn.
	DocsOptions
	Selection config.Selection
	Questions string // a file: see ownQueries
}

// Self measures searches of a folder by the user's own questions. It copies the documents
// to a temporary folder.
func Self(ctx context.Context, o SelfOptions) (*DocsReport, error) {
	pages, err := readFolder(ctx, o.Selection, &o.Config, o.Config.Walk())
	if err != nil {
		return nil, err
	}
	set := &beirSet{documents: documentsOf(pages)}
	if set.queries, err = ownQueries(o.Questions, pages); err != nil {
		return nil, err
	}
	o.Split = strings.TrimSuffix(filepath.Base(o.Questions), filepath.Ext(o.Questions))
	report, err := measureDocs(ctx, set, filepath.Base(o.Selection.Root), &o.DocsOptions)
	if err == nil {
		report.Verdict = report.verdict()
	}
	return report, err
}

// verdict says in one sentence whether the answers are good, usual or poor, and what to do.
func (r *DocsReport) verdict() string {
	mode := retriever.Mode(r.Main().System)
	best, found := mode, r.Modes[mode].Hit5
	for _, other := range slices.Sorted(maps.Keys(r.Modes)) {
		if r.Modes[other].Hit5 > r.Modes[best].Hit5+.05 {
			best = other
		}
	}
	word, advice := "Poor", "read the reasons above; for documents in other languages, `cairn model add` installs an encoder"
	switch {
	case found >= .9:
		word, advice = "Good", "there is nothing to do"
	case found >= .75:
		word, advice = "Usual", "the reasons above say which documents lack the words of a question"
	}
	if best != mode {
		advice = fmt.Sprintf("mode %s finds %.0f %%: `cairn config set search.default_mode %s`", best, 100*r.Modes[best].Hit5, best)
	}
	return fmt.Sprintf("%s: the right document is among the first five for %.0f %% of %d questions; %s.", word, 100*found, r.Queries, advice)
}

// documentsOf returns the documents of pages, without the text that is hidden.
func documentsOf(pages []*page) (documents []beirDocument) {
	for _, p := range pages {
		file := p.path
		if markdown.FormatOf(file).Converted() {
			file += ".md" // its text is Markdown
		}
		documents = append(documents, beirDocument{ID: p.path, Text: p.without(), path: file})
	}
	return documents
}

// page is a document of a folder.
type page struct {
	path, text string
	parsed     *markdown.Document
	hidden     [][2]int // extents of text that is not indexed
}

// readFolder reads the documents that cairn would index with the options.
func readFolder(ctx context.Context, sel config.Selection, c *config.Config, documents *walk.Options) ([]*page, error) {
	tree, err := walk.Open(sel.Roots()...)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	var pages []*page
	err = tree.Walk(ctx, documents, func(e walk.Entry) error {
		if e.Dir || e.Reason != walk.None {
			return nil
		}
		data, _, err := tree.ReadFile(e.Path, markdown.MaxSize(e.Path))
		if err != nil {
			return nil // removed, or not readable
		}
		text, _, err := markdown.TextOf(e.Path, data, c.Masks())
		if err == nil && walk.Check(text) == walk.None {
			pages = append(pages, &page{path: e.Path, text: string(text), parsed: markdown.Parse(e.Path, text)})
		}
		return nil
	})
	if err == nil && len(pages) == 0 {
		err = fmt.Errorf("%s has no documents", sel.Root)
	}
	return pages, err
}

// without returns the text without the words of the hidden extents. What is between the
// words stays, so that lines keep their numbers, and comments and headings their marks.
func (p *page) without() string {
	hidden := make([]bool, len(p.text))
	for _, h := range p.hidden {
		for at := h[0]; at < h[1]; at++ {
			hidden[at] = true
		}
	}
	var b strings.Builder
	for at, r := range p.text {
		if !hidden[at] || !isWord(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// groups returns the groups of a query about the page.
func (p *page) groups(kind string) map[string]string {
	folder, _, nested := strings.Cut(p.path, "/")
	if !nested {
		folder = "."
	}
	return map[string]string{"kind": kind, "file": path.Ext(p.path), "folder": folder}
}

// Question is a question with the place of its answer, "path" or "path#anchor".
type Question struct{ Text, Place string }

// Append adds the question to a file for ownQueries.
func (q Question) Append(file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	text := strings.TrimLeft(strings.Join(strings.Fields(q.Text), " "), "#")
	_, err = fmt.Fprintf(f, "%s\t%s\n", text, q.Place)
	return errors.Join(err, f.Close())
}

// ownQueries reads a file with a question, a tab and a place on each line. A question with several
// answers has several lines. Lines that begin with # are comments. It fails if the folder does not
// have the place of an answer.
func ownQueries(file string, pages []*page) (queries []RunQuery, err error) {
	byPath := pathsOf(pages)
	at := map[string]int{}
	err = readLines(file, func(line []byte) error {
		if line[0] == '#' {
			return nil
		}
		text, place, ok := strings.Cut(string(line), "\t")
		q := Question{strings.TrimSpace(text), strings.TrimSpace(place)}
		if !ok || q.Text == "" || q.Place == "" || strings.Contains(place, "\t") {
			return fmt.Errorf("want a question, a tab, and path#anchor")
		}
		name, anchor, _ := strings.Cut(q.Place, "#")
		p := byPath[name]
		if p == nil {
			near := ""
			if names := markdown.Nearest(slices.Sorted(maps.Keys(byPath)), name, 1); len(names) > 0 {
				near = ", perhaps " + names[0]
			}
			return fmt.Errorf("the folder has no document %q%s", name, near)
		}
		i, ok := at[q.Text]
		if !ok {
			i = len(queries)
			at[q.Text] = i
			queries = append(queries, RunQuery{ID: fmt.Sprint(i + 1), Text: q.Text, Relevant: Relevance{}, Groups: p.groups("own")})
		}
		queries[i].Relevant[name] = 1
		if anchor == "" {
			return nil
		}
		s, ok := markdown.Resolve(p.parsed, anchor)
		if !ok {
			return fmt.Errorf("%s has no section %q", name, anchor)
		}
		queries[i].Sections = append(queries[i].Sections, name+"#"+p.parsed.Sections[s].Anchor)
		return nil
	})
	if err == nil && len(queries) == 0 {
		err = fmt.Errorf("%s has no question", file)
	}
	return queries, err
}
