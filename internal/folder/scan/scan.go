// Package scan finds every line in the files of a folder that contains a string or matches
// a regular expression. It reads the files without an index, so its results are complete
// but not ranked.
package scan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cairn/internal/store"
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
	// matches within one line.
	Pattern string
	Regexp  bool
	// PathPrefix selects the files whose path has the prefix.
	PathPrefix string
	// Kind selects the files of a kind; "" selects all files.
	Kind store.Kind
	// MaxLines is the maximum number of lines to return, MaxBytes that of their bytes; 0
	// means no limit. The answer counts all matching lines.
	MaxLines, MaxBytes int

	timeout time.Duration // 0 means maxTime
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
	// Searched is the number of files read.
	Searched int `json:"files_searched"`
	// Truncated reports that Lines is incomplete. Reason says why, and whether Total is
	// incomplete, too.
	Truncated bool   `json:"truncated"`
	Reason    string `json:"reason,omitempty"`

	// Paths holds the path of each of Lines.
	Paths []string `json:"-"`

	bytes int
}

// Text returns the lines as text, below their number.
func (a *Answer) Text() string {
	text := fmt.Sprintf("lines: %d, files: %d", a.Total, a.Matching)
	if a.Reason != "" {
		text += "; " + a.Reason
	}
	return strings.Join(append([]string{text}, a.Lines...), "\n")
}

// PatternError reports an invalid pattern.
type PatternError struct{ Reason string }

func (e *PatternError) Error() string { return e.Reason }

// Find scans the files that o selects, with their secrets masked. An invalid pattern is a
// *PatternError. After maxTime, Find returns the lines found so far and sets Truncated.
func Find(ctx context.Context, t *walk.Tree, o *walk.Options, masks *secret.Masks, r Request) (*Answer, error) {
	match, err := r.matcher()
	if err != nil {
		return nil, err
	}
	r.timeout = cmp.Or(r.timeout, maxTime)
	timed, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	filter := store.Filter{PathPrefix: r.PathPrefix, Kind: r.Kind}
	a := &Answer{Pattern: r.Pattern, Lines: []string{}}
	err = t.Walk(timed, o, func(e walk.Entry) error {
		if e.Reason != walk.None || e.Dir || !filter.Match(e.Path, store.Labels{}) {
			return timed.Err()
		}
		content, _, err := t.ReadFile(e.Path, o.SizeOf(e.Path))
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
		a.Truncated, a.Reason = true, fmt.Sprintf("the scan ended after %s: there may be more lines than the total", r.timeout)
	case err != nil:
		return nil, fmt.Errorf("walking the folder: %w", err)
	case a.Truncated:
		a.Reason = fmt.Sprintf("%d of %d lines are shown", len(a.Lines), a.Total)
	}
	return a, nil
}

// matcher returns a function that reports whether a line matches.
func (r *Request) matcher() (func(line []byte) bool, error) {
	switch {
	case r.Pattern == "":
		return nil, &PatternError{"nothing to search for"}
	case len(r.Pattern) > maxPattern:
		return nil, &PatternError{fmt.Sprintf("the pattern has %d bytes, want at most %d", len(r.Pattern), maxPattern)}
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

// deadlineLines is the number of lines matched between two checks of the deadline.
const deadlineLines = 10_000

// file adds the matching lines of a file.
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

// cut shortens a line to maxLine bytes and an ellipsis.
func cut(line []byte) string {
	if len(line) <= maxLine {
		return string(line)
	}
	return strings.ToValidUTF8(string(line[:maxLine]), "") + "…"
}
