package tools

import (
	"context"

	"cairn/internal/usage"
	"cairn/internal/workspace"
)

const recordUsageDescription = `Record which tools served an intent, so that later searches and suggestions know.
Use it once a piece of work is done, with the calls in their order, also failed ones (success false). Not needed for documents read through cairn: those are recorded by themselves, and which tools you fetched, as a hint.
edges are pairs [i,j] of positions in calls: call j needed the result of call i. A tool is named by its id, or by its name where only one server has it; a document is "doc:" and its path. Names that are not in the catalogue are recorded as they are and listed in "unknown".`

const recordUsageInput = `{
"type":"object",
"properties":{
 "intent":{"type":"string","maxLength":4096,"description":"What was asked for, in the user's words"},
 "calls":{"type":"array","minItems":1,"maxItems":200,"items":{"type":"object","properties":{"tool":{"type":"string"},"success":{"type":"boolean","default":true}},"required":["tool"],"additionalProperties":false}},
 "edges":{"type":"array","maxItems":2000,"items":{"type":"array","items":{"type":"integer","minimum":0},"minItems":2,"maxItems":2}}},
"required":["calls"],
"additionalProperties":false}`

const recordUsageOutput = `{
"type":"object",
"properties":{
 "recorded":{"type":"boolean"},"relations":{"type":"integer"},"remembered":{"type":"boolean"},"unknown":{"type":"array","items":{"type":"string"}},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["recorded","unknown"]},{"required":["code","message"]}]}`

// recordAnswer is what was recorded.
type recordAnswer struct {
	Recorded   bool     `json:"recorded"`
	Relations  int      `json:"relations"`  // between tools, that were counted
	Remembered bool     `json:"remembered"` // the intent, with its tools
	Unknown    []string `json:"unknown"`    // names that are not one tool of the catalogue
}

// recordUsage is the tool record_usage.
func recordUsage(box *workspace.Toolbox) tool {
	return tool{
		name: "record_usage", title: "Record what was used", description: recordUsageDescription,
		input: recordUsageInput, output: recordUsageOutput, adds: true, counts: true,
		call: func(ctx context.Context, c call) (any, error) {
			var a struct {
				Intent string       `json:"intent"`
				Calls  []usage.Call `json:"calls"`
				Edges  [][]whole    `json:"edges"`
			}
			if err := decode(c.args, &a); err != nil {
				return nil, err
			}
			trace := usage.Trace{Intent: a.Intent, Calls: a.Calls}
			for i, e := range a.Edges {
				if len(e) != 2 {
					return nil, invalid("edges[%d]: %d positions, want 2", i, len(e))
				}
				trace.Edges = append(trace.Edges, [2]int{int(e[0]), int(e[1])})
			}
			if err := trace.Check(); err != nil {
				return nil, invalid("%s", err)
			}
			unknown, err := box.Learn(ctx, trace)
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, used := range trace.Calls {
				id, _, err := box.Resolve(used.Tool)
				if err != nil {
					return nil, err
				}
				ids = append(ids, id)
			}
			notebookOf(ctx).told(ids)
			_, remembered := trace.Memory()
			return recordAnswer{Recorded: true, Relations: len(trace.Sights()), Remembered: remembered, Unknown: append([]string{}, unknown...)}, nil
		},
	}
}
