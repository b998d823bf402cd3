package tools

import (
	"context"

	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/toolsearch"
	"cairn/internal/toolbox/usage"
)

type searchToolsArgs struct {
	Query   string   `json:"query" schema:"min=1,max=8192" jsonschema:"Such as 'open an issue in a repository'"`
	Limit   integer  `json:"limit,omitempty" schema:"default=10,min=1,max=50"`
	Related bool     `json:"include_related,omitempty" schema:"default=false" jsonschema:"Add the tools often used before and after each"`
	Context []string `json:"context_tools,omitempty" schema:"max=50"`
}

// maxContext bounds the number of tools in use in a call.
const maxContext = 50

func searchTools(box *owner.Folder) tool {
	return tool{
		name: "search_tools", title: "Find tools", groups: []Group{Catalog}, readOnly: true,
		description: `Find tools of the catalogue by a description of what they do. It runs none.
Use it when you need a tool whose name you do not know. Not for a tool whose name you know (get_tool) or a plan of several tools (suggest_dag).
Tools often used together with context_tools rank higher.`,
		handler: codeHandler(func(ctx context.Context, a searchToolsArgs) (*toolsearch.Answer, error) {
			if !hasText(a.Query) {
				return nil, invalid("Missing required parameter: 'query'")
			}
			inUse, err := contextTools(ctx, box, a.Context)
			if err != nil {
				return nil, err
			}
			answer, err := toolbox.SearchOp.Call(ctx, box, toolsearch.Query{Text: a.Query, Limit: int(a.Limit), ContextTools: inUse, IncludeRelated: a.Related}, progressOf(ctx))
			if err != nil {
				return nil, err
			}
			record(ctx, func(s *usage.Session) {
				found := make([]string, len(answer.Tools))
				for i := range answer.Tools {
					found[i] = answer.Tools[i].ID
				}
				s.Searched(a.Query, found)
			})
			return answer, nil
		}),
	}
}

// contextTools returns the ids of the tools in use. The search ignores unknown
// ids, so an unknown or ambiguous name is kept.
func contextTools(ctx context.Context, box *owner.Folder, names []string) ([]string, error) {
	if len(names) > maxContext {
		return nil, invalid("context_tools: %d, want at most %d", len(names), maxContext)
	}
	if len(names) == 0 {
		return nil, nil
	}
	return toolbox.ResolveOp.Call(ctx, box, names, nil)
}
