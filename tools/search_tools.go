package tools

import (
	"context"

	"cairn/internal/toolsearch"
	"cairn/internal/workspace"
)

const searchToolsDescription = `Find tools of the catalogue by what they do, in words.
Use it before work that needs a tool you do not know by name. Not for a tool whose name you have (get_tool), nor for a plan of several (suggest_dag). It runs none.
context_tools are tools already in use: what is used together with them ranks higher. Nothing found is answered with no tools and a message.`

const searchToolsInput = `{
"type":"object",
"properties":{
 "query":{"type":"string","minLength":1,"maxLength":8192,"description":"Such as 'open an issue in a repository'"},
 "limit":{"type":"integer","default":10,"minimum":1,"maximum":50},
 "include_related":{"type":"boolean","default":false,"description":"Add what is often used before and after each"},
 "context_tools":{"type":"array","maxItems":50,"items":{"type":"string"}}},
"required":["query"],
"additionalProperties":false}`

const searchToolsOutput = `{
"type":"object",
"properties":{
 "tools":{"type":"array","items":{"type":"object","properties":{"tool_id":{"type":"string"},"server_id":{"type":"string"},"description":{"type":"string"},"semantic_score":{"type":"number"},"graph_score":{"type":"number"},"final_score":{"type":"number"}},"required":["tool_id","final_score"]}},
 "meta":{"type":"object"},"message":{"type":"string"},"code":{"type":"integer"},"data":{"type":"object"}
},
"anyOf":[{"required":["tools"]},{"required":["code","message"]}]}`

// maxContext bounds the tools in use that a call names.
const maxContext = 50

// searchTools is the tool search_tools.
func searchTools(box *workspace.Toolbox) tool {
	return tool{
		name: "search_tools", title: "Find tools", description: searchToolsDescription,
		input: searchToolsInput, output: searchToolsOutput, readOnly: true,
		call: func(ctx context.Context, c call) (any, error) {
			var a struct {
				Query   string   `json:"query"`
				Limit   *whole   `json:"limit"`
				Related bool     `json:"include_related"`
				Context []string `json:"context_tools"`
			}
			if err := decode(c.args, &a); err != nil {
				return nil, err
			}
			if !hasText(a.Query) {
				return nil, invalid("Missing required parameter: 'query'")
			}
			limit := toolsearch.DefaultLimit
			if a.Limit != nil {
				if limit = int(*a.Limit); limit < 1 || limit > toolsearch.MaxLimit {
					return nil, invalid("limit: %d, want 1 to %d", limit, toolsearch.MaxLimit)
				}
			}
			inUse, err := contextTools(box, a.Context)
			if err != nil {
				return nil, err
			}
			x, err := box.Index(ctx, c.progress)
			if err != nil {
				return nil, err
			}
			answer, err := x.Search(ctx, toolsearch.Query{Text: a.Query, Limit: limit, ContextTools: inUse, IncludeRelated: a.Related})
			if err != nil {
				return nil, err
			}
			notebookOf(ctx).searched(a.Query, answer)
			return answer, nil
		},
	}
}

// contextTools are the ids of the tools in use. A name that is not that of one
// tool counts for nothing, as the search says of unknown ids.
func contextTools(box *workspace.Toolbox, names []string) ([]string, error) {
	if len(names) > maxContext {
		return nil, invalid("context_tools: %d, want at most %d", len(names), maxContext)
	}
	ids := make([]string, len(names))
	for i, name := range names {
		id, _, err := box.Resolve(name)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}
