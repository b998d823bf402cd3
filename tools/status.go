package tools

import "context"

const statusDescription = `Tell the state of the index: "missing", "building", "partial" or "ready"; numbers of files, sections and vectors; the embedding model; the workspace folder and the rule that chose it; files skipped, by reason; progress of a running index.
Use it when answers look incomplete or come from the wrong folder. Not needed before a search: every answer of read_context carries the short form.`

const statusInput = `{"type":"object","properties":{},"additionalProperties":false}`

const statusOutput = `{
"type":"object",
"properties":{
 "state":{"type":"string"},"files":{"type":"integer"},"sections":{"type":"integer"},"embedded":{"type":"integer"},"pending":{"type":"integer"},
 "model":{"type":"string"},"workspace":{"type":"object"},"skipped":{"type":"object"},"progress":{"type":"object"},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["state","files","sections","embedded","model","workspace"]},{"required":["code","message"]}]}`

// status is the tool status.
func status(e Engine) tool {
	return tool{
		name: "status", title: "State of the index", description: statusDescription,
		input: statusInput, output: statusOutput,
		readOnly: true,
		call: func(ctx context.Context, c call) (any, error) {
			if err := decode(c.args, &struct{}{}); err != nil {
				return nil, err
			}
			return e.Status(ctx)
		},
	}
}
