// Package scan finds every line of a folder's files that holds a string or matches a
// regular expression. It reads the files themselves and uses no index, so it misses
// nothing and ranks nothing.
package scan

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cairn/internal/secret"
	"cairn/internal/store"
	"cairn/internal/walk"
)

// Bounds of a scan.
const (
	// MaxPattern is the length of a pattern in bytes.
	MaxPattern = 4000
	// maxLine is how many bytes of a line an answer holds.
	maxLine = 2000
	// DefaultTime ends a scan of which the request does not say how long it may take.
	DefaultTime = 10 * time.Second
)

// Request says what to look for.
type Request struct {
	// Pattern is a string in one line or, with Regexp, an expression in the syntax of
	// RE2 that matches within one line.
	Pattern string
	Regexp  bool
	// PathPrefix is that of the paths to search; "" searches all.
	PathPrefix string
	// Kind is that of the files to search; "" searches all.
	Kind store.Kind
	// MaxLines bounds the lines to return, MaxBytes their text. Those beyond are counted.
	MaxLines, MaxBytes int
	// Time bounds the scan; 0 is DefaultTime.
	Time time.Duration
}

// Answer lists the lines that match.
type Answer struct {
	Pattern string `json:"query"`
	// Lines are "path:line:text", in the byte order of paths, without the ends of lines.
	Lines []string `json:"lines"`
	// Total is the number of lines that match, in Matching files.
	Total    int `json:"total"`
	Matching int `json:"files"`
	// Searched is the number of files that were read.
	Searched int `json:"files_searched"`
	// Truncated says that Lines or, where Reason says so, Total is not complete.
	Truncated bool   `json:"truncated"`
	Reason    string `json:"reason,omitempty"`

	// Paths are those of Lines.
	Paths []string `json:"-"`

	bytes int
}

// PatternError reports a pattern that cannot be searched for.
type PatternError struct{ Reason string }

func (e *PatternError) Error() string { return e.Reason }

// Find scans the files that the options let through, with their secrets masked. It fails
// with a *PatternError for a pattern that no line can match. When the time is over, the
// answer holds what was found so far and says so.
func Find(ctx context.Context, t *walk.Tree, o *walk.Options, masks *secret.Masks, r Request) (*Answer, error) {
	match, err := r.matcher()
	if err != nil {
		return nil, err
	}
	if r.Time == 0 {
		r.Time = DefaultTime
	}
	timed, cancel := context.WithTimeout(ctx, r.Time)
	defer cancel()
	filter := store.Filter{PathPrefix: r.PathPrefix, Kind: r.Kind}
	a := &Answer{Pattern: r.Pattern, Lines: []string{}}
	err = t.Walk(timed, o, func(e walk.Entry) error {
		if e.Reason != walk.None || e.Dir || !filter.Match(e.Path, store.Labels{}) {
			return timed.Err()
		}
		content, _, err := t.ReadFile(e.Path, o.MaxSize)
		if err != nil || walk.Check(content) != walk.None {
			return timed.Err() // removed meanwhile, or not text
		}
		content, _ = masks.Mask(content)
		a.Searched++
		a.file(timed, e.Path, content, match, &r)
		return timed.Err()
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case timed.Err() != nil:
		a.Truncated, a.Reason = true, fmt.Sprintf("the scan ended after %s: there may be more lines than the total", r.Time)
	case err != nil:
		return nil, fmt.Errorf("walking the folder: %w", err)
	case a.Truncated:
		a.Reason = fmt.Sprintf("%d of %d lines are shown", len(a.Lines), a.Total)
	}
	return a, nil
}

// matcher returns the function that finds the first match in a line.
func (r *Request) matcher() (func(line []byte) bool, error) {
	switch {
	case r.Pattern == "":
		return nil, &PatternError{"nothing to search for"}
	case len(r.Pattern) > MaxPattern:
		return nil, &PatternError{fmt.Sprintf("the pattern has %d bytes, want at most %d", len(r.Pattern), MaxPattern)}
	case strings.ContainsAny(r.Pattern, "\n\r"):
		return nil, &PatternError{"the pattern has a line break, and lines are matched one by one"}
	case !r.Regexp:
		want := []byte(r.Pattern)
		return func(line []byte) bool { return bytes.Contains(line, want) }, nil
	}
	re, err := regexp.Compile(r.Pattern)
	if err != nil {
		return nil, &PatternError{fmt.Sprintf("%s, want the syntax of RE2", strings.TrimPrefix(err.Error(), "error parsing regexp: "))}
	}
	return re.Match, nil
}

// deadlineLines is how many lines are matched between looks at the time.
const deadlineLines = 10_000

// file adds the lines of one file.
func (a *Answer) file(ctx context.Context, path string, content []byte, match func([]byte) bool, r *Request) {
	if !r.Regexp && !match(content) {
		return
	}
	number, before := 0, a.Total
	for line := range bytes.Lines(content) {
		number++
		if number%deadlineLines == 0 && ctx.Err() != nil {
			break
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if !match(line) {
			continue
		}
		a.Total++
		if r.MaxLines > 0 && len(a.Lines) >= r.MaxLines {
			a.Truncated = true
			continue
		}
		text := path + ":" + strconv.Itoa(number) + ":" + cut(line)
		if a.bytes += len(text) + 1; r.MaxBytes > 0 && a.bytes > r.MaxBytes {
			a.Truncated = true
			continue
		}
		a.Lines, a.Paths = append(a.Lines, text), append(a.Paths, path)
	}
	if a.Total > before {
		a.Matching++
	}
}

// cut returns the beginning of a long line.
func cut(line []byte) string {
	if len(line) <= maxLine {
		return string(line)
	}
	return strings.ToValidUTF8(string(line[:maxLine]), "") + "…"
}
