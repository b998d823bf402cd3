package retriever

import (
	"bytes"
	"context"
	"strings"
	"unicode/utf8"

	"cairn/internal/invisible"
	"cairn/internal/markdown"
	"cairn/internal/observe"
)

// ReadRequest asks for a document, a section, or lines of one.
type ReadRequest struct {
	// Path is "path", "path#anchor" or "path:from-to" (lines from 1, both
	// included; ":from" is one line).
	Path string `json:"path,omitempty"`
	// Anchor names a section by its anchor, heading or slug; it goes before
	// one in Path. At most 100 runes.
	Anchor string `json:"anchor,omitempty"`
	// Paths asks for up to MaxPaths places at once, see ReadAll.
	Paths []string `json:"paths,omitempty"`
	// MaxTokens, when not 0, bounds the whole answer; a longer text comes in
	// parts. It is at least MinBudget; more than MaxBudget counts as MaxBudget.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Next continues an earlier answer (Reading.Next) of the same Path.
	Next string `json:"next,omitempty"`
	// ExpectedHash, when set, must be the hash of the file or of the section.
	ExpectedHash string `json:"expected_hash,omitempty"`
}

// The bounds of a ReadRequest.
const (
	MaxPaths  = 10
	MaxAnchor = 100 // runes
)

// Reading is the result of Read. Content is the text as it is on disk, with secrets
// masked, without the blank lines at both ends.
type Reading struct {
	Path    string `json:"path"`
	Title   string `json:"title"`
	Content string `json:"content"`
	// Anchor is the one in the request, unchanged; null for a whole document.
	Anchor *string `json:"anchor"`
	// Headings is the trail of the section, outermost first.
	Headings []string `json:"headings,omitempty"`
	// Tokens is the estimate bytes/4 of Content, rounded down.
	Tokens int `json:"tokens"`
	// Hash is the SHA-256 of the whole file, equal to a search result's;
	// SectionHash that of the section's content, empty unless one was asked for.
	Hash        string `json:"hash"`
	SectionHash string `json:"section_hash,omitempty"`
	// Flags are signs that Content hides something from people.
	Flags []invisible.Flag `json:"flags,omitempty"`
	// Masked is the number of secrets in the file that are masked.
	Masked int `json:"masked,omitempty"`
	// Cached is whether the parsed file was still in memory and unchanged.
	Cached bool `json:"cached"`
	// LineRange is null for a whole document.
	LineRange *Lines `json:"line_range"`
	Links     Links  `json:"links"`
	// Next, when set, is what a ReadRequest takes for the following part.
	Next string `json:"next,omitempty"`
}

// Links are the sections around a reading; absent ones are null.
type Links struct {
	Parent   *Link `json:"parent"`
	Previous *Link `json:"previous"`
	Next     *Link `json:"next"`
}

// Link is a section of the same document.
type Link struct {
	Path    string `json:"path"` // "path#anchor"
	Heading string `json:"heading"`
}

// Read returns one document, section or range of lines from disk. It fails
// with *InvalidError, *NotFoundError, *TokenLimitError or *StaleError.
func (r *Retriever) Read(ctx context.Context, q ReadRequest) (*Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	defer observe.Begin(ctx, observe.Read).End(ctx)
	if len(q.Paths) > 0 {
		return nil, invalid("paths", "give either path or paths")
	}
	if utf8.RuneCountInString(q.Anchor) > MaxAnchor {
		return nil, invalid("anchor", "%d characters, want at most %d", utf8.RuneCountInString(q.Anchor), MaxAnchor)
	}
	if q.MaxTokens != 0 && q.MaxTokens < MinBudget {
		return nil, invalid("max_tokens", "%d, want at least %d", q.MaxTokens, MinBudget)
	}
	q.MaxTokens = min(q.MaxTokens, MaxBudget)
	f, rest, cached, err := r.locate(q.Path)
	if err != nil {
		return nil, err
	}
	e, err := r.extent(f, q.Anchor, rest)
	if err != nil {
		return nil, err
	}
	if q.ExpectedHash != "" && !hasHash(f.hash, q.ExpectedHash) && !hasHash(e.hash, q.ExpectedHash) {
		actual := f.hash
		if e.hash != "" && e.hash != f.hash {
			actual = e.hash
		}
		return nil, &StaleError{Path: f.path, Expected: q.ExpectedHash, Actual: actual}
	}
	if q.Next != "" {
		if e.start, e.end, err = decodeNext(q.Next, f, e); err != nil {
			return nil, err
		}
		e.part = true
	}
	reading := r.reading(f, e, cached)
	if q.MaxTokens == 0 {
		if reading.Tokens > r.options.TokenLimit {
			return nil, &TokenLimitError{Path: f.path, Tokens: reading.Tokens, Limit: r.options.TokenLimit}
		}
		return reading, nil
	}
	return r.fitReading(f, e, reading, q.MaxTokens)
}

// hasHash reports whether expected is a hash, or the ShortHash or more first digits of it.
func hasHash(hash, expected string) bool {
	return len(expected) >= ShortHash && strings.HasPrefix(hash, strings.ToLower(expected))
}

// Readings is the result of ReadAll, each list in the order of the request.
type Readings struct {
	Documents []Reading     `json:"documents"`
	Failed    []FailedPlace `json:"failed"`
	// Omitted lists the places that did not fit into the budget.
	Omitted []Omitted `json:"omitted,omitempty"`
	// More is the number of documents that a glob matches beyond MaxPaths places.
	More int `json:"more,omitempty"`
}

// FailedPlace is a place that could not be read. Err is the error of Read.
type FailedPlace struct {
	Path  string `json:"path"`
	Error string `json:"error"`
	Err   error  `json:"-"`
}

// ReadAll reads the places in q.Paths, of which some may be globs: see IsGlob. It reads
// the others when one fails, and the first MaxPaths of those that globs match.
// MaxTokens bounds all of them together: the first place that does not fit as a
// whole comes in part, with Next, and the rest is omitted.
func (r *Retriever) ReadAll(ctx context.Context, q ReadRequest) (*Readings, error) {
	if n := len(q.Paths); n < 1 || n > MaxPaths {
		return nil, invalid("paths", "%d paths, want 1 to %d", n, MaxPaths)
	}
	if q.Path != "" || q.Anchor != "" || q.Next != "" || q.ExpectedHash != "" {
		return nil, invalid("paths", "it goes with max_tokens alone: write anchors as path#anchor")
	}
	if q.MaxTokens != 0 && q.MaxTokens < MinBudget {
		return nil, invalid("max_tokens", "%d, want at least %d", q.MaxTokens, MinBudget)
	}
	paths, more, err := r.expand(ctx, q.Paths)
	if err != nil {
		return nil, err
	}
	q.Paths = paths
	budget := min(q.MaxTokens, MaxBudget)
	all := &Readings{Documents: []Reading{}, Failed: []FailedPlace{}, More: more}
	total := 0
	for i, path := range q.Paths {
		one := ReadRequest{Path: path}
		if budget > 0 {
			left := budget - r.cost(all) - r.omittedCost(Omitted{path, 99_999})*(len(q.Paths)-i)
			if left < MinBudget {
				if tokens, err := r.estimate(path); err != nil {
					all.Failed = append(all.Failed, FailedPlace{path, err.Error(), err})
				} else {
					all.Omitted = append(all.Omitted, Omitted{Path: path, Tokens: tokens})
				}
				continue
			}
			one.MaxTokens = left
		}
		reading, err := r.Read(ctx, one)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && budget == 0 && total+reading.Tokens > r.options.TokenLimit {
			err = &TokenLimitError{Path: path, Tokens: total + reading.Tokens, Limit: r.options.TokenLimit}
		}
		if err != nil {
			all.Failed = append(all.Failed, FailedPlace{path, err.Error(), err})
			continue
		}
		total += reading.Tokens
		all.Documents = append(all.Documents, *reading)
	}
	return all, nil
}

// estimate returns the tokens of a place, as bytes/4.
func (r *Retriever) estimate(path string) (tokens int, err error) {
	f, rest, _, err := r.locate(path)
	if err != nil {
		return 0, err
	}
	e, err := r.extent(f, "", rest)
	return (e.end - e.start) / 4, err
}

// reading returns the content of an extent with its headings and links.
func (r *Retriever) reading(f *parsedFile, e extent, cached bool) *Reading {
	content := f.text[e.start:e.end]
	out := &Reading{
		Path: f.path, Title: f.doc.Title, Content: string(content), Tokens: len(content) / 4,
		Hash: f.hash, SectionHash: e.hash, Masked: f.masked, Cached: cached,
	}
	out.Flags = invisible.Find(out.Content)
	if e.anchor != "" {
		anchor := e.anchor
		out.Anchor = &anchor
	}
	if e.anchor != "" || e.lines || e.part {
		lines := f.linesOf(e.start, e.end)
		out.LineRange = &lines
	}
	section := e.section
	if section < 0 && (e.lines || e.part) {
		section = f.doc.At(e.start)
	}
	if section >= 0 {
		out.Headings = f.doc.Sections[section].Trail
		out.Links = links(f, section)
	}
	return out
}

// links returns the neighbours of a section: its parent, its previous sibling,
// and the first section after its end.
func links(f *parsedFile, section int) Links {
	at := func(i int) *Link {
		s := &f.doc.Sections[i]
		return &Link{Path: place(f.path, s.Anchor), Heading: s.Heading}
	}
	var l Links
	s := &f.doc.Sections[section]
	if s.Parent >= 0 {
		l.Parent = at(s.Parent)
	}
	for i := section - 1; i >= 0; i-- {
		if f.doc.Sections[i].Parent == s.Parent && f.doc.Sections[i].Level > 0 {
			l.Previous = at(i)
			break
		}
	}
	for i := section + 1; i < len(f.doc.Sections); i++ {
		if f.doc.Sections[i].Start >= s.End {
			l.Next = at(i)
			break
		}
	}
	return l
}

// trimmed narrows [start, end) of text by the blank lines at both ends.
func trimmed(text []byte, start, end int) (int, int) {
	inner := markdown.TrimBlankLines(text[start:end])
	if len(inner) == 0 {
		return start, start
	}
	// Only blank lines precede inner, so its first occurrence is the right one.
	first := bytes.Index(text[start:end], inner)
	return start + first, start + first + len(inner)
}
