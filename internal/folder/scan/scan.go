// Package scan finds every line in the files of a folder that contains a string or matches
// a regular expression. It reads the files, except for those that cannot match according to
// the n-grams recorded in package ngram; the texts of those that have not changed are in the
// documents. Its results are complete but not ranked.
package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/ngram"
	"cairn/internal/text/fit"
	"cairn/internal/text/markdown"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
)

// Bounds of a scan.
const (
	// maxPattern is the maximum length of a pattern in bytes.
	maxPattern = 4000
	// maxLine is the length in bytes to which an answer cuts a line.
	maxLine = 2000
	// maxTime is the maximum duration of a scan.
	maxTime = 10 * time.Second
)

// Request holds the parameters of a scan.
type Request struct {
	// Pattern is a string or, if Regexp is true, a regular expression in RE2 syntax. It
	// matches within one line; with IgnoreCase, upper and lower case are equal.
	Pattern    string
	Regexp     bool
	IgnoreCase bool
	// PathPrefix selects the files whose path has the prefix.
	PathPrefix string
	// Kind selects the files of a kind; "" selects all files.
	Kind store.Kind
	// MaxLines is the maximum number of lines to return, MaxBytes that of their bytes; 0
	// means no limit. The answer counts all matching lines.
	MaxLines, MaxBytes int
	// Before and After are the numbers of lines around each matching line to return in
	// Answer.Found.
	Before, After int
	// Rules are those by which the caller masks secrets, see secret.Masks.Rules.
	Rules string

	timeout time.Duration // 0 means maxTime
}

// selects reports whether the answer covers a file.
func (r *Request) selects(path string) bool {
	return strings.HasPrefix(path, r.PathPrefix) && (r.Kind == "" || r.Kind == store.KindOf(path))
}

// Line is a line of a file.
type Line struct {
	Path   string
	Number int // from 1
	Offset int // of the beginning in the text of the file, in bytes
	Text   string
	Match  bool // false for a line around a match
}

// Answer lists the matching lines.
type Answer struct {
	Pattern string `json:"query"`
	// Lines are "path:line:text" without line breaks, in byte order of the paths: see List.
	Lines []string `json:"lines"`
	// Total is the number of matching lines, Matching the number of files that contain
	// them.
	Total    int `json:"total"`
	Matching int `json:"files"`
	// Searched is the number of text files that the answer covers.
	Searched int `json:"files_searched"`
	// Unsearched counts the other files by the reason: too large, not text, unreadable, or
	// converted formats such as PDF.
	Unsearched map[string]int `json:"not_searched,omitempty"`
	// Truncated reports that Lines is incomplete. Reason says why, and whether Total is
	// incomplete, too.
	Truncated bool   `json:"truncated"`
	Reason    string `json:"reason,omitempty"`

	// Outdated maps the notes in Found that rest on lines which changed to a warning.
	Outdated map[string]string `json:"outdated,omitempty"`
	// Related lists sections of other files that a ranked search finds, a line each.
	Related []string `json:"related,omitempty"`

	// Found holds the matching lines without cutting them, and the lines around them.
	Found []Line `json:"-"`

	shown, bytes int // of the matching lines in Found
}

// Warnings returns a line for each entry of Outdated, with the shown form of its path.
func (a *Answer) Warnings(shown func(path string) string) (lines []string) {
	for _, path := range slices.Sorted(maps.Keys(a.Outdated)) {
		lines = append(lines, shown(path)+": "+a.Outdated[path])
	}
	return lines
}

// Warned returns the path of the note in outdated that has a line, "" if none has it.
func Warned(outdated map[string]string, line string) string {
	for path := range outdated {
		if strings.HasPrefix(line, path+":") {
			return path
		}
	}
	return ""
}

// Text returns the lines as text, below their number and the warnings.
func (a *Answer) Text() string {
	text := fmt.Sprintf("lines: %d, files: %d%s", a.Total, a.Matching, a.NotSearched())
	if a.Reason != "" {
		text += "; " + a.Reason
	}
	warnings := a.Warnings(func(path string) string { return "warning: " + path })
	lines := slices.Concat([]string{text}, warnings, a.Lines)
	if len(a.Related) > 0 {
		lines = append(append(lines, "related sections of other files:"), a.Related...)
	}
	return strings.Join(lines, "\n")
}

// NotSearched states Unsearched after a semicolon, "" if there are no such files.
func (a *Answer) NotSearched() (text string) {
	for _, reason := range slices.Sorted(maps.Keys(a.Unsearched)) {
		text += fmt.Sprintf(", %d %s", a.Unsearched[reason], reason)
	}
	return strings.Replace(text, ", ", "; not searched: ", 1)
}

// Find scans the candidates, with their secrets masked. Of files in their known state, it reads
// the texts that d has; nil reads all files. An invalid pattern is a *PatternError. After
// maxTime, Find returns the lines found so far and sets Truncated.
func Find(ctx context.Context, t *walk.Tree, o *walk.Options, masks *secret.Masks, d *docs.Store, c *Candidates, r Request) (*Answer, error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, err
	}
	r.timeout = cmp.Or(r.timeout, maxTime)
	timed, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	s := &search{ctx: timed, matcher: m, options: o, masks: masks, c: c, r: &r, results: make([]result, len(c.Files))}
	var g errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			files := t.Lookup()
			defer files.Close()
			if d == nil {
				s.run(nil, files)
				return nil
			}
			return d.View(func(texts *docs.Reader) error {
				s.run(texts, files)
				return nil
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	a := &Answer{Pattern: r.Pattern, Searched: c.Excluded, Unsearched: c.unsearched}
	for i := range s.results {
		a.add(&s.results[i], &r)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case timed.Err() != nil:
		a.Truncated, a.Reason = true, fmt.Sprintf("the scan ended after %s: there may be more lines than the total", r.timeout)
	case a.Truncated:
		a.Reason = fmt.Sprintf("%d of %d lines are shown", a.shown, a.Total)
	}
	return a, nil
}

// search is a scan of candidates by several goroutines.
type search struct {
	ctx     context.Context
	matcher *Matcher
	options *walk.Options
	masks   *secret.Masks
	c       *Candidates
	r       *Request
	results []result // of each candidate

	next         atomic.Int64 // candidate
	lines, bytes atomic.Int64 // of the results that are complete
}

// result is what a scan finds in a file.
type result struct {
	text  bool   // the file is text
	not   string // why it is not searched, "" if it is or was removed
	total int    // number of matching lines
	lines []Line // as many as the answer can have, and those around them
}

// run scans one candidate after the other in their order.
func (s *search) run(texts *docs.Reader, files *walk.Lookup) {
	if texts != nil && texts.Version() != s.c.known.version {
		texts = nil // some have other parts
	}
	for s.ctx.Err() == nil {
		// The results that are complete now are of earlier candidates than the next one.
		full := s.r.full(int(s.lines.Load()), int(s.bytes.Load()))
		i := int(s.next.Add(1)) - 1
		if i >= len(s.results) {
			return
		}
		s.read(&s.results[i], s.c.Files[i], texts, files, full)
	}
}

// full reports whether an answer with so many lines can have no more.
func (r *Request) full(lines, bytes int) bool {
	return r.MaxLines > 0 && lines >= r.MaxLines || r.MaxBytes > 0 && bytes >= r.MaxBytes
}

// read scans a file. If the answer is full, read only counts the lines.
func (s *search) read(out *result, c Candidate, texts *docs.Reader, files *walk.Lookup, full bool) {
	known := &file{}
	if c.at >= 0 {
		known = &s.c.known.files[c.at]
	}
	var content []byte
	same := true // the text is that of the filter
	if texts != nil && known.text && markdown.Verbatim(c.Path) {
		content = texts.Text(c.Path)
	} else if content = s.c.known.opened.get(known); content == nil || !known.current(c.Path, files) {
		var err error
		if content, _, err = files.ReadFile(c.Path, s.options.SizeOf(c.Path)); err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // not removed meanwhile
				out.not = string(walk.Unreadable)
			}
			return
		}
		if same = known.current(c.Path, files); !same || !known.grams.Verbatim() {
			if content = markdown.Decoded(content); walk.Check(content) != walk.None {
				out.not = unsearched(c.Path)
				return
			}
			if content, _ = s.masks.Mask(content); same {
				s.c.known.opened.put(known, content)
			}
		}
	}
	var parts []ngram.Part
	if c.at >= 0 && same && s.r.Before+s.r.After == 0 {
		parts = s.c.matches.parts(int(c.at))
	}
	if parts == nil {
		parts = []ngram.Part{{End: len(content)}}
	}
	out.text = true
	var matches []span
	for _, p := range parts {
		s.matcher.lines(s.ctx, content[p.Start:p.End], func(l span) {
			if out.total++; !full && !s.r.full(len(matches), 0) {
				matches = append(matches, span{l.number + p.Line, l.start + p.Start, l.end + p.Start})
			}
		})
	}
	if len(matches) == 0 {
		return
	}
	bytes := 0
	out.lines = make([]Line, 0, len(matches))
	for l, match := range around(content, matches, s.r.Before, s.r.After) {
		out.lines = append(out.lines, Line{c.Path, l.number, l.start, string(content[l.start:l.end]), match})
		if match {
			bytes += out.lines[len(out.lines)-1].size()
		}
	}
	s.lines.Add(int64(len(matches)))
	s.bytes.Add(int64(bytes))
}

// add adds the lines of a file, up to the first matching one that is too many.
func (a *Answer) add(found *result, r *Request) {
	if found.text {
		a.Searched++
	}
	if found.not != "" {
		a.Unsearched[found.not]++
	}
	if found.total > 0 {
		a.Matching++
	}
	a.Total += found.total
	end, last := len(a.Found), -r.After // the number of the last match
	for _, l := range found.lines {
		if l.Match {
			if a.Truncated = a.Truncated || r.full(a.shown, 0) || r.MaxBytes > 0 && a.bytes+l.size() > r.MaxBytes; a.Truncated {
				break
			}
			a.shown, a.bytes, last = a.shown+1, a.bytes+l.size(), l.Number
		}
		if a.Found = append(a.Found, l); l.Number <= last+r.After {
			end = len(a.Found)
		}
	}
	a.Found = a.Found[:end]
	a.Truncated = a.Truncated || a.shown < a.Total
}

// String returns the line as in Answer.Lines.
func (l *Line) String() string {
	return l.Path + ":" + strconv.Itoa(l.Number) + ":" + Cut(l.Text)
}

// size returns the bytes of the line in Answer.Lines, with a line break.
func (l *Line) size() int {
	return len(l.Path) + len(strconv.Itoa(l.Number)) + min(len(l.Text), maxLine) + len("::\n")
}

// List sets Lines from Found.
func (a *Answer) List() {
	a.Lines = make([]string, 0, len(a.Found))
	for i := range a.Found {
		if l := &a.Found[i]; l.Match {
			a.Lines = append(a.Lines, l.String())
		}
	}
}

// Cut shortens a line to 2000 bytes and an ellipsis, as in Answer.Lines.
func Cut(line string) string {
	return fit.Cut(line, maxLine)
}
