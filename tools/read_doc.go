package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cairn/graphrank"
	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

type readDocArgs struct {
	Path         string   `json:"path,omitempty"`
	Anchor       string   `json:"anchor,omitempty" schema:"max=100" jsonschema:"Heading or its slug"`
	Paths        []string `json:"paths,omitempty" schema:"min=1,max=10" jsonschema:"Several places, instead of path"`
	MaxTokens    *integer `json:"max_tokens,omitempty" schema:"min=200" jsonschema:"Limit of the answer"`
	Format       choice   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields, such as hash and links"`
	Next         string   `json:"next,omitempty" jsonschema:"next of the previous part"`
	ExpectedHash string   `json:"expected_hash,omitempty" jsonschema:"Fail with 1006 if the file or section has another hash"`
}

func (t folderTools) readDoc(ctx context.Context, a readDocArgs) (any, error) {
	// Passages of question tasks have the id "doc:path#anchor".
	a.Path = strings.TrimPrefix(a.Path, graphrank.DocumentPrefix)
	for i, path := range a.Paths {
		a.Paths[i] = strings.TrimPrefix(path, graphrank.DocumentPrefix)
	}
	r := retriever.ReadRequest{Path: a.Path, Anchor: a.Anchor, Paths: a.Paths, Next: a.Next, ExpectedHash: a.ExpectedHash, MaxTokens: a.MaxTokens.given(), AsText: originOf(ctx).wantsText(a.Format)}
	if a.Paths == nil {
		if a.Path == "" {
			return nil, invalid("path: missing; pass path, or paths for several places")
		}
		reading, err := read(ctx, t.folder, r)
		if missing, ok := errors.AsType[*retriever.NotFoundError](err); !ok || missing.Anchor != "" || !retriever.IsGlob(a.Path) {
			return answerAs(reading, err, r.AsText)
		}
		r.Path, r.Paths = "", []string{a.Path}
	}
	all, err := index.ReadAllOp.Call(ctx, t.folder, r, nil)
	if err == nil {
		for _, d := range all.Documents {
			recordRead(ctx, d.Path)
		}
	}
	return answerAs(all, err, r.AsText)
}

func recordRead(ctx context.Context, path string) {
	record(ctx, func(s *usage.Session) { s.Used(graphrank.DocumentID(path)) })
}

// read reads one place and records the reading.
func read(ctx context.Context, folder *owner.Folder, r retriever.ReadRequest) (*retriever.Reading, error) {
	reading, err := index.ReadOp.Call(ctx, folder, r, nil)
	if err == nil {
		recordRead(ctx, reading.Path)
	}
	return reading, err
}

// readFailure returns the failure for an error of the retriever, nil for any other error.
func readFailure(err error) *Failure {
	if e, ok := errors.AsType[*retriever.InvalidError](err); ok {
		return invalid("%s", e)
	}
	if e, ok := errors.AsType[*retriever.IndexChangedError](err); ok {
		return invalid("cursor: %s", e)
	}
	if e, ok := errors.AsType[*retriever.NotFoundError](err); ok {
		return notFound(e)
	}
	if e, ok := errors.AsType[*retriever.TokenLimitError](err); ok {
		return &Failure{Code: CodeTokenLimit, Message: "Token Limit Exceeded", Data: map[string]any{
			"path": e.Path, "current_size": e.Tokens, "limit": e.Limit, "action": "Nothing was returned: read a section, or set max_tokens to read the document in parts.",
		}}
	}
	if e, ok := errors.AsType[*retriever.StaleError](err); ok {
		return &Failure{Code: CodeStale, Message: "Stale Cache", Data: map[string]any{
			"path": e.Path, "expected_hash": e.Expected, "actual_hash": e.Actual, "recovery": "Search or read again without expected_hash; the index tool refreshes the index.",
		}}
	}
	if errors.Is(err, index.ErrNoIndex) {
		return &Failure{Code: CodeNotFound, Message: "File Not Found", Data: map[string]any{"suggestion": err.Error()}}
	}
	return nil
}

// notFound returns the failure for a missing document, or a missing section of one.
func notFound(e *retriever.NotFoundError) *Failure {
	f := &Failure{Code: CodeNotFound, Message: "File Not Found", Data: map[string]any{"path": e.Path}}
	if e.Anchor != "" {
		f.Message = "Anchor Not Found"
		f.Data["anchor"] = e.Anchor
		f.Data["available_anchors"] = append([]string{}, e.Anchors...)
	}
	if len(e.Nearest) > 0 {
		f.Data["suggestion"] = fmt.Sprintf("Did you mean '%s'?", e.Nearest[0])
		f.Data["nearest"] = e.Nearest
	} else {
		f.Data["suggestion"] = "Find it with read_context."
	}
	return f
}
