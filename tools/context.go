package tools

import (
	"context"

	"cairn/internal/base/owner"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/index"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

type contextArgs struct {
	Query     string   `json:"query,omitempty" schema:"max=4000" jsonschema:"What has to be done or understood, such as 'retry failed uploads'"`
	Card      string   `json:"card,omitempty" jsonschema:"ID of a task card, instead of query"`
	Context   []string `json:"context,omitempty" schema:"max=50" jsonschema:"Paths and tool ids in use"`
	MaxTokens *integer `json:"max_tokens,omitempty" schema:"min=200" jsonschema:"Size of the whole answer; default 4000"`
	Format    string   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields"`
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
	Format string   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields"`
}

func (t folderTools) refs(ctx context.Context, a refsArgs) (any, error) {
	found, err := index.ReferencesOp.Call(ctx, t.folder, bundle.ReferencesRequest{Symbol: a.Symbol, Limit: a.Limit.given()}, nil)
	return answerAs(found, err, originOf(ctx).wantsText(a.Format))
}
