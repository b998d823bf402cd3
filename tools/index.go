package tools

import (
	"context"
	"time"

	"cairn/internal/workspace"
)

const indexDescription = `Build or refresh the search index of the workspace. Unchanged files cost nothing, so calling it again is cheap.
Use it when read_context says "not_indexed", or after many files changed. Not needed before every search: the server indexes by itself when it starts.
Reports progress to clients that ask for it. A run that takes longer than wait_seconds goes on in the background: the answer then has done=false, and the status tool tells how far it is. Keyword search works while vectors are still being made.`

const indexInput = `{
"type":"object",
"properties":{
 "rebuild":{"type":"boolean","default":false,"description":"Throw the index away and build it anew; needed after a change of model or format"},
 "wait_seconds":{"type":"integer","default":20,"minimum":0,"maximum":600,"description":"How long to wait for the end"}
},
"additionalProperties":false}`

const indexOutput = `{
"type":"object",
"properties":{
 "done":{"type":"boolean"},"report":{"type":"object"},"status":{"type":"object"},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["done","status"]},{"required":["code","message"]}]}`

// defaultWait is below the shortest time after which clients give up on a call.
const defaultWait = 20 * time.Second

// indexAnswer is what the tool index returns.
type indexAnswer struct {
	// Done is whether the run ended within the wait; Report is present then.
	Done   bool                   `json:"done"`
	Report *workspace.IndexReport `json:"report,omitempty"`
	Status *workspace.Status      `json:"status"`
}

// index is the tool index.
func index(e Engine) tool {
	return tool{
		name: "index", title: "Build or refresh the index", description: indexDescription,
		input: indexInput, output: indexOutput,
		long: true, adds: true,
		call: func(ctx context.Context, c call) (any, error) {
			var a struct {
				Rebuild     bool   `json:"rebuild"`
				WaitSeconds *whole `json:"wait_seconds"`
			}
			if err := decode(c.args, &a); err != nil {
				return nil, err
			}
			wait := defaultWait
			if a.WaitSeconds != nil {
				if *a.WaitSeconds < 0 || *a.WaitSeconds > 600 {
					return nil, invalid("wait_seconds is %d, want 0 to 600", *a.WaitSeconds)
				}
				wait = time.Duration(*a.WaitSeconds) * time.Second
			}
			waiting, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			report, err := e.Index(waiting, workspace.IndexRequest{Rebuild: a.Rebuild, Join: true}, c.progress)
			if err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
				return nil, err
			}
			status, err := e.Status(ctx)
			if err != nil {
				return nil, err
			}
			return &indexAnswer{Done: report != nil, Report: report, Status: status}, nil
		},
	}
}
