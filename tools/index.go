package tools

import (
	"context"
	"encoding/json"
	"time"

	"cairn/internal/index"
)

type indexArgs struct {
	Rebuild     bool  `json:"rebuild,omitempty" schema:"default=false" jsonschema:"Discard the index and rebuild it; needed after a change of model or format"`
	WaitSeconds whole `json:"wait_seconds,omitempty" schema:"default=20,min=0,max=600" jsonschema:"How long to wait for the end"` // below the time after which clients give up
}

type indexAnswer struct {
	Done   bool               `json:"done"`             // the run ended within the wait
	Report *index.IndexReport `json:"report,omitempty"` // present when Done
	Status *index.Status      `json:"status"`
}

// indexTool is the tool index.
func indexTool(e Engine) tool {
	return tool{
		name: "index", title: "Build or refresh the index", groups: []Group{Core}, waits: true, additive: true,
		administers: func(raw json.RawMessage) bool {
			var a indexArgs
			return decode(raw, &a) == nil && a.Rebuild
		},
		description: `Build or refresh the search index of the workspace. Unchanged files cost nothing, so calling it again is cheap.
Use it when read_context says "not_indexed", or after many files changed. Not needed before every search: the server indexes by itself when it starts.
Reports progress to clients that ask for it. A run that takes longer than wait_seconds goes on in the background: the answer then has done=false, and the status tool tells how far it is. Keyword search works while vectors are still being made.`,
		handler: codeHandler(func(ctx context.Context, a indexArgs) (*indexAnswer, error) {
			waiting, cancel := context.WithTimeout(ctx, time.Duration(a.WaitSeconds)*time.Second)
			defer cancel()
			report, err := e.Index(waiting, index.IndexRequest{Rebuild: a.Rebuild, Join: true}, progressOf(ctx))
			if err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
				return nil, err
			}
			status, err := e.Status(ctx)
			if err != nil {
				return nil, err
			}
			return &indexAnswer{Done: report != nil, Report: report, Status: status}, nil
		}),
	}
}
