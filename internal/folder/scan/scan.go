// Package scan finds every line in the files of a folder that contains a string or matches
// a regular expression. It reads the files, except for those that cannot match according to
// the n-grams recorded in package ngram. Its results are complete but not ranked.
package scan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
	"cairn/internal/store/ngram"
	"cairn/internal/text/fit"
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
	// Lines are "path:line:text" without line breaks, in byte order of the paths.
	Lines []string `json:"lines"`
	// Total is the number of matching lines, Matching the number of files that contain
	// them.
	Total    int `json:"total"`
	Matching int `json:"files"`
	// Searched is the number of text files that the answer covers.
	Searched int `json:"files_searched"`
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

	bytes int
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
	text := fmt.Sprintf("lines: %d, files: %d", a.Total, a.Matching)
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

// Find scans the candidates, with their secrets masked. An invalid pattern is a
// *PatternError. After maxTime, Find returns the lines found so far and sets Truncated.
func Find(ctx context.Context, t *walk.Tree, o *walk.Options, masks *secret.Masks, c *Candidates, r Request) (*Answer, error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, err
	}
	r.timeout = cmp.Or(r.timeout, maxTime)
	timed, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	a := &Answer{Pattern: r.Pattern, Lines: []string{}, Searched: c.Excluded}
	workers := make([]*walk.Lookup, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i] = t.Lookup()
		defer workers[i].Close()
	}
	results, rules := make([]result, 64*len(workers)), masks.Rules()
	for done := 0; done < len(c.Paths) && timed.Err() == nil; done += len(results) {
		batch := c.Paths[done:min(len(c.Paths), done+len(results))]
		var g errgroup.Group
		for w, files := range workers {
			g.Go(func() error {
				for i := w; i < len(batch) && timed.Err() == nil; i += len(workers) {
					results[i] = m.read(timed, files, o, masks, c.at(done+i, rules), &r)
				}
				return nil
			})
		}
		_ = g.Wait() // no error
		for i, path := range batch {
			a.add(path, &results[i], &r)
			results[i] = result{}
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case timed.Err() != nil:
		a.Truncated, a.Reason = true, fmt.Sprintf("the scan ended after %s: there may be more lines than the total", r.timeout)
	case a.Truncated:
		a.Reason = fmt.Sprintf("%d of %d lines are shown", len(a.Lines), a.Total)
	}
	return a, nil
}

// result is what a scan finds in a file.
type result struct {
	text    bool // the file is text
	total   int  // number of matching lines
	content []byte
	matches []span // as many as the answer can have
}

// read scans a file.
func (m *Matcher) read(ctx context.Context, files *walk.Lookup, o *walk.Options, masks *secret.Masks, k candidate, r *Request) (out result) {
	content, parts, ok := k.read(files, o, r)
	if !ok {
		return out // removed meanwhile, or not text
	}
	out.content, out.text = content, true
	if parts == nil { // of a later version, for example
		out.content, _ = masks.Mask(content)
		parts = []ngram.Part{{End: len(out.content)}}
	}
	start := 0 // of the part in the content
	for _, p := range parts {
		m.lines(ctx, out.content[start:][:p.End-p.Start], func(s span) {
			if out.total++; r.MaxLines == 0 || out.total <= r.MaxLines {
				out.matches = append(out.matches, span{s.number + p.Line, s.start + start, s.end + start, p.Start - start})
			}
		})
		start += p.End - p.Start
	}
	if out.total == 0 {
		files.Reuse(content)
	}
	return out
}

// read returns the text of a file, or of the parts of it that can match if it is known to have
// no secrets; otherwise parts is nil.
func (k *candidate) read(files *walk.Lookup, o *walk.Options, r *Request) (content []byte, parts []ngram.Part, ok bool) {
	if n := len(k.parts); n > 0 && r.Before == 0 && r.After == 0 && int64(k.parts[n-1].End) <= k.plain.Size {
		ranges := make([][2]int64, n)
		for i, p := range k.parts {
			ranges[i] = [2]int64{int64(p.Start), int64(p.End)}
		}
		content, err := files.ReadParts(k.path, ranges)
		if err == nil && k.plain.holds(files, k.path) {
			return content, k.parts, true
		}
	}
	content, _, err := files.ReadFile(k.path, o.SizeOf(k.path))
	if err == nil && k.plain.holds(files, k.path) {
		return content, []ngram.Part{{End: len(content)}}, true
	}
	return content, nil, err == nil && walk.Check(content) == walk.None
}

// add adds the matching lines of a file.
func (a *Answer) add(path string, found *result, r *Request) {
	if found.text {
		a.Searched++
	}
	if found.total > 0 {
		a.Matching++
	}
	a.Total += found.total
	shown := 0
	for _, s := range found.matches {
		text := path + ":" + strconv.Itoa(s.number) + ":" + Cut(string(found.content[s.start:s.end]))
		if r.MaxLines > 0 && len(a.Lines) >= r.MaxLines || r.MaxBytes > 0 && a.bytes+len(text)+1 > r.MaxBytes {
			continue
		}
		a.bytes += len(text) + 1
		a.Lines = append(a.Lines, text)
		shown++
	}
	a.Truncated = a.Truncated || shown < found.total
	for s, match := range around(found.content, found.matches[:shown], r.Before, r.After) {
		a.Found = append(a.Found, Line{path, s.number, s.start + s.before, string(found.content[s.start:s.end]), match})
	}
}

// Cut shortens a line to 2000 bytes and an ellipsis, as in Answer.Lines.
func Cut(line string) string {
	return fit.Cut(line, maxLine)
}
