package tools

import (
	"context"

	"cairn/internal/store"
	"cairn/retriever"
)

const readContextDescription = `Search the workspace's documents by meaning and by words. Returns ranked documents, each with its best section: path, heading trail, anchor, line range, snippet, score.
Use it first, with a question or keywords, to find where something is written. Not for opening a known file: use read_doc.
Set max_tokens to get the text of the sections in the same call, within that budget. mode "keyword" for exact names and error messages, "semantic" when the wording is unknown; "hybrid" (default) blends both, 70/30. context names documents and tools in use: what was used with them before ranks higher.
An empty answer says why in "reason" ("no_match", "not_indexed", "indexing", "empty_workspace") and what to do in "hint".`

const readContextInput = `{
"type":"object",
"properties":{
 "query":{"type":"string","minLength":1,"maxLength":200,"description":"Question or keywords, such as 'auth flow'. \"Quoted phrases\" are required, -words excluded."},
 "limit":{"type":"integer","default":5,"minimum":1,"maximum":50},
 "mode":{"type":"string","enum":["keyword","semantic","hybrid"],"default":"hybrid"},
 "semantic":{"type":"boolean","default":false,"description":"DEPRECATED: use mode='semantic'."},
 "filters":{"type":"object","properties":{
  "tags":{"type":"array","items":{"type":"string"},"description":"Any of these front matter tags"},
  "priority":{"type":"string"},
  "assignee":{"type":"string"},
  "path_prefix":{"type":"string","description":"Such as 'docs/'"}},"additionalProperties":false},
 "context":{"type":"array","maxItems":50,"items":{"type":"string"},"description":"Paths and tool ids in use"},
 "cursor":{"type":"string","description":"next_cursor of the previous answer"},
 "max_tokens":{"type":"integer","minimum":200,"description":"Include the sections' text, within this many tokens in all"},
 "explain":{"type":"boolean","default":false,"description":"Add every component of each score"}
},
"required":["query"],
"additionalProperties":false}`

const readContextOutput = `{
"type":"object",
"properties":{
 "results":{"type":"array","items":{"type":"object","properties":{
  "path":{"type":"string"},"title":{"type":"string"},"headings":{"type":"array","items":{"type":"string"}},
  "anchor":{"type":"string"},"anchors":{"type":"array","items":{"type":"string"}},
  "line_range":{"type":"object","properties":{"start":{"type":"integer"},"end":{"type":"integer"}}},
  "hash":{"type":"string"},"tokens":{"type":"integer"},"section_hash":{"type":"string"},"section_tokens":{"type":"integer"},
  "score":{"type":"number"},"snippet":{"type":"string"},"content":{"type":"string"}},
  "required":["path","hash","tokens"]}},
 "total_count":{"type":"integer"},"has_more":{"type":"boolean"},"next_cursor":{"type":["string","null"]},
 "mode":{"type":"string"},"index":{"type":"object"},"degraded":{"type":"array","items":{"type":"string"}},
 "reason":{"type":"string"},"hint":{"type":"string"},"omitted":{"type":"array","items":{"type":"object"}},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["results","total_count","has_more"]},{"required":["code","message"]}]}`

// readContext is the tool read_context.
func readContext(e Engine, defaultMode retriever.Mode) tool {
	return tool{
		name: "read_context", title: "Search documents", description: readContextDescription,
		input: readContextInput, output: readContextOutput,
		readOnly: true, rate: rate{Limit: 10, Burst: 15},
		call: func(ctx context.Context, c call) (any, error) {
			q, err := parseReadContext(c, defaultMode)
			if err != nil {
				return nil, err
			}
			return e.Search(ctx, q)
		},
		bare: func(structured any) any { return structured.(*retriever.Answer).Results },
	}
}

type readContextArgs struct {
	Query    string  `json:"query"`
	Limit    *whole  `json:"limit"`
	Mode     *string `json:"mode"`
	Semantic bool    `json:"semantic"`
	Filters  *struct {
		Tags       []string `json:"tags"`
		Priority   string   `json:"priority"`
		Assignee   string   `json:"assignee"`
		PathPrefix string   `json:"path_prefix"`
	} `json:"filters"`
	Context   []string `json:"context"`
	Cursor    string   `json:"cursor"`
	MaxTokens *whole   `json:"max_tokens"`
	Explain   bool     `json:"explain"`
}

// parseReadContext turns the arguments into a query; the retriever checks its
// ranges. An explicit mode wins over the
// deprecated semantic, which wins over the default.
func parseReadContext(c call, defaultMode retriever.Mode) (retriever.Query, error) {
	var a readContextArgs
	if err := decode(c.args, &a); err != nil {
		return retriever.Query{}, err
	}
	q := retriever.Query{Text: a.Query, Mode: defaultMode, Limit: retriever.DefaultLimit, Cursor: a.Cursor, Explain: a.Explain, Context: a.Context}
	// In a Query 0 stands for the default; here it is a number out of range.
	if a.Limit != nil {
		if q.Limit = int(*a.Limit); q.Limit == 0 {
			return q, invalid("limit: 0, want 1 to %d", retriever.MaxLimit)
		}
	}
	switch {
	case a.Mode != nil:
		if q.Mode = retriever.Mode(*a.Mode); q.Mode == "" {
			return q, invalid("mode: empty, want {hybrid,keyword,semantic}")
		}
	case a.Semantic:
		q.Mode = retriever.Semantic
	}
	if a.MaxTokens != nil {
		if q.MaxTokens = int(*a.MaxTokens); q.MaxTokens == 0 {
			return q, invalid("max_tokens: 0, want at least %d", retriever.MinBudget)
		}
	}
	if f := a.Filters; f != nil {
		q.Filter = store.Filter{Tags: f.Tags, Priority: f.Priority, Assignee: f.Assignee, PathPrefix: f.PathPrefix}
	}
	return q, nil
}
