package tools

import (
	"context"
	"errors"
	"fmt"

	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/internal/text/fit"
)

// regexpMode is the mode of an exhaustive search for a regular expression.
const regexpMode = "regexp"

// Bounds of the lines that a scan collects for the budget.
const (
	maxLines     = 10_000
	maxLineBytes = 1 << 20
)

// scanLines answers an exhaustive read_context with all matching lines.
func scanLines(ctx context.Context, o *Options, a *readContextArgs) (*scan.Answer, error) {
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
	return answer, fitLines(o.budget(a.MaxTokens), answer)
}

// fitLines shortens the list of lines to fit the answer into the budget.
func fitLines(budget fit.Budget, a *scan.Answer) error {
	all, reason := a.Lines, a.Reason
	err := budget.Fit(a, []fit.Part{{
		Units: len(all),
		Unit:  func(i int) any { return all[i] },
		Keep: func(n int) {
			a.Lines, a.Reason = all[:n], reason
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
