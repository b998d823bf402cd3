package tools

import (
	"context"
	"encoding/json"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
)

type indexArgs struct {
	Rebuild     bool    `json:"rebuild,omitempty" schema:"default=false" jsonschema:"Rebuild from nothing, after a change of model"`
	WaitSeconds integer `json:"wait_seconds,omitempty" schema:"default=20,min=0,max=600" jsonschema:"Longest wait"` // the default is below the timeout of clients
}

type indexAnswer struct {
	Done   bool               `json:"done"`             // the run ended within the wait
	Report *index.IndexReport `json:"report,omitempty"` // nil unless Done
	Status *index.Status      `json:"status"`
}

func indexTool(folder *owner.Folder, o *Options) tool {
	return tool{
		name: "index", title: "Build or refresh the index", groups: []Group{Core}, waits: true, additive: true,
		administers: func(raw json.RawMessage) bool {
			var a indexArgs
			return decode(raw, &a) == nil && a.Rebuild
		},
		description: `Build or refresh the search index of the workspace; unchanged files cost nothing.
Use it when a note of read_context names it. Not needed before a search: the server indexes when it starts.
After wait_seconds the answer has done=false, and the run continues; status reports its progress.`,
		handler: codeHandler(func(ctx context.Context, a indexArgs) (*indexAnswer, error) {
			waiting, cancel := context.WithTimeout(ctx, time.Duration(a.WaitSeconds)*time.Second)
			defer cancel()
			report, err := index.IndexOp.Call(waiting, folder, index.IndexRequest{Rebuild: a.Rebuild, Join: true}, progressOf(ctx))
			if err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
				return nil, err
			}
			status, err := index.StatusOp.Call(ctx, folder, o.Status, nil)
			if err != nil {
				return nil, err
			}
			return &indexAnswer{Done: report != nil, Report: report, Status: status}, nil
		}),
	}
}
