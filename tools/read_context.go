package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/internal/text/fit"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

type readContextArgs struct {
	Query    string   `json:"query" schema:"min=1,max=4000" jsonschema:"Question or keywords, such as 'auth flow'. \"Quoted phrases\" are required, -words excluded."`
	Limit    *integer `json:"limit,omitempty" schema:"min=1,max=50" jsonschema:"Default 5"`
	Mode     *choice  `json:"mode,omitempty" schema:"enum=keyword|semantic|hybrid|regexp,default=hybrid"`
	Semantic bool     `json:"semantic,omitempty" schema:"hidden"`
	Filters  *struct {
		Tags       []string `json:"tags,omitempty" jsonschema:"Any of these tags"`
		Priority   string   `json:"priority,omitempty"`
		Assignee   string   `json:"assignee,omitempty"`
		PathPrefix string   `json:"path_prefix,omitempty" jsonschema:"Such as 'docs/'"`
		Kind       choice   `json:"kind,omitempty" schema:"enum=docs|code|cards|notes"`
	} `json:"filters,omitempty"`
	Context    []string `json:"context,omitempty" schema:"max=50" jsonschema:"Paths and tool ids in use; what was used together with them ranks higher"`
	Cursor     string   `json:"cursor,omitempty" jsonschema:"next_cursor of the previous answer"`
	MaxTokens  *integer `json:"max_tokens,omitempty" schema:"min=200" jsonschema:"Size of the whole answer; by default at most 900"`
	Exhaustive bool     `json:"exhaustive,omitempty" schema:"default=false" jsonschema:"All lines that contain the query; with mode regexp, that match it (RE2)"`
	Format     choice   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields"`
	Explain    bool     `json:"explain,omitempty" schema:"default=false" jsonschema:"Add each score's components"`
}

// query returns the query for the retriever, which checks it. Mode overrides the
// deprecated Semantic, which overrides the default.
func (a *readContextArgs) query(defaultMode retriever.Mode) (retriever.Query, error) {
	q := retriever.Query{Text: a.Query, Mode: defaultMode, Cursor: a.Cursor, Explain: a.Explain, Context: a.Context, Limit: a.Limit.given(), MaxTokens: a.MaxTokens.given()}
	switch {
	case a.Mode != nil:
		q.Mode = retriever.Mode(*a.Mode)
	case a.Semantic:
		q.Mode = retriever.Semantic
	}
	if a.Limit != nil && q.Limit == 0 {
		return q, invalid("limit: 0, want 1 to %d", retriever.MaxLimit)
	}
	if f := a.Filters; f != nil {
		q.Filter = store.Filter{Tags: f.Tags, Priority: f.Priority, Assignee: f.Assignee, PathPrefix: f.PathPrefix, Kind: store.Kind(f.Kind)}
	}
	return q, nil
}

// searched records a search of documents and reports what the index lacked for it.
func (o *Options) searched(ctx context.Context, q retriever.Query, a *retriever.Answer) {
	record(ctx, func(s *usage.Session) { s.Query(q.Text) })
	ReportLacks(o.Lacked, q, a)
}

func (t folderTools) readContext(ctx context.Context, a readContextArgs) (any, error) {
	asText := originOf(ctx).wantsText(a.Format)
	if a.Exhaustive || a.Mode != nil && *a.Mode == regexpMode {
		lines, err := t.scan(ctx, &a)
		return answerAs(lines, err, asText)
	}
	q, err := a.query(t.o.DefaultMode)
	if err != nil {
		return nil, err
	}
	q.AsText = asText && !a.Explain
	answer, err := index.SearchOp.Call(ctx, t.folder, q, nil)
	if err == nil {
		t.o.searched(ctx, q, answer)
	}
	return answerAs(answer, err, q.AsText)
}

// regexpMode is the mode of an exhaustive search for a regular expression.
const regexpMode = "regexp"

// Bounds of the lines that a scan collects for the budget.
const (
	maxLines     = 10_000
	maxLineBytes = 1 << 20
)

// scan answers an exhaustive read_context with all matching lines and, if they are complete,
// with as many related sections as fit.
func (t folderTools) scan(ctx context.Context, a *readContextArgs) (*scan.Answer, error) {
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
	answer, err := t.o.Scan(ctx, r)
	if bad, ok := errors.AsType[*scan.PatternError](err); ok {
		return nil, invalid("query: %s", bad)
	}
	if err != nil {
		return nil, err
	}
	budget := t.o.budget(a.MaxTokens)
	if err := fitLines(budget, answer); err != nil || answer.Truncated {
		return answer, err
	}
	all := t.relatedTo(ctx, &r, answer)
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
func (t folderTools) relatedTo(ctx context.Context, r *scan.Request, found *scan.Answer) []string {
	q := retriever.Query{
		Text: strings.TrimSpace(notWord.ReplaceAllString(r.Pattern, " ")), Mode: t.o.DefaultMode, Limit: 2 * mostRelated,
		Filter: store.Filter{PathPrefix: r.PathPrefix, Kind: r.Kind},
	}
	if len(q.Text) < 3 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, relatedLimit)
	defer cancel()
	answer, err := index.SearchOp.Call(ctx, t.folder, q, nil)
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
