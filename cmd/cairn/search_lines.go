package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cairn/internal/scan"
	"cairn/internal/term"
	"cairn/retriever"
)

// maxPrinted bounds the text of an exhaustive search in bytes.
const maxPrinted = 64 << 20

// searchLines prints every line that matches, from the files as they are now.
func (a *app) searchLines(ctx context.Context, text string, f searchFlags) (err error) {
	if f.cursor != "" || f.mode != "" || f.explain || f.maxTokens != 0 || len(f.tags)+len(f.context) > 0 || f.priority != "" || f.assignee != "" {
		return badUsage("an exhaustive search takes --path, --kind and --limit alone")
	}
	f.mode = string(retriever.Keyword) // needs no model
	w, q, err := a.openSearch(ctx, "search", text, f, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	found, err := w.Scan(ctx, scan.Request{Pattern: text, Regexp: f.regexp, PathPrefix: q.Filter.PathPrefix, Kind: q.Filter.Kind, MaxLines: f.limit, MaxBytes: maxPrinted})
	if bad, ok := errors.AsType[*scan.PatternError](err); ok {
		return badUsage("%w", bad)
	}
	if err != nil {
		return err
	}
	p := a.paths(w.Selection())
	return a.print(found, func(out *term.Writer) {
		for i, line := range found.Lines {
			path := found.Paths[i]
			out.Printf("%s%s\n", p.Shown(path), strings.TrimPrefix(line, path))
		}
		a.stderr.Dim(fmt.Sprintf("%s in %d of %s", term.Count(found.Total, "line"), found.Matching, term.Count(found.Searched, "file")))
		if found.Truncated {
			a.stderr.Warn("not complete: %s", found.Reason)
		}
	})
}
