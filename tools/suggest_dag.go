package tools

import (
	"context"
	"fmt"
	"strings"

	"cairn/internal/suggest"
	"cairn/internal/workspace"
)

const suggestDAGDescription = `Plan which tools of the catalogue serve an intent, in which order, and what flows between them.
Use it for work that takes several tools. Not for finding one (search_tools). It runs none: mode says how far to trust the plan ("explicit_required": ask first), missing_inputs and warnings what to settle before.
With tools, just those are arranged and intent may be left out.`

const suggestDAGInput = `{
"type":"object",
"properties":{
 "intent":{"type":"string","maxLength":8192,"description":"Such as 'read config.json and open an issue about it'"},
 "context_tools":{"type":"array","maxItems":50,"items":{"type":"string"},"description":"Tools already in use"},
 "max_tools":{"type":"integer","default":6,"minimum":1,"maximum":20},
 "tools":{"type":"array","maxItems":60,"items":{"type":"string"}}},
"additionalProperties":false}`

const suggestDAGOutput = `{
"type":"object",
"properties":{
 "intent":{"type":"string"},"mode":{"type":"string"},"dag":{"type":"object"},"tasks":{"type":"array","items":{"type":"object"}},
 "layers":{"type":"array"},"confidence":{"type":"number"},"rationale":{"type":"string"},"unmatched":{"type":"array"},"missing_inputs":{"type":"array"},"warnings":{"type":"array"},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["mode","dag","tasks"]},{"required":["code","message"]}]}`

// maxArranged bounds the tools a call wants arranged.
const maxArranged = 60

// suggestDAG is the tool suggest_dag.
func suggestDAG(box *workspace.Toolbox) tool {
	return tool{
		name: "suggest_dag", title: "Plan which tools to use", description: suggestDAGDescription,
		input: suggestDAGInput, output: suggestDAGOutput, readOnly: true,
		call: func(ctx context.Context, c call) (any, error) {
			var a struct {
				Intent  string   `json:"intent"`
				Context []string `json:"context_tools"`
				Max     *whole   `json:"max_tools"`
				Tools   []string `json:"tools"`
			}
			if err := decode(c.args, &a); err != nil {
				return nil, err
			}
			if !hasText(a.Intent) && len(a.Tools) == 0 {
				return nil, invalid("Missing required parameter: 'intent'")
			}
			r := suggest.Request{Intent: a.Intent}
			if a.Max != nil {
				if r.MaxTools = int(*a.Max); r.MaxTools < 1 || r.MaxTools > suggest.MaxTools {
					return nil, invalid("max_tools: %d, want 1 to %d", r.MaxTools, suggest.MaxTools)
				}
			}
			if len(a.Tools) > maxArranged {
				return nil, invalid("tools: %d, want at most %d", len(a.Tools), maxArranged)
			}
			for i, name := range a.Tools {
				t, err := lookup(box, fmt.Sprintf("tools[%d]", i), name)
				if err != nil {
					return nil, err
				}
				r.Tools = append(r.Tools, t.ID)
			}
			var err error
			if r.ContextTools, err = contextTools(box, a.Context); err != nil {
				return nil, err
			}
			x, err := box.Index(ctx, c.progress)
			if err != nil {
				return nil, err
			}
			s, err := suggest.Suggest(ctx, x, r)
			if suggest.IsCycle(err) {
				return nil, &Failure{Code: CodeCycle, Message: err.Error()}
			}
			if err != nil {
				return nil, err
			}
			notebookOf(ctx).planned(s)
			return s, nil
		},
	}
}

func hasText(s string) bool { return strings.TrimSpace(s) != "" }
