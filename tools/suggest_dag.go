package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/usage"
)

type suggestDAGArgs struct {
	Intent   string   `json:"intent,omitempty" schema:"max=8192" jsonschema:"Such as 'read config.json and open an issue about it'"`
	Context  []string `json:"context_tools,omitempty" schema:"max=50" jsonschema:"Tools already in use"`
	MaxTools integer  `json:"max_tools,omitempty" schema:"default=6,min=1,max=20"`
	Tools    []string `json:"tools,omitempty" schema:"max=60"`
}

// maxArranged bounds the number of tools that one call arranges.
const maxArranged = 60

func suggestDAG(box *owner.Folder) tool {
	return tool{
		name: "suggest_dag", title: "Plan which tools to use", groups: []Group{Catalog}, readOnly: true,
		description: `Plan which tools of the catalogue to use for an intent, in which order, and what flows between them. It runs none.
Use it for work that needs several tools. Not for finding one (search_tools). Check "mode" ("explicit_required": ask first), "missing_inputs" and "warnings" before you follow the plan.
With tools, it arranges only those, and intent is optional.`,
		handler: codeHandler(func(ctx context.Context, a suggestDAGArgs) (*suggest.Suggestion, error) {
			if !hasText(a.Intent) && len(a.Tools) == 0 {
				return nil, invalid("Missing required parameter: 'intent'")
			}
			r := suggest.Request{Intent: a.Intent, MaxTools: int(a.MaxTools)}
			if len(a.Tools) > maxArranged {
				return nil, invalid("tools: %d, want at most %d", len(a.Tools), maxArranged)
			}
			for i, name := range a.Tools {
				t, err := lookup(ctx, box, fmt.Sprintf("tools[%d]", i), name)
				if err != nil {
					return nil, err
				}
				r.Tools = append(r.Tools, t.ID)
			}
			var err error
			if r.ContextTools, err = contextTools(ctx, box, a.Context); err != nil {
				return nil, err
			}
			s, err := toolbox.SuggestOp.Call(ctx, box, r, progressOf(ctx))
			if _, cycle := errors.AsType[*suggest.CycleError](err); cycle {
				return nil, &Failure{Code: CodeCycle, Message: err.Error()}
			}
			if err != nil {
				return nil, err
			}
			record(ctx, func(session *usage.Session) {
				var tools []string
				for i := range s.Tasks {
					tools = append(tools, s.Tasks[i].Tool)
				}
				var edges [][2]string
				for i := range s.DAG.Edges {
					edges = append(edges, [2]string{s.DAG.Edges[i].From, s.DAG.Edges[i].To})
				}
				session.Planned(s.Intent, tools, edges)
			})
			return s, nil
		}),
	}
}

func hasText(s string) bool { return strings.TrimSpace(s) != "" }
