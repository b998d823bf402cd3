package tools

import (
	"context"

	"cairn/internal/task/cards"
	"cairn/internal/workspace"
)

const queryGraphDescription = `Return all cards and their dependencies as one text: JSON, a Mermaid diagram or Graphviz DOT.
Use it to show the whole plan. Not for questions about it: the dag_* tools answer those.`

const queryGraphInput = `{
"type":"object",
"properties":{
 "format":{"type":"string","enum":["json","mermaid","dot"],"default":"json"}},
"additionalProperties":false}`

const queryGraphOutput = `{
"type":"object",
"properties":{
 "format":{"type":"string"},"graph":{"type":"string"},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["format","graph"]},{"required":["code","message"]}]}`

// queryGraph is the tool query_graph.
func queryGraph(t *workspace.Tasks) tool {
	return tool{
		name: "query_graph", title: "Draw the task graph", description: queryGraphDescription,
		input: queryGraphInput, output: queryGraphOutput,
		readOnly: true,
		call:     typed(func(_ context.Context, r cards.GraphRequest) (any, error) { return t.Cards.QueryGraph(r) }),
	}
}
