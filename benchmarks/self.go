package benchmarks

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/folder/config"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// SelfOptions configures Self.
type SelfOptions struct {
	// DocsOptions are the options of Docs, except for Data, Split and Learn.
	DocsOptions
	Selection config.Selection
	// Questions is a file of questions; see readQuestions. Without it the queries are
	// derived from the folder: Sample of each kind (0 means 50), chosen with Seed.
	Questions string
	Sample    int
	Seed      uint64
}

// Self measures searches of a folder that has no judgements. The queries are known items,
// whose text is not in the index of the run, or the user's own questions. Self copies the
// documents to a temporary folder.
func Self(ctx context.Context, o SelfOptions) (*DocsReport, error) {
	documents := o.Config.Walk()
	if o.Questions == "" {
		documents.Code = walk.CodeOff
	}
	pages, err := readFolder(ctx, o.Selection, &o.Config, documents)
	if err != nil {
		return nil, err
	}
	set, name := &beirSet{}, "self"
	if o.Questions != "" {
		name = strings.TrimSuffix(filepath.Base(o.Questions), filepath.Ext(o.Questions))
		set.queries, err = ownQueries(o.Questions, pages)
	} else {
		set.queries, err = knownItems(pages, &o)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		file := p.path
		if markdown.FormatOf(file).Converted() {
			file += ".md" // its text is Markdown
		}
		set.documents = append(set.documents, beirDocument{ID: p.path, Text: p.without(), path: file})
	}
	o.Split = name
	report, err := measureDocs(ctx, set, filepath.Base(o.Selection.Root), &o.DocsOptions)
	if err == nil {
		report.Verdict = verdict(report.Main().Summary(), report.Groups)
	}
	return report, err
}

// Shares of the queries whose document is among the first five. Hybrid search has .91 to .93
// in the three folders of README.md, and .83 in one of them without titles and headings. A
// verdict needs minVerdict queries, and a folder that it names minFolder.
const (
	goodShare, poorShare  = .95, .85
	minVerdict, minFolder = 30, 10
)

// verdict states in one sentence whether the result of Self is good, and what to do.
func verdict(main RunSummary, groups []GroupReport) string {
	share := fmt.Sprintf("%.0f of 100 queries find their document among the first five results", 100*main.Hit5)
	advice := ""
	if f := weakest(groups); f != nil && f.Hit5 < main.Hit5 {
		advice = fmt.Sprintf(", first in the folder %s (%.0f of 100)", f.Group, 100*f.Hit5)
	}
	switch {
	case main.Queries < minVerdict:
		return fmt.Sprintf("No verdict: %s, but %d queries are too few; collect questions with `cairn bench ask`.", share, main.Queries)
	case main.Hit5 >= goodShare:
		return "Good: " + share + "; nothing needs to be done."
	case main.Hit5 >= poorShare:
		return "Usual: " + share + "; to improve it, give the sections of the worst queries headings in the words of a question" + advice + "."
	}
	return "Poor: " + share + "; split long pages, and give sections headings in the words of a question" + advice + "."
}

// weakest returns the folder with the lowest share of queries whose document is among the
// first five, nil if there are not several.
func weakest(groups []GroupReport) (worst *GroupReport) {
	folders := 0
	for i, g := range groups {
		if g.By != "folder" || g.Queries < minFolder {
			continue
		}
		if folders++; worst == nil || g.Hit5 < worst.Hit5 {
			worst = &groups[i]
		}
	}
	if folders < 2 {
		return nil
	}
	return worst
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

// without returns the text without the hidden extents. It keeps line breaks, so that lines
// keep their numbers.
func (p *page) without() string {
	var b strings.Builder
	at := 0
	slices.SortFunc(p.hidden, func(a, b [2]int) int { return a[0] - b[0] })
	for _, h := range p.hidden {
		b.WriteString(p.text[at:h[0]])
		b.WriteString(strings.Repeat("\n", strings.Count(p.text[h[0]:h[1]], "\n")))
		at = h[1]
	}
	return b.String() + p.text[at:]
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

// readQuestions reads a file with a question, a tab and a place on each line. A question
// with several answers has several lines. Lines that begin with # are comments.
func readQuestions(file string) ([]Question, error) {
	var questions []Question
	err := readLines(file, func(line []byte) error {
		if line[0] == '#' {
			return nil
		}
		text, place, ok := strings.Cut(string(line), "\t")
		q := Question{strings.TrimSpace(text), strings.TrimSpace(place)}
		if !ok || q.Text == "" || q.Place == "" || strings.Contains(place, "\t") {
			return fmt.Errorf("want a question, a tab, and path#anchor")
		}
		questions = append(questions, q)
		return nil
	})
	return questions, err
}

// Append adds the question to a file for readQuestions.
func (q Question) Append(file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	text := strings.TrimLeft(strings.Join(strings.Fields(q.Text), " "), "#")
	_, err = fmt.Fprintf(f, "%s\t%s\n", text, q.Place)
	if err := f.Close(); err != nil {
		return err
	}
	return err
}

// ownQueries returns the questions of a file. It fails if the folder does not have the place
// of an answer.
func ownQueries(file string, pages []*page) ([]RunQuery, error) {
	questions, err := readQuestions(file)
	if err != nil {
		return nil, err
	}
	byPath, paths := map[string]*page{}, make([]string, len(pages))
	for i, p := range pages {
		byPath[p.path], paths[i] = p, p.path
	}
	var queries []RunQuery
	at := map[string]int{}
	for _, q := range questions {
		name, anchor, _ := strings.Cut(q.Place, "#")
		p := byPath[name]
		if p == nil {
			near := ""
			if names := markdown.Nearest(paths, name, 1); len(names) > 0 {
				near = ", perhaps " + names[0]
			}
			return nil, fmt.Errorf("%s: the folder has no document %q%s", file, name, near)
		}
		i, ok := at[q.Text]
		if !ok {
			i = len(queries)
			at[q.Text] = i
			queries = append(queries, RunQuery{ID: fmt.Sprint(i + 1), Text: q.Text, Relevant: Relevance{}, Groups: p.groups("own")})
		}
		queries[i].Relevant[name] = 1
		if anchor == "" {
			continue
		}
		s, ok := markdown.Resolve(p.parsed, anchor)
		if !ok {
			return nil, fmt.Errorf("%s: %s has no section %q", file, name, anchor)
		}
		queries[i].Sections = append(queries[i].Sections, name+"#"+p.parsed.Sections[s].Anchor)
	}
	if len(queries) == 0 {
		return nil, fmt.Errorf("%s has no question", file)
	}
	return queries, nil
}
