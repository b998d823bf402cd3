package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/internal/text/fit"
	"cairn/retriever"
)

// regexpMode is the mode of an exhaustive search for a regular expression.
const regexpMode = "regexp"

// Bounds of the lines that a scan collects for the budget.
const (
	maxLines     = 10_000
	maxLineBytes = 1 << 20
)

// scanLines answers an exhaustive read_context with all matching lines and, if they are
// complete, with as many related sections as fit.
func scanLines(ctx context.Context, folder *owner.Folder, o *Options, a *readContextArgs) (*scan.Answer, error) {
	r := scan.Request{Pattern: a.Query, MaxLines: maxLines, MaxBytes: maxLineBytes}
	if a.Mode != nil {
		r.Regexp = *a.Mode == regexpMode
	}
	switch f := a.Filters; {
	case a.Cursor != "":
		return nil, invalid("cursor: an exhaustive search has one answer; narrow it with filters.path_prefix")
	case f != nil && (len(f.Tags) > 0 || f.Priority != "" || f.Assignee != ""):
		return nil, invalid("filters: an exhaustive search takes path_prefix alone")
	case f != nil:
		r.PathPrefix, r.Kind = f.PathPrefix, store.Kind(f.Kind)
	}
	if a.Limit != nil {
		r.MaxLines = int(*a.Limit)
	}
	answer, err := o.Scan(ctx, r)
	if bad, ok := errors.AsType[*scan.PatternError](err); ok {
		return nil, invalid("query: %s", bad)
	}
	if err != nil {
		return nil, err
	}
	budget := o.budget(a.MaxTokens)
	if err := fitLines(budget, answer); err != nil || answer.Truncated {
		return answer, err
	}
	all := relatedTo(ctx, folder, o, &r, answer)
	answer.Related = all
	err = budget.Fit(answer, []fit.Part{{
		Units: len(all), Unit: func(i int) any { return all[i] }, Keep: func(n int) { answer.Related = all[:n] },
	}})
	return answer, err
}

// The bounds of the search for related sections.
const (
	mostRelated  = 5
	relatedLimit = 500 * time.Millisecond
)

// notWord matches what separates the words of a pattern.
var notWord = regexp.MustCompile(`[^\pL\pN_]+`)

// relatedTo returns sections of files without matching lines that a search for the words of the
// pattern finds, none if it fails.
func relatedTo(ctx context.Context, folder *owner.Folder, o *Options, r *scan.Request, found *scan.Answer) []string {
	q := retriever.Query{
		Text: strings.TrimSpace(notWord.ReplaceAllString(r.Pattern, " ")), Mode: o.DefaultMode, Limit: 2 * mostRelated,
		Filter: store.Filter{PathPrefix: r.PathPrefix, Kind: r.Kind},
	}
	if len(q.Text) < 3 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, relatedLimit)
	defer cancel()
	answer, err := index.SearchOp.Call(ctx, folder, q, nil)
	if err != nil {
		return nil
	}
	var lines []string
	for i := range answer.Results {
		one := &answer.Results[i]
		if len(lines) < mostRelated && !slices.ContainsFunc(found.Found, func(l scan.Line) bool { return l.Path == one.Path }) {
			lines = append(lines, one.Line())
		}
	}
	return lines
}

// fitLines shortens the list of lines to fit the answer into the budget. A line of an outdated
// note comes with its warning.
func fitLines(budget fit.Budget, a *scan.Answer) error {
	all, reason, outdated := a.Lines, a.Reason, a.Outdated
	first := make([]string, len(all)) // the note of which a line is the first
	seen := map[string]bool{"": true}
	for i, line := range all {
		if note := scan.Warned(outdated, line); !seen[note] {
			first[i], seen[note] = note, true
		}
	}
	err := budget.Fit(a, []fit.Part{{
		Units: len(all),
		Unit:  func(i int) any { return all[i] + first[i] + outdated[first[i]] },
		Keep: func(n int) {
			a.Lines, a.Reason, a.Outdated = all[:n], reason, map[string]string{}
			for _, note := range first[:n] {
				if note != "" {
					a.Outdated[note] = outdated[note]
				}
			}
			if n < len(all) {
				a.Truncated = true
				a.Reason = fmt.Sprintf("%d of %d lines are shown: set max_tokens, or narrow the search with filters.path_prefix", n, a.Total)
				if reason != "" {
					a.Reason += "; " + reason
				}
			}
		},
	}})
	if err != nil {
		return invalid("%s", err)
	}
	return nil
}
