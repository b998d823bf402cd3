package retriever

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strings"
	"unicode/utf8"

	"cairn/internal/base/observe"
	"cairn/internal/text/invisible"
	"cairn/internal/text/markdown"
	"cairn/internal/text/receipt"
)

// ReadRequest requests a document, a section of it, or some of its lines.
type ReadRequest struct {
	// Path is "path", "path#anchor" or "path:from-to" (lines from 1, both
	// included; ":from" is one line).
	Path string `json:"path,omitempty"`
	// Anchor names a section by its anchor, heading or slug. It overrides an anchor
	// in Path. At most 100 runes.
	Anchor string `json:"anchor,omitempty"`
	// Paths requests up to MaxPaths places at once: see ReadAll.
	Paths []string `json:"paths,omitempty"`
	// MaxTokens, if not 0, bounds the whole answer; a longer text is returned in
	// parts. It is at least MinBudget. A larger value than MaxBudget counts as MaxBudget.
	MaxTokens int `json:"max_tokens,omitempty"`
	// AsText makes MaxTokens the bound of the answer's Text.
	AsText bool `json:"as_text,omitempty"`
	// Next continues an earlier answer (Reading.Next) for the same Path.
	Next string `json:"next,omitempty"`
	// ExpectedHash, if set, must be the hash of the file or of the section.
	ExpectedHash string `json:"expected_hash,omitempty"`
}

// The bounds of a ReadRequest.
const (
	MaxPaths  = 10
	MaxAnchor = 100 // runes
)

// Reading is the result of Read. Content is the text on disk with secrets masked,
// without leading and trailing blank lines.
type Reading struct {
	Path    string `json:"path"`
	Title   string `json:"title"`
	Content string `json:"content"`
	// Anchor is the anchor in the request, unchanged; null for a whole document.
	Anchor *string `json:"anchor"`
	// Headings is the trail of the section, outermost first.
	Headings []string `json:"headings,omitempty"`
	// Tokens is the estimate bytes/4 of Content, rounded down.
	Tokens int `json:"tokens"`
	// Hash is the SHA-256 of the whole file, as in Result. SectionHash is the hash of
	// the section's content, empty unless the request names a section.
	Hash        string `json:"hash"`
	SectionHash string `json:"section_hash,omitempty"`
	// Flags are signs that Content holds text that people do not see.
	Flags []invisible.Flag `json:"flags,omitempty"`
	// Outdated lists what no longer holds of what a note rests on.
	Outdated []Outdated `json:"outdated,omitempty"`
	// Masked is the number of masked secrets in the file.
	Masked int `json:"masked,omitempty"`
	// Cached reports whether the parsed file came from memory.
	Cached bool `json:"cached"`
	// LineRange is null for a whole document that begins in line 1.
	LineRange *Lines `json:"line_range"`
	// Mark is that of the receipt of these lines: see package receipt. It is empty without
	// lines, and for a file with masked secrets.
	Mark  string `json:"mark,omitempty"`
	Links Links  `json:"links"`
	// Next, if set, is the ReadRequest.Next of the following part.
	Next string `json:"next,omitempty"`
	// Degraded is as in Readings. Package index sets both.
	Degraded []string `json:"degraded,omitempty"`
}

// Links refers to the sections around a reading; missing ones are null.
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

// Read returns a document, a section or a range of lines. It fails with
// *InvalidError, *NotFoundError, *TokenLimitError or *StaleError.
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
	e, err := f.extent(q.Anchor, rest)
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
	reading := f.reading(e, cached)
	if reading.Outdated, err = r.outdated(ctx, f.path); err != nil {
		return nil, err
	}
	if q.MaxTokens == 0 {
		if reading.Tokens > r.options.TokenLimit {
			return nil, &TokenLimitError{Path: f.path, Tokens: reading.Tokens, Limit: r.options.TokenLimit}
		}
		return reading, nil
	}
	return r.fitReading(f, e, reading, q)
}

// hasHash reports whether expected is a prefix of hash with at least ShortHash digits.
func hasHash(hash, expected string) bool {
	return len(expected) >= ShortHash && strings.HasPrefix(hash, strings.ToLower(expected))
}

// Readings is the result of ReadAll, each list in the order of the request.
type Readings struct {
	Documents []Reading     `json:"documents"`
	Failed    []FailedPlace `json:"failed"`
	// Omitted lists the places that do not fit into the budget.
	Omitted []Omitted `json:"omitted,omitempty"`
	// More is the number of places beyond MaxPaths, after globs were expanded.
	More int `json:"more,omitempty"`
	// Degraded is ["owner"] if the owner of the folder does not answer, else empty.
	Degraded []string `json:"degraded,omitempty"`
}

// FailedPlace is a place that cannot be read, with the error of Read.
type FailedPlace struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// ReadAll reads the places in q.Paths, which may include globs (see IsGlob), up to
// MaxPaths in all. A place that fails does not affect the others. MaxTokens bounds the
// whole answer: the first place that does not fit is returned in part, with Next, and
// the places after it are omitted.
func (r *Retriever) ReadAll(ctx context.Context, q ReadRequest) (*Readings, error) {
	if n := len(q.Paths); n < 1 || n > MaxPaths {
		return nil, invalid("paths", "%d paths, want 1 to %d", n, MaxPaths)
	}
	if q.Path != "" || q.Anchor != "" || q.Next != "" || q.ExpectedHash != "" {
		return nil, invalid("paths", "only max_tokens may be given with it: write anchors as path#anchor")
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
		one := ReadRequest{Path: path, AsText: q.AsText}
		if budget > 0 {
			omitted := 1 + r.cost(&Omitted{path, 99_999}) // with its comma
			one.MaxTokens = budget - r.size(all, q.AsText) - omitted*(len(q.Paths)-i)
			if one.MaxTokens < MinBudget {
				var e extent
				f, rest, _, err := r.locate(path)
				if err == nil {
					e, err = f.extent("", rest)
				}
				if err != nil {
					all.Failed = append(all.Failed, FailedPlace{path, err.Error()})
				} else {
					all.Omitted = append(all.Omitted, Omitted{Path: path, Tokens: (e.end - e.start) / 4})
				}
				continue
			}
		}
		reading, err := r.Read(ctx, one)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && budget == 0 && total+reading.Tokens > r.options.TokenLimit {
			err = &TokenLimitError{Path: path, Tokens: total + reading.Tokens, Limit: r.options.TokenLimit}
		}
		if err != nil {
			all.Failed = append(all.Failed, FailedPlace{path, err.Error()})
			continue
		}
		total += reading.Tokens
		all.Documents = append(all.Documents, *reading)
	}
	return all, nil
}

// ReadText returns a place in another version of a document than that of the index: a section,
// lines, or the whole document.
func ReadText(path string, text []byte, anchor string, from, to int) (*Reading, error) {
	sum := sha256.Sum256(text)
	f := &parsedFile{path: path, hash: hex.EncodeToString(sum[:]), text: text}
	f.parse()
	e, err := f.extent(anchor, suffix{from: from, to: to})
	if err != nil {
		return nil, err
	}
	out := f.reading(e, false)
	out.Mark, out.Links = "", Links{} // they refer to the document of today
	return out, nil
}

// reading returns the content of an extent with its headings and links.
func (f *parsedFile) reading(e extent, cached bool) *Reading {
	content := f.text[e.start:e.end]
	out := &Reading{
		Path: f.path, Title: f.doc.Title, Content: markdown.WithoutIDs(f.path, string(content)), Tokens: len(content) / 4,
		Hash: f.hash, SectionHash: e.hash, Masked: f.masked, Cached: cached,
	}
	out.Flags = invisible.Find(out.Content)
	if e.anchor != "" {
		out.Anchor = new(e.anchor)
	}
	if e.anchor != "" || e.lines || e.part || f.lines.Of(e.start) > 1 {
		lines := Lines{f.lines.Of(e.start), f.lines.Of(max(e.start, e.end-1))}
		out.LineRange = &lines
		if cited, err := receipt.Of(f.path, e.anchor, f.text, lines.Start, lines.End); err == nil && f.masked == 0 {
			out.Mark = cited.Mark.String()
		}
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

// trimmed narrows [start, end) to exclude leading and trailing blank lines.
func trimmed(text []byte, start, end int) (int, int) {
	inner := markdown.TrimBlankLines(text[start:end])
	if len(inner) == 0 {
		return start, start
	}
	// Only blank lines precede inner, so its first occurrence is the one to find.
	first := bytes.Index(text[start:end], inner)
	return start + first, start + first + len(inner)
}

// nextToken has the parts of a Next token: the remaining text and the first bytes of the
// file's SHA-256.
type nextToken struct {
	Start, End uint32
	Hash       [8]byte
}

func encodeNext(f *parsedFile, start, end int) string {
	next := nextToken{Start: uint32(start), End: uint32(end)}
	_, _ = hex.Decode(next.Hash[:], []byte(f.hash[:16])) // f.hash is valid hex
	return encodeToken(&next)
}

// decodeNext returns the range that a Next token stands for. It fails with *StaleError
// for a token of another version of the file, and with *InvalidError for any other
// token that does not belong to e.
func decodeNext(s string, f *parsedFile, e extent) (start, end int, err error) {
	var next nextToken
	if !decodeToken(s, &next) {
		return 0, 0, invalid("next", "%.80q is not a token from an earlier reading; omit it for the first part", s)
	}
	if have := hex.EncodeToString(next.Hash[:]); have != f.hash[:16] {
		return 0, 0, &StaleError{Path: f.path, Expected: have + "…", Actual: f.hash}
	}
	start, end = int(next.Start), int(next.End)
	if start < e.start || start >= end || end != e.end || !utf8.RuneStart(f.text[start]) {
		return 0, 0, invalid("next", "the token belongs to another place")
	}
	return start, end, nil
}

// fitReading shortens a reading to the budget. It cuts at the last start of a section
// that fits, otherwise at a line break, otherwise between two runes: the first of them with
// which the part takes half of the budget.
func (r *Retriever) fitReading(f *parsedFile, e extent, reading *Reading, q ReadRequest) (*Reading, error) {
	budget := q.MaxTokens
	fits := func(end int) *Reading {
		if end-e.start > longestToken*budget {
			return nil
		}
		part := reading
		if end < e.end {
			cut := e
			cut.part = true
			_, cut.end = trimmed(f.text, e.start, end)
			part = f.reading(cut, reading.Cached)
			part.Next = encodeNext(f, end, e.end)
			for _, o := range reading.Outdated[:min(1, len(reading.Outdated))] {
				o.Diff = "" // a part has little room
				part.Outdated = append(part.Outdated, o)
			}
		}
		if r.size(part, q.AsText) > budget {
			return nil
		}
		return part
	}
	if whole := fits(e.end); whole != nil {
		return whole, nil
	}
	last := func(borders []int) (part *Reading) {
		sort.Search(len(borders), func(i int) bool {
			longer := fits(borders[i])
			if longer != nil {
				part = longer
			}
			return longer == nil
		})
		return part
	}
	var sections []int
	for i := range f.doc.Sections {
		if at := f.doc.Sections[i].Start; at > e.start && at < e.end {
			sections = append(sections, at)
		}
	}
	from := sort.SearchInts(f.lines, e.start+1)
	to := sort.SearchInts(f.lines, e.end)
	for _, borders := range [][]int{sections, f.lines[from:to]} {
		if part := last(borders); part != nil && part.Content != "" && 2*r.size(part, q.AsText) >= budget {
			return part, nil
		}
	}
	var runes []int
	for i := e.start + 1; i < min(e.end, e.start+longestToken*budget); i++ {
		if utf8.RuneStart(f.text[i]) {
			runes = append(runes, i)
		}
	}
	if part := last(runes); part != nil {
		return part, nil
	}
	return nil, invalid("max_tokens", "%d is too small for any part of %q", budget, f.path)
}
