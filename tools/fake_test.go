package tools

import (
	"context"
	"fmt"
	"strings"

	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/retriever"
)

// fake is an engine with one document and a failure for each kind of error,
// chosen by the path that is read.
type fake struct {
	search    func(context.Context, retriever.Query) (*retriever.Answer, error) // nil: the one document
	tasks     int                                                               // documents with tasks
	documents func(index.DocumentsRequest) *index.Documents                     // nil: three documents
	index     func(context.Context, index.IndexRequest, func(job.Progress)) (*index.IndexReport, error)
}

// folder returns a folder whose operations call f.
func (f *fake) folder() *owner.Folder {
	return owner.Local(func(s *owner.Server) owner.Service {
		index.SearchOp.Answer(s, f.Search)
		index.ReadOp.Answer(s, f.Read)
		index.ReadAllOp.Answer(s, f.ReadAll)
		index.DocumentsOp.Answer(s, f.Documents)
		index.StatusOp.Answer(s, f.Status)
		index.ContextOp.Answer(s, f.Context)
		index.IndexOp.Handle(s, f.Index)
		return f
	})
}

func (f *fake) Removed() bool { return false }
func (f *fake) Close() error  { return nil }

func (f *fake) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	if f.search != nil {
		return f.search(ctx, q)
	}
	if strings.TrimSpace(q.Text) == "" || len([]rune(q.Text)) > retriever.MaxQuery {
		return nil, &retriever.InvalidError{Field: "query", Reason: "out of range"}
	}
	if q.Limit < 0 || q.Limit > retriever.MaxLimit {
		return nil, &retriever.InvalidError{Field: "limit", Reason: "out of range"}
	}
	if _, err := retriever.ParseMode(string(q.Mode)); err != nil {
		return nil, err
	}
	a := &retriever.Answer{
		Results: []retriever.Result{{
			Path: "docs/auth.md", Title: "Auth", Headings: []string{"Auth", "Login Flow"}, Anchor: "login-flow", Anchors: []string{"Login Flow", "OAuth Configuration"},
			LineRange: retriever.Lines{Start: 3, End: 9}, Passage: retriever.Lines{Start: 4, End: 5}, Hash: "a1b2", Tokens: 450, SectionHash: "c3d4", SectionTokens: 40, Score: .75, Snippet: "Log in <first> & wait.",
		}},
		TotalCount: 1, Mode: q.Mode, Degraded: []string{}, Index: retriever.IndexState{State: "ready", Files: 1, Sections: 2, Embedded: 2},
	}
	if q.MaxTokens > 0 {
		a.Results[0].Content = "# Auth\n\nAnn and Bob are the members."
	}
	return a, nil
}

func (f *fake) Read(_ context.Context, r retriever.ReadRequest) (*retriever.Reading, error) {
	switch r.Path {
	case "docs/missing.md":
		return nil, &retriever.NotFoundError{Path: r.Path, Nearest: []string{"docs/existing.md"}}
	case "docs/nothing-like-it.md", "docs/*.md":
		return nil, &retriever.NotFoundError{Path: r.Path}
	case "docs/auth.md#nope":
		return nil, &retriever.NotFoundError{Path: "docs/auth.md", Anchor: "nope", Anchors: []string{"login-flow"}, Nearest: []string{"login-flow"}}
	case "docs/huge.md":
		return nil, &retriever.TokenLimitError{Path: r.Path, Tokens: 35000, Limit: 32000}
	case "../x.md":
		return nil, &retriever.InvalidError{Field: "path", Reason: "it leads out of the workspace"}
	case "docs/unusable.md":
		return nil, &index.RebuildError{Reason: "the index was made with model a and this is b"}
	case "docs/locked.md":
		return nil, &owner.LockError{LockFile: ".cairn/index/lock", Holder: owner.Holder{PID: 12345, Command: "cairn index"}, Doing: "using"}
	}
	if r.ExpectedHash != "" && r.ExpectedHash != "a1b2" {
		return nil, &retriever.StaleError{Path: r.Path, Expected: r.ExpectedHash, Actual: "a1b2"}
	}
	return &retriever.Reading{Path: r.Path, Title: "Auth", Content: "# Auth\n\nText.", Tokens: 3, Hash: "a1b2"}, nil
}

// Context returns what it was asked for.
func (f *fake) Context(_ context.Context, r bundle.Request) (*bundle.Bundle, error) {
	return &bundle.Bundle{Notes: []string{fmt.Sprint(strings.Fields(r.Query), r.Cards, r.Budget)}}, nil
}

func (f *fake) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	all := &retriever.Readings{Documents: []retriever.Reading{}, Failed: []retriever.FailedPlace{}}
	for _, path := range r.Paths {
		reading, err := f.Read(ctx, retriever.ReadRequest{Path: path})
		if err != nil {
			all.Failed = append(all.Failed, retriever.FailedPlace{Path: path, Error: err.Error()})
			continue
		}
		all.Documents = append(all.Documents, *reading)
	}
	return all, nil
}

func (f *fake) Scan(_ context.Context, r scan.Request) (*scan.Answer, error) {
	if r.Pattern == "(" {
		return nil, &scan.PatternError{Reason: "missing closing )"}
	}
	a := &scan.Answer{Pattern: r.Pattern, Lines: []string{}, Total: 200, Matching: 2, Searched: 3}
	if r.Pattern == "login flow" { // on one line
		a.Total = 1
	}
	for i := range min(a.Total, r.MaxLines) {
		a.Lines = append(a.Lines, fmt.Sprintf("%sdocs/auth.md:%d:%s %v", r.PathPrefix, i+1, r.Pattern, r.Regexp))
	}
	a.Truncated = len(a.Lines) < a.Total
	return a, nil
}

func (f *fake) Index(ctx context.Context, r index.IndexRequest, progress func(job.Progress)) (*index.IndexReport, error) {
	if f.index != nil {
		return f.index(ctx, r, progress)
	}
	if progress != nil {
		progress(job.Progress{Phase: "scan", Done: 1, Total: 1})
		progress(job.Progress{Phase: "vectors", Done: 2, Total: 2, Searchable: true})
	}
	return &index.IndexReport{Files: 1, Added: 1, Sections: 2, Chunks: 2, Embedded: 2}, nil
}

func (f *fake) Status(context.Context, index.StatusRequest) (*index.Status, error) {
	return &index.Status{
		IndexState: retriever.IndexState{State: "ready", Files: 1, Sections: 2, Embedded: 2},
		Model:      "model@123", Workspace: config.Selection{Root: "/w", Rule: config.RuleCurrent}, Skipped: map[string]int{"binary": 1}, Tasks: f.tasks,
	}, nil
}

func (f *fake) Documents(_ context.Context, r index.DocumentsRequest) (*index.Documents, error) {
	if f.documents != nil {
		return f.documents(r), nil
	}
	out := &index.Documents{Documents: []index.DocumentEntry{}}
	for _, path := range []string{"docs/auth.md", "docs/with space.md", "notes/a#b.md"} {
		if !strings.HasPrefix(path, r.Prefix) || path <= r.After {
			continue
		}
		if len(out.Documents) == r.Limit {
			out.More = true
			break
		}
		out.Documents = append(out.Documents, index.DocumentEntry{Path: path, Title: "T", Bytes: 5, Outline: []index.HeadingEntry{{Level: 1, Heading: "Auth", Anchor: "auth", Line: 1}, {Level: 2, Heading: "Login Flow", Anchor: "login-flow", Line: 3}}})
	}
	return out, nil
}
