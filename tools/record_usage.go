package tools

import (
	"context"
	"encoding/json"

	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/usage"
)

type recordUsageArgs struct {
	Intent string      `json:"intent,omitempty" schema:"max=4096" jsonschema:"The request in the user's words"`
	Calls  []usedCall  `json:"calls" schema:"min=1,max=200"`
	Edges  [][]integer `json:"edges,omitempty" schema:"max=2000,items.min=2,items.max=2,items.items.min=0"` // positions in Calls, from 0
}

type usedCall struct {
	Tool    string `json:"tool"`
	Success *bool  `json:"success,omitempty" schema:"default=true"`
	// Arguments may become the example of the tool.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// recordAnswer is the answer of record_usage.
type recordAnswer struct {
	Recorded   bool     `json:"recorded"`
	Relations  int      `json:"relations"`  // number of relations between tools that were counted
	Remembered bool     `json:"remembered"` // the intent was stored with its tools
	Unknown    []string `json:"unknown"`    // names that do not identify one tool of the catalogue
}

func recordUsage(box *owner.Folder) tool {
	return tool{
		name: "record_usage", title: "Record what was used", groups: []Group{Catalog}, additive: true, notIdempotent: true,
		description: `Record which tools were used for an intent, to improve later searches and suggestions.
Use it when a piece of work is done, with the calls in order, including failed ones. Not needed for documents read through cairn, which records them itself.
edges are pairs [i,j] of positions in calls, from 0: call j used the result of call i. Name a document "doc:" and its path.`,
		handler: codeHandler(func(ctx context.Context, a recordUsageArgs) (*recordAnswer, error) {
			trace := usage.Trace{Intent: a.Intent}
			for _, c := range a.Calls {
				trace.Calls = append(trace.Calls, usage.Call{Tool: c.Tool, Success: c.Success, Arguments: c.Arguments})
			}
			for i, e := range a.Edges {
				if len(e) != 2 {
					return nil, invalid("edges[%d]: %d positions, want 2", i, len(e))
				}
				trace.Edges = append(trace.Edges, [2]int{int(e[0]), int(e[1])})
			}
			if err := trace.Check(); err != nil {
				return nil, invalid("%s", err)
			}
			unknown, err := toolbox.LearnOp.Call(ctx, box, []usage.Trace{trace}, nil)
			if err != nil {
				return nil, err
			}
			names := make([]string, len(trace.Calls))
			for i, used := range trace.Calls {
				names[i] = used.Tool
			}
			ids, err := toolbox.ResolveOp.Call(ctx, box, names, nil)
			if err != nil {
				return nil, err
			}
			record(ctx, func(s *usage.Session) { s.Reported(ids) })
			_, remembered := trace.Memory()
			return &recordAnswer{Recorded: true, Relations: len(trace.Observations()), Remembered: remembered, Unknown: append([]string{}, unknown...)}, nil
		}),
	}
}
