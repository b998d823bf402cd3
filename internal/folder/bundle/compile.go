package bundle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/folder/history"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/invisible"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
	"cairn/internal/text/receipt"
	"cairn/retriever"
)

// The weights of the reasons for a file, and the bounds of a bundle: see
// benchmarks/history.md.
const (
	voteWeight     = 0.6 // of the files that similar commits changed
	nearWeight     = 0.4 // of the files near to those in use
	relatedWeight  = 0.1 // of the files near to the first, if none are in use
	testWeight     = 1.3 // of a section of a test, relative to others
	logWeight      = 0.8 // of the first sections of a list of changes
	decisionWeight = 0.1 // of a section about a decision
	seeds          = 3   // files whose related files are added
	maxFiles       = 20
	maxSections    = 8   // of a file
	nearBest       = 0.8 // a section's weight, relative to the best
	maxMore        = 8
	// A manual often has the words of a question about code. So if the best section is of a
	// document, codeItems sections of code need only codeNear of its weight. See
	// benchmarks/code.md.
	codeItems = 2
	codeNear  = 0.5
	// referenceWeight is the weight of what calls or tests a symbol, relative to the symbol.
	// At most maxReferences of a kind are added, and none if more than maxReferring files can
	// name it.
	referenceWeight = 0.5
	maxReferences   = 3
	maxReferring    = 60
	maxCommits      = 5
	tokenBytes      = 16 // of a token at most, except for long runs of one character
)

// file is a file that may belong to the task.
type file struct {
	path     string
	score    float64
	why      string
	sections []section
}

// section is a section of a file, by its anchor, with its weight.
type section struct {
	anchor string
	chunk  int
	weight float64
}

// candidate is a section that may become an item.
type candidate struct {
	doc     *store.Document
	text    []byte // of the document
	section int    // -1 for the whole document
	chunk   int
	weight  float64
	why     string
}

// compiler compiles one bundle.
type compiler struct {
	Sources
	Request
	out   *Bundle
	left  int             // tokens
	kept  map[string]bool // the cards, and the places and hashes of sections
	seen  []retriever.Fingerprint
	paths []string        // of the items' files, the best first
	exact map[string]bool // whether a document's text is that of its file, by path
}

// Compile compiles the context of a task. It fails with *retriever.InvalidError for an
// invalid request, and with the error of a store that fails.
func Compile(ctx context.Context, s Sources, r Request) (*Bundle, error) {
	if r.Budget = cmp.Or(r.Budget, DefaultBudget); r.Budget < MinBudget || r.Budget > MaxBudget {
		return nil, &retriever.InvalidError{Field: "budget", Reason: fmt.Sprintf("%d, want %d to %d", r.Budget, MinBudget, MaxBudget)}
	}
	q, err := retriever.Query{Text: r.Query, Mode: r.Mode, Context: r.Context, Filter: r.Filter}.Check()
	if err != nil {
		return nil, err
	}
	c := &compiler{Sources: s, Request: r, out: &Bundle{Items: []Item{}}, kept: map[string]bool{}, exact: map[string]bool{}}
	files, similar, err := c.files(ctx, q)
	if err != nil {
		return nil, err
	}
	err = s.Documents.View(func(reader *docs.Reader) error {
		found, err := c.candidates(ctx, reader, q, files)
		if err == nil {
			found, err = c.references(ctx, reader, found)
		}
		c.pack(found)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.commits(similar)
	c.finish()
	return c.out, nil
}

// files ranks the files that may belong to the task.
func (c *compiler) files(ctx context.Context, q retriever.Query) (files []*file, similar []history.Commit, err error) {
	ranking, err := c.Search.Rank(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	for _, lack := range ranking.Degraded {
		c.out.Notes = append(c.out.Notes, "incomplete: "+lack)
	}
	known := map[string]*file{}
	get := func(p string) *file {
		f := known[p]
		if f == nil {
			f = &file{path: p}
			known[p], files = f, append(files, f)
		}
		return f
	}
	for i := range ranking.Documents {
		d := &ranking.Documents[i]
		f, score := get(d.Path), d.Score/ranking.Documents[0].Score
		if f.score == 0 {
			f.score, f.why = score, "matches the question"
		}
		for _, s := range d.Sections {
			f.sections = append(f.sections, section{s.Anchor, s.Chunk, score * s.Score / d.Sections[0].Score})
		}
	}
	sorted := func() { slices.SortStableFunc(files, func(a, b *file) int { return cmp.Compare(b.score, a.score) }) }
	if h := c.History; h != nil {
		votes, commits := h.Similar(c.Query)
		for _, v := range votes {
			f := get(v.ID)
			if f.score += voteWeight * v.Score; v.Score > 0.3 || f.why == "" {
				f.add("changed by similar commits")
			}
		}
		similar = commits
		sorted()
		var given []string // the documents of the context and those that differ from the last commit
		for _, name := range slices.Concat(c.Context, h.Changed()) {
			name, _, _ = strings.Cut(name, "#")
			given = append(given, strings.TrimPrefix(name, graphrank.DocumentPrefix))
		}
		weight := nearWeight
		if len(given) == 0 {
			weight = relatedWeight
			for _, f := range files[:min(seeds, len(files))] {
				given = append(given, f.path)
			}
		}
		for _, near := range h.Near(given) {
			f := get(near.ID)
			if f.score += weight * near.Score; near.Score > 0.3 || f.why == "" {
				f.add("changes with " + path.Base(given[0]))
			}
		}
	}
	sorted()
	return files, similar, nil
}

func (f *file) add(why string) {
	if f.why != "" {
		why = f.why + "; " + why
	}
	f.why = why
}

// candidates returns the sections of the cards and of the best files that may become items.
func (c *compiler) candidates(ctx context.Context, reader *docs.Reader, q retriever.Query, files []*file) (all []candidate, err error) {
	for i, p := range c.Cards {
		doc, err := reader.Document(p)
		if err != nil {
			return nil, err
		}
		why := "the card"
		if i > 0 {
			why = "a card that it depends on"
		}
		if doc == nil {
			c.out.Notes = append(c.out.Notes, p+" is not indexed yet")
			continue
		}
		c.kept[p] = true
		all = append(all, candidate{doc: doc, text: reader.Text(p), section: -1, weight: 10 - float64(i)/100, why: why})
	}
	rank := 0
	for _, f := range files {
		doc, err := reader.Document(f.path)
		if err != nil {
			return nil, err
		}
		if doc == nil || c.kept[f.path] || !c.Filter.Match(f.path, doc.Labels) {
			continue
		}
		if rank++; rank > maxFiles {
			break
		}
		if len(f.sections) == 0 && rank <= 2*seeds {
			if err := c.within(ctx, q, f); err != nil {
				return nil, err
			}
		}
		all = append(all, f.candidates(doc, reader.Text(f.path))...)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.weight, a.weight) })
	return all, nil
}

// references adds who calls and tests the best symbols.
func (c *compiler) references(ctx context.Context, reader *docs.Reader, all []candidate) ([]candidate, error) {
	symbols := 0
	for _, one := range slices.Clone(all) {
		if symbols == seeds || !one.isCode() {
			continue
		}
		symbols++
		f := finder{file: one.doc.Path, name: one.doc.Sections[one.section].Anchor}
		paths := c.Containing(f.name)
		if len(f.name) < 3 || len(paths) > maxReferring {
			continue
		}
		found, err := f.find(ctx, reader, paths)
		if err != nil {
			return nil, err
		}
		n := map[string]int{}
		for _, ref := range found.References {
			why := ref.Why + "s " + f.name
			if ref.Test {
				why = "tests " + f.name
			}
			if ref.Guess {
				why += " (a guess)"
			}
			id := ref.Path + "#" + ref.Anchor
			if ref.Why == "import" || n[id] > 0 || n[why] == maxReferences || id == one.doc.Path+"#"+f.name {
				continue
			}
			n[id]++
			n[why]++
			if all, err = addReference(reader, all, ref, why, one.weight*referenceWeight); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.weight, a.weight) })
	return all, nil
}

// addReference adds the symbol around a reference, or the reason if it is a candidate.
func addReference(reader *docs.Reader, all []candidate, ref Reference, why string, weight float64) ([]candidate, error) {
	for i := range all {
		if have := &all[i]; have.doc.Path == ref.Path && have.section >= 0 && have.doc.Sections[have.section].Anchor == ref.Anchor {
			have.why += "; " + why
			return all, nil
		}
	}
	doc, err := reader.Document(ref.Path)
	if err != nil || doc == nil {
		return all, err
	}
	n := slices.IndexFunc(doc.Sections, func(s store.Section) bool { return s.Anchor == ref.Anchor })
	if n < 0 || ref.Anchor == "" {
		return all, nil
	}
	return append(all, candidate{doc: doc, text: reader.Text(ref.Path), section: n, weight: weight, why: why}), nil
}

// within ranks the sections of a file that the search has not found.
func (c *compiler) within(ctx context.Context, q retriever.Query, f *file) error {
	q.Filter = store.Filter{PathPrefix: f.path}
	ranking, err := c.Search.Rank(ctx, q)
	if err != nil {
		return err
	}
	for _, d := range ranking.Documents {
		for _, s := range d.Sections {
			if d.Path == f.path {
				f.sections = append(f.sections, section{s.Anchor, s.Chunk, d.Score * s.Score})
			}
		}
	}
	return nil
}

// candidates returns the best sections of a file, or else its first, with weights relative
// to its score.
func (f *file) candidates(doc *store.Document, text []byte) (all []candidate) {
	factor, first := 1.0, 1
	switch {
	case outline.IsTest(f.path):
		factor = testWeight
	case store.KindOf(f.path) != store.Code && changeLog.MatchString(path.Base(f.path)):
		factor, first, f.sections = logWeight, 2, nil
	}
	if len(f.sections) == 0 {
		for i := range doc.Sections {
			if s := &doc.Sections[i]; len(s.Chunks) > 0 && len(f.sections) < first {
				f.sections = append(f.sections, section{s.Anchor, 0, 1})
			}
		}
	}
	best := 0.0
	for _, s := range f.sections {
		best = max(best, s.weight)
	}
	slices.SortStableFunc(f.sections, func(a, b section) int { return cmp.Compare(b.weight, a.weight) })
	for _, s := range f.sections {
		n := slices.IndexFunc(doc.Sections, func(have store.Section) bool { return have.Anchor == s.anchor })
		if n < 0 || s.chunk >= len(doc.Sections[n].Chunks) || len(all) == maxSections {
			continue
		}
		one := candidate{doc: doc, text: text, section: n, chunk: s.chunk, weight: factor * f.score * s.weight / best, why: f.why}
		if isDecision(doc, n) {
			one.weight += decisionWeight
			one.why += "; a decision"
		}
		all = append(all, one)
	}
	return all
}

// changeLog matches the names of lists of changes, whose first sections are the newest.
var changeLog = regexp.MustCompile(`(?i)^(change|history|news|release)`)

// isDecision reports whether a section, or the folder of the document, records decisions.
func isDecision(doc *store.Document, n int) bool {
	if store.KindOf(doc.Path) == store.Code {
		return false
	}
	for dir := range strings.SplitSeq(path.Dir(strings.ToLower(doc.Path)), "/") {
		if dir == "adr" || dir == "adrs" || dir == "decisions" {
			return true
		}
	}
	return strings.HasPrefix(strings.ToLower(doc.Sections[n].Heading), "decision")
}

// pack makes items of the candidates, the best first, as long as they fit and match.
func (c *compiler) pack(all []candidate) {
	reserve := min(c.Budget/6, 300) // for commits and further places
	c.left = c.Budget - reserve - c.Count(c.rendered(c.out))
	best, code := 0.0, 0 // code is how many more sections need only codeNear
	if i := slices.IndexFunc(all, func(one candidate) bool { return one.section >= 0 }); i >= 0 {
		if best = all[i].weight; !all[i].isCode() {
			code = codeItems
		}
	}
	for i := range all {
		one, least := &all[i], nearBest
		if code > 0 && one.isCode() {
			least = codeNear
		}
		if one.weight >= least*best && c.keep(one) {
			if least == codeNear {
				code--
			}
			continue
		}
		if c.out.Omitted++; len(c.out.More) < maxMore && one.section >= 0 {
			c.out.More = append(c.out.More, one.place())
		}
	}
	c.left += reserve
	slices.SortStableFunc(c.out.Items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(slices.Index(c.paths, a.Path), slices.Index(c.paths, b.Path)), cmp.Compare(a.Lines.Start, b.Lines.Start))
	})
}

// isCode reports whether the candidate is a section of source code other than a test.
func (one *candidate) isCode() bool {
	return one.section >= 0 && store.KindOf(one.doc.Path) == store.Code && !outline.IsTest(one.doc.Path)
}

// keep adds the candidate as an item, as a whole or as its signature or passage. It returns
// false if nothing of it fits.
func (c *compiler) keep(one *candidate) bool {
	if one.section >= 0 {
		s := &one.doc.Sections[one.section]
		id, print := one.doc.Path+"#"+s.Anchor, retriever.NewFingerprint(one.doc, one.section)
		if c.kept[id] || c.kept[s.Hash] || slices.ContainsFunc(c.seen, print.Near) {
			return true
		}
		c.kept[id], c.kept[s.Hash], c.seen = true, true, append(c.seen, print)
	}
	for _, item := range one.items() {
		if len(item.Text) > tokenBytes*c.left {
			continue
		}
		c.cite(&item, one)
		cost := c.Count(c.rendered(&item))
		if cost > c.left {
			continue
		}
		c.left -= cost
		c.out.Items = append(c.out.Items, item)
		if !slices.Contains(c.paths, item.Path) {
			c.paths = append(c.paths, item.Path)
		}
		return true
	}
	return false
}

// place returns the place of a candidate.
func (one *candidate) place() Place {
	p := Place{Path: one.doc.Path, Lines: retriever.Lines{Start: 1, End: 1}, Why: one.why}
	if one.section < 0 {
		p.Lines.End += strings.Count(strings.TrimRight(string(one.text), "\n"), "\n")
		return p
	}
	s := &one.doc.Sections[one.section]
	p.Anchor, p.Lines = s.Anchor, retriever.Lines{Start: s.StartLine, End: s.OwnEndLine}
	return p
}

// items returns the forms of a candidate as an item, the longest first.
func (one *candidate) items() (forms []Item) {
	whole := Item{Place: one.place()}
	add := func(item Item, text []byte) {
		item.Text = string(markdown.TrimBlankLines(text))
		item.Flags = invisible.Find(item.Text)
		forms = append(forms, item)
	}
	if one.section < 0 {
		add(whole, one.text)
		return forms
	}
	s := &one.doc.Sections[one.section]
	add(whole, one.text[s.Start:s.OwnEnd])
	if len(s.Chunks) > 1 {
		part, chunk := Item{Place: whole.Place, Part: "passage"}, s.Chunks[one.chunk]
		inner := markdown.TrimBlankLines(one.text[chunk.Start:chunk.End])
		lead := one.text[:chunk.Start+max(0, bytes.Index(one.text[chunk.Start:chunk.End], inner))]
		part.Lines.Start = 1 + bytes.Count(lead, []byte("\n"))
		part.Lines.End = part.Lines.Start + bytes.Count(inner, []byte("\n"))
		add(part, inner)
	}
	if store.KindOf(one.doc.Path) == store.Code && s.Level > 0 {
		part := whole
		part.Part = "signature"
		add(part, []byte(s.Heading))
	}
	return forms
}

// cite sets the mark of an item's receipt, or a short hash.
func (c *compiler) cite(i *Item, one *candidate) {
	hash := one.doc.Hash
	if one.section >= 0 {
		hash = one.doc.Sections[one.section].Hash
	}
	exact, known := c.exact[i.Path]
	if !known {
		sum := sha256.Sum256(one.text)
		exact = hex.EncodeToString(sum[:]) == one.doc.Hash
		c.exact[i.Path] = exact
	}
	if exact {
		if r, err := receipt.Of(i.Path, i.Anchor, one.text, i.Lines.Start, i.Lines.End); err == nil {
			i.Mark = r.Mark.String()
			return
		}
	}
	i.Hash = hash[:min(len(hash), retriever.ShortHash)]
}

// commits adds the commits that resemble the question, and the last ones of the files.
func (c *compiler) commits(similar []history.Commit) {
	add := func(list []history.Commit, why string) {
		for _, commit := range list {
			one := Commit{commit, why}
			if slices.ContainsFunc(c.out.Commits, func(have Commit) bool { return have.Hash == one.Hash }) {
				continue
			}
			if cost := c.Count(c.rendered(&one)); cost <= c.left && len(c.out.Commits) < maxCommits {
				c.left -= cost
				c.out.Commits = append(c.out.Commits, one)
			}
		}
	}
	if c.History == nil {
		return
	}
	add(similar, "similar")
	for _, p := range c.paths[:min(seeds, len(c.paths))] {
		add(c.History.Last([]string{p}, 1), "last change of "+path.Base(p))
	}
}

// finish keeps as many of the further places as fit, and makes sure that the whole answer
// is within the budget.
func (c *compiler) finish() {
	more := c.out.More
	c.out.More = nil
	for i := range more {
		if cost := c.Count(c.rendered(&more[i])); cost <= c.left {
			c.left -= cost
			c.out.More = append(c.out.More, more[i])
		}
	}
	for {
		c.out.Tokens = 99_999 // the longest value
		c.out.Tokens = c.Count(c.rendered(c.out))
		switch o := c.out; {
		case o.Tokens <= c.Budget:
			return
		case len(o.More) > 0:
			o.More = o.More[:len(o.More)-1]
		case len(o.Commits) > 0:
			o.Commits = o.Commits[:len(o.Commits)-1]
		case len(o.Items) > 0:
			o.Items = o.Items[:len(o.Items)-1]
			o.Omitted++
		default:
			o.Notes = nil
			return
		}
	}
}
