package doctask

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"cairn/internal/task"
)

// SearchRequest holds the arguments of search_documents.
type SearchRequest struct {
	Query          string `json:"query" schema:"min=1"`
	Scope          string `json:"scope,omitempty" schema:"default=/" jsonschema:"Folder or document, such as '/guides/'"` // folder or document; default "/"
	Type           string `json:"type,omitempty" schema:"enum=fulltext|regex,default=fulltext"`                           // fulltext (default) or regex
	ContextLines   *int   `json:"context_lines,omitempty" schema:"default=2,min=0,max=10"`                                // 0 to 10, default 2
	MaxResults     *int   `json:"max_results,omitempty" schema:"default=50,min=1,max=500"`                                // 1 to 500 matches, default 50
	MaxMatchLength *int   `json:"max_match_length,omitempty" schema:"default=80,min=20,max=500"`                          // 20 to 500 bytes, default 80
	Verbose        bool   `json:"verbose,omitempty" schema:"default=false" jsonschema:"Add the surrounding lines"`        // with the lines around
}

// SearchAnswer is the answer of search_documents.
type SearchAnswer struct {
	Results      []SearchResult `json:"results"`
	TotalMatches int            `json:"total_matches"`
	Truncated    bool           `json:"truncated"`
}

// SearchResult is one document with its matching lines.
type SearchResult struct {
	Document   string        `json:"document"`
	Matches    []SearchMatch `json:"matches"`
	MatchCount int           `json:"match_count"`
}

// SearchMatch is one matching line.
type SearchMatch struct {
	Section       string   `json:"section"`
	LineNumber    int      `json:"line_number"` // from 1
	MatchText     string   `json:"match_text"`
	ContextBefore []string `json:"context_before,omitempty"`
	ContextAfter  []string `json:"context_after,omitempty"`
	Type          string   `json:"type"` // heading or content
}

// Bounds of a query.
const (
	maxQuery     = 500      // characters
	maxSearchBuf = 64 << 10 // bytes of a line that are searched
)

// SearchDocuments implements search_documents. A full-text query finds the lines that
// contain the query or all its words in the documents that the Searcher ranks, best first.
// If these have no match, it searches all documents of the scope by path. A regular
// expression (RE2 syntax, matched line by line) always searches all documents.
func (d *Docs) SearchDocuments(ctx context.Context, r SearchRequest) (*SearchAnswer, error) {
	around, limit, width := 2, 50, 80
	err := cmp.Or(between("context_lines", r.ContextLines, 0, 10, &around), between("max_results", r.MaxResults, 1, 500, &limit),
		between("max_match_length", r.MaxMatchLength, 20, 500, &width))
	if err != nil {
		return nil, err
	}
	if !r.Verbose {
		around = 0
	}
	find, err := matcher(r)
	if err != nil {
		return nil, err
	}
	a := &SearchAnswer{Results: []SearchResult{}}
	shown := 0
	look := func(p string, _ bool) bool {
		doc, err := d.peek(p)
		if err != nil {
			return false
		}
		res := doc.search(find, around, width, limit-shown)
		shown += len(res.Matches)
		a.TotalMatches += res.MatchCount
		a.Truncated = a.Truncated || len(res.Matches) < res.MatchCount
		if len(res.Matches) > 0 {
			a.Results = append(a.Results, res)
		}
		return res.MatchCount > 0
	}
	prefix, one, err := d.scope(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case one != "":
		look(one, false)
		return a, nil
	}
	query := r.Query
	if r.Type == "regex" {
		query = "" // the index contains only words
	}
	if err := d.search(ctx, query, prefix, maxRanked, look); err != nil {
		return nil, err
	}
	return a, nil
}

// search calls look with the documents that the Searcher finds for a query, best first. If
// look accepts none of them, it calls look with every document below prefix, by path,
// because the index may fail and does not find parts of words. An empty query skips the
// Searcher.
func (d *Docs) search(ctx context.Context, query, prefix string, limit int, look func(path string, ranked bool) bool) error {
	accepted := false
	if d.o.Searcher != nil && query != "" {
		ranked, err := d.o.Searcher.Documents(ctx, query, prefix, limit)
		if errors.Is(err, context.Canceled) {
			return err
		}
		for _, p := range ranked {
			accepted = look(p, true) || accepted
		}
	}
	if accepted || ctx.Err() != nil {
		return ctx.Err()
	}
	all, err := d.list(ctx, prefix)
	for _, p := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		look(p, false)
	}
	return err
}

// maxRanked is the number of documents that the Searcher ranks for a search.
const maxRanked = 500

// matcher returns a function that finds the query in a line; -1 means no match.
func matcher(r SearchRequest) (func(line string) int, error) {
	query := strings.TrimSpace(r.Query)
	switch {
	case query == "":
		return nil, refuse(task.MissingParameter, evidence{"parameter": "query"}, "Parameter query is required")
	case utf8.RuneCountInString(query) > maxQuery:
		return nil, refuse(task.InvalidParameter, evidence{"parameter": "query", "max": maxQuery}, "Parameter query is longer than %d characters", maxQuery)
	}
	switch r.Type {
	case "", "fulltext":
		whole := strings.ToLower(query)
		words := strings.Fields(whole)
		return func(line string) int {
			line = strings.ToLower(line)
			if at := strings.Index(line, whole); at >= 0 {
				return at
			}
			first := len(line)
			for _, w := range words {
				at := strings.Index(line, w)
				if at < 0 {
					return -1
				}
				first = min(first, at)
			}
			return first
		}, nil
	case "regex":
		re, err := regexp.Compile(r.Query)
		if err != nil {
			return nil, &task.Error{Code: task.InvalidRegex, Message: "Invalid regular expression: " + clip(r.Query), Err: err, Data: evidence{"query": clip(r.Query), "detail": err.Error()}}
		}
		return func(line string) int {
			at := re.FindStringIndex(line)
			if at == nil {
				return -1
			}
			return at[0]
		}, nil
	}
	return nil, refuse(task.InvalidParameter, evidence{"parameter": "type", "value": clip(r.Type)}, "Parameter type is %q, want {fulltext,regex}", clip(r.Type))
}

// scope returns the prefix of the folder to search, or the path of the document.
func (d *Docs) scope(ctx context.Context, r SearchRequest) (prefix, one string, err error) {
	if !strings.HasSuffix(r.Scope, ".md") {
		prefix, err = d.folder(ctx, r.Scope, "scope", task.InvalidScope)
		return prefix, "", err
	}
	doc, err := d.open(r.Scope)
	if err != nil {
		return "", "", &task.Error{Code: task.InvalidScope, Message: "Not a document or folder of the workspace: " + clip(r.Scope), Err: err, Data: evidence{"scope": clip(r.Scope)}}
	}
	return "", doc.path, nil
}

// search searches a document line by line and returns at most limit matches.
func (d *document) search(find func(string) int, around, width, limit int) SearchResult {
	res := SearchResult{Document: d.address(), Matches: []SearchMatch{}}
	var lines []string
	var starts []int
	for at := 0; at < len(d.src); {
		end, next := lineEnd(d.src, at, len(d.src))
		lines, starts = append(lines, string(d.src[at:min(end, at+maxSearchBuf)])), append(starts, at)
		at = next
	}
	for k, line := range lines {
		at := find(line)
		if at < 0 {
			continue
		}
		res.MatchCount++
		if len(res.Matches) >= limit {
			continue
		}
		m := SearchMatch{LineNumber: k + 1, MatchText: window(line, at, width), Type: "content"}
		if i := d.md().At(starts[k]); i >= 0 {
			s := d.md().Sections[i]
			m.Section = s.Anchor
			if s.Level > 0 && starts[k] < d.bodyStart(i) {
				m.Type = "heading"
			}
		}
		for j := max(0, k-around); j < k; j++ {
			m.ContextBefore = append(m.ContextBefore, window(lines[j], 0, width))
		}
		for j := k + 1; j <= min(k+around, len(lines)-1); j++ {
			m.ContextAfter = append(m.ContextAfter, window(lines[j], 0, width))
		}
		res.Matches = append(res.Matches, m)
	}
	return res
}

// window returns at most width bytes of a line around an offset, without partial characters.
func window(line string, at, width int) string {
	if len(line) <= width {
		return strings.TrimSpace(line)
	}
	from := min(max(0, at-width/4), len(line)-width)
	return strings.TrimSpace(strings.ToValidUTF8(line[from:from+width], ""))
}
