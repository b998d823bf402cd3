package tools

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

// folderTools are the tools on the index of a folder.
type folderTools struct {
	folder *owner.Folder
	o      *Options
}

func (f folderTools) list() []tool {
	return []tool{
		{
			name: "index", title: "Build or refresh the index", groups: []Group{Core}, waits: true, additive: true, handler: codeHandler(f.index),
			administers: func(raw json.RawMessage) bool {
				var a indexArgs
				return decode(raw, &a) == nil && a.Rebuild
			},
			description: `Build or refresh the search index of the workspace; unchanged files cost nothing.
Use it when a note of read_context names it. Not needed before a search: the server indexes when it starts.
After wait_seconds the answer has done=false, and the run continues; status reports its progress.`,
		},
		{
			name: "read_context", title: "Search documents", groups: []Group{Core, Docs}, readOnly: true, rate: rate{Limit: 10, Burst: 15}, noSchema: true,
			handler: codeHandler(f.readContext, reflect.TypeFor[retriever.Answer](), reflect.TypeFor[scan.Answer]()),
			description: `Search the workspace's documents by meaning and by words. Returns the text of the best sections, each below a line "@@ path:lines #anchor  headings  score", and one line for each further section.
Use it first, to find where something is written. Not for opening a known file: use read_doc.
mode "keyword" is for exact names and error messages, "semantic" for unknown wording.`,
			bare: func(answer any) any {
				if found, ok := answer.(*retriever.Answer); ok {
					return found.Results
				}
				return answer
			},
		},
		{
			name: "read_doc", title: "Read a document or section", groups: []Group{Core, Docs}, readOnly: true, rate: rate{Limit: 30, Burst: 50}, noSchema: true,
			handler: codeHandler(f.readDoc, reflect.TypeFor[retriever.Reading](), reflect.TypeFor[retriever.Readings]()),
			description: `Read a document, a section or lines of it, as they are on disk.
Use it after read_context, with a result's path and anchor, or with paths for up to 10 places. Not for search: use read_context.
path is "docs/a.md", "docs/a.md#anchor", "docs/a.md:10-40" or a glob. With max_tokens, a long document comes in parts: call again with next.`,
		},
		{name: "status", title: "State of the index", groups: []Group{Core}, readOnly: true, handler: codeHandler(f.status),
			description: `Report the state of the index, its numbers of files, sections and vectors, the model, the folder and the rule that chose it, and skipped files by reason.
Use it when answers look incomplete or come from the wrong folder. Not needed before a search: read_context notes what is missing.`},
		{name: "context", title: "What to read before a change", groups: []Group{Docs, Tasks}, readOnly: true, noSchema: true, handler: codeHandler(f.context),
			description: `Collect what belongs to a task in one answer: sections, symbols, the card with its dependencies, files that change together, and the last commits, each with its place, a receipt and the reason.
Use it once before a change. Not for one question: use read_context.`},
		{name: "refs", title: "Who calls or uses a symbol", groups: []Group{Docs}, readOnly: true, noSchema: true, handler: codeHandler(f.refs),
			description: `List the definitions of a symbol of source code and the lines that call, use or import it, each with the symbol around it; names that cannot be resolved for certain are marked as a guess.
Use it before you change a signature. Not for text: use read_context with exhaustive.`},
	}
}

type indexArgs struct {
	Rebuild     bool    `json:"rebuild,omitempty" schema:"default=false" jsonschema:"Rebuild from nothing, after a change of model"`
	WaitSeconds integer `json:"wait_seconds,omitempty" schema:"default=20,min=0,max=600" jsonschema:"Longest wait"` // the default is below the timeout of clients
}

type indexAnswer struct {
	Done   bool               `json:"done"`             // the run ended within the wait
	Report *index.IndexReport `json:"report,omitempty"` // nil unless Done
	Status *index.Status      `json:"status"`
}

func (f folderTools) index(ctx context.Context, a indexArgs) (*indexAnswer, error) {
	waiting, cancel := context.WithTimeout(ctx, time.Duration(a.WaitSeconds)*time.Second)
	defer cancel()
	report, err := index.IndexOp.Call(waiting, f.folder, index.IndexRequest{Rebuild: a.Rebuild, Join: true}, originOf(ctx).progress)
	if err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
		return nil, err
	}
	status, err := f.status(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	return &indexAnswer{Done: report != nil, Report: report, Status: status}, nil
}

func (f folderTools) status(ctx context.Context, _ struct{}) (*index.Status, error) {
	return index.StatusOp.Call(ctx, f.folder, f.o.Status, nil)
}

type contextArgs struct {
	Query     string   `json:"query,omitempty" schema:"max=4000" jsonschema:"What has to be done or understood, such as 'retry failed uploads'"`
	Card      string   `json:"card,omitempty" jsonschema:"ID of a task card, instead of query"`
	Context   []string `json:"context,omitempty" schema:"max=50" jsonschema:"Paths and tool ids in use"`
	MaxTokens *integer `json:"max_tokens,omitempty" schema:"min=200" jsonschema:"Size of the whole answer; default 4000"`
	Format    choice   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields"`
}

func (t folderTools) context(ctx context.Context, a contextArgs) (any, error) {
	r := bundle.Request{Query: a.Query}
	switch {
	case (a.Query == "") == (a.Card == ""):
		return nil, invalid("give either query or card")
	case a.Card != "" && t.o.Tasks == nil:
		return nil, invalid("card: this server has no task cards")
	case a.Card != "":
		var err error
		if r, err = t.o.Tasks.ContextRequest(a.Card); err != nil {
			return nil, err
		}
	}
	r.Context, r.Mode, r.AsText = a.Context, t.o.DefaultMode, originOf(ctx).wantsText(a.Format)
	r.Budget = min(a.MaxTokens.given(), bundle.MaxBudget)
	b, err := index.ContextOp.Call(ctx, t.folder, r, nil)
	if err == nil {
		record(ctx, func(s *usage.Session) { s.Query(r.Query) })
	}
	return answerAs(b, err, r.AsText)
}

// ContextSize asks for the context of a task in the answer of a tool on tasks.
type ContextSize struct {
	Tokens *integer `json:"context_tokens,omitempty" schema:"min=200" jsonschema:"Add what the tool context returns for the task, within this size"`
}

// of returns the context of a task as text, "" if it was not asked for.
func (c ContextSize) of(ctx context.Context, folder *owner.Folder, o *Options, r bundle.Request) (string, error) {
	if c.Tokens == nil {
		return "", nil
	}
	r.Budget, r.Mode, r.AsText = min(int(*c.Tokens), bundle.MaxBudget), o.DefaultMode, true
	if runes := []rune(r.Query); len(runes) > retriever.MaxQuery {
		r.Query = string(runes[:retriever.MaxQuery])
	}
	b, err := index.ContextOp.Call(ctx, folder, r, nil)
	if err != nil {
		return "", err
	}
	return b.Text(), nil
}

type refsArgs struct {
	Symbol string   `json:"symbol" schema:"min=1,max=200" jsonschema:"Name, Type.name or path#name"`
	Limit  *integer `json:"limit,omitempty" schema:"min=1,max=1000" jsonschema:"Default 50"`
	Format choice   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields"`
}

func (t folderTools) refs(ctx context.Context, a refsArgs) (any, error) {
	found, err := index.ReferencesOp.Call(ctx, t.folder, bundle.ReferencesRequest{Symbol: a.Symbol, Limit: a.Limit.given()}, nil)
	return answerAs(found, err, originOf(ctx).wantsText(a.Format))
}
