package tools

import (
	"context"
	"reflect"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

type readContextArgs struct {
	Query    string   `json:"query" schema:"min=1,max=4000" jsonschema:"Question or keywords, such as 'auth flow'. \"Quoted phrases\" are required, -words excluded."`
	Limit    *integer `json:"limit,omitempty" schema:"min=1,max=50" jsonschema:"Default 5"`
	Mode     *string  `json:"mode,omitempty" schema:"enum=keyword|semantic|hybrid|regexp,default=hybrid"`
	Semantic bool     `json:"semantic,omitempty" schema:"hidden"`
	Filters  *struct {
		Tags       []string `json:"tags,omitempty" jsonschema:"Any of these tags"`
		Priority   string   `json:"priority,omitempty"`
		Assignee   string   `json:"assignee,omitempty"`
		PathPrefix string   `json:"path_prefix,omitempty" jsonschema:"Such as 'docs/'"`
		Kind       string   `json:"kind,omitempty" schema:"enum=docs|code|cards|notes"`
	} `json:"filters,omitempty"`
	Context    []string `json:"context,omitempty" schema:"max=50" jsonschema:"Paths and tool ids in use; what was used together with them ranks higher"`
	Cursor     string   `json:"cursor,omitempty" jsonschema:"next_cursor of the previous answer"`
	MaxTokens  *integer `json:"max_tokens,omitempty" schema:"min=200" jsonschema:"Size of the whole answer; by default at most 900"`
	Exhaustive bool     `json:"exhaustive,omitempty" schema:"default=false" jsonschema:"All lines that contain the query; with mode regexp, that match it (RE2)"`
	Format     string   `json:"format,omitempty" schema:"enum=json" jsonschema:"json: all fields"`
	Explain    bool     `json:"explain,omitempty" schema:"default=false" jsonschema:"Add each score's components"`
}

// query returns the query for the retriever, which checks it. Mode overrides the
// deprecated Semantic, which overrides the default.
func (a *readContextArgs) query(defaultMode retriever.Mode) (retriever.Query, error) {
	q := retriever.Query{Text: a.Query, Mode: defaultMode, Cursor: a.Cursor, Explain: a.Explain, Context: a.Context, Limit: a.Limit.given(), MaxTokens: a.MaxTokens.given()}
	switch {
	case a.Mode != nil:
		if q.Mode = retriever.Mode(*a.Mode); q.Mode == "" {
			return q, invalid("mode: empty, want {hybrid,keyword,semantic}")
		}
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

func readContext(folder *owner.Folder, o *Options) tool {
	t := tool{
		name: "read_context", title: "Search documents", groups: []Group{Core, Docs}, readOnly: true, rate: rate{Limit: 10, Burst: 15}, noSchema: true,
		description: `Search the workspace's documents by meaning and by words. Returns the text of the best sections, each below a line "@@ path:lines #anchor  headings  score", and one line for each further section.
Use it first, to find where something is written. Not for opening a known file: use read_doc.
mode "keyword" is for exact names and error messages, "semantic" for unknown wording.`,
		handler: codeHandler(func(ctx context.Context, a readContextArgs) (any, error) {
			if a.Exhaustive || a.Mode != nil && *a.Mode == regexpMode {
				lines, err := scanLines(ctx, folder, o, &a)
				return answerAs(lines, err, wantsText(ctx, a.Format))
			}
			q, err := a.query(o.DefaultMode)
			if err != nil {
				return nil, err
			}
			q.AsText = wantsText(ctx, a.Format) && !a.Explain
			answer, err := index.SearchOp.Call(ctx, folder, q, nil)
			if err == nil {
				o.searched(ctx, q, answer)
			}
			return answerAs(answer, err, q.AsText)
		}),
		bare: func(answer any) any {
			if found, ok := answer.(*retriever.Answer); ok {
				return found.Results
			}
			return answer
		},
	}
	t.answers = append([]reflect.Type{reflect.TypeFor[retriever.Answer](), reflect.TypeFor[scan.Answer]()}, t.answers...)
	return t
}
