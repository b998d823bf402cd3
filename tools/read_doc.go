package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cairn/internal/usage"
	"cairn/internal/workspace"
	"cairn/retriever"
)

const readDocDescription = `Read a document, one section of it, or a range of lines, exactly as it is on disk.
Use it after read_context, with a result's path and anchor; the answer links the sections around. Not for finding things: use read_context. For several places pass paths (up to 10) in one call instead of a loop.
path is "docs/a.md", "docs/a.md#anchor" or "docs/a.md:10-40". With max_tokens a long document comes in parts: call again with next. A place that does not exist is answered with the nearest names.`

const readDocInput = `{
"type":"object",
"properties":{
 "path":{"type":"string","description":"Relative path, with #anchor or :from-to if wanted"},
 "anchor":{"type":"string","maxLength":100,"description":"Heading or its slug"},
 "paths":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":10,"description":"Instead of path: several places"},
 "max_tokens":{"type":"integer","minimum":200,"description":"Largest answer"},
 "next":{"type":"string","description":"next of the previous part"},
 "expected_hash":{"type":"string","description":"Fail with code 1006 if the file or section has another hash by now"}
},
"additionalProperties":false}`

const readDocOutput = `{
"type":"object",
"properties":{
 "path":{"type":"string"},"title":{"type":"string"},"content":{"type":"string"},"anchor":{"type":["string","null"]},
 "headings":{"type":"array","items":{"type":"string"}},"tokens":{"type":"integer"},"hash":{"type":"string"},"section_hash":{"type":"string"},
 "cached":{"type":"boolean"},"line_range":{"type":["object","null"],"properties":{"start":{"type":"integer"},"end":{"type":"integer"}}},
 "links":{"type":"object"},"next":{"type":"string"},
 "documents":{"type":"array","items":{"type":"object"}},"failed":{"type":"array","items":{"type":"object"}},"omitted":{"type":"array","items":{"type":"object"}},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["path","content","tokens"]},{"required":["documents","failed"]},{"required":["code","message"]}]}`

// readDoc is the tool read_doc.
func readDoc(e Engine) tool {
	return tool{
		name: "read_doc", title: "Read a document or section", description: readDocDescription,
		input: readDocInput, output: readDocOutput,
		readOnly: true, rate: rate{Limit: 30, Burst: 50},
		call: func(ctx context.Context, c call) (any, error) {
			var a struct {
				Path         string   `json:"path"`
				Anchor       string   `json:"anchor"`
				Paths        []string `json:"paths"`
				MaxTokens    *whole   `json:"max_tokens"`
				Next         string   `json:"next"`
				ExpectedHash string   `json:"expected_hash"`
			}
			if err := decode(c.args, &a); err != nil {
				return nil, err
			}
			// Question tasks name what they found "doc:path#anchor".
			a.Path = strings.TrimPrefix(a.Path, usage.DocumentPrefix)
			for i, path := range a.Paths {
				a.Paths[i] = strings.TrimPrefix(path, usage.DocumentPrefix)
			}
			r := retriever.ReadRequest{Path: a.Path, Anchor: a.Anchor, Paths: a.Paths, Next: a.Next, ExpectedHash: a.ExpectedHash}
			if a.MaxTokens != nil {
				if r.MaxTokens = int(*a.MaxTokens); r.MaxTokens == 0 {
					return nil, invalid("max_tokens: 0, want at least %d", retriever.MinBudget)
				}
			}
			switch {
			case a.Paths != nil:
				return e.ReadAll(ctx, r)
			case a.Path == "":
				return nil, invalid("path: missing; give path, or paths for several places")
			}
			return e.Read(ctx, r)
		},
	}
}

// readFailure translates the errors of the retriever; nil for any other.
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
			"path": e.Path, "current_size": e.Tokens, "limit": e.Limit, "action": "Nothing was returned: ask for a section, or set max_tokens to get the document in parts.",
		}}
	}
	if e, ok := errors.AsType[*retriever.StaleError](err); ok {
		return &Failure{Code: CodeStale, Message: "Stale Cache", Data: map[string]any{
			"path": e.Path, "expected_hash": e.Expected, "actual_hash": e.Actual, "recovery": "Search or read again without expected_hash; the index tool refreshes the index.",
		}}
	}
	if errors.Is(err, workspace.ErrNoIndex) {
		return &Failure{Code: CodeNotFound, Message: "File Not Found", Data: map[string]any{"suggestion": err.Error()}}
	}
	return nil
}

// notFound is a missing document or a missing section of one.
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
