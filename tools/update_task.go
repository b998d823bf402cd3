package tools

import (
	"cairn/internal/workspace"
)

const updateTaskDescription = `Change a task card; the rest of its file stays as it is. "updated_fields" tells what changed.
Use it to start, finish, assign or reorder work. Not for the text of a card: edit the file.`

const updateTaskInput = `{
"type":"object",
"properties":{
 "id":{"type":"string","pattern":"^[a-z0-9]{6}$"},
 "updates":{"type":"object","minProperties":1,"properties":{"status":{"type":"string","enum":["todo","active","done","archived"]},"assignee":{"type":["string","null"],"maxLength":50},"priority":{"type":"string","enum":["low","medium","high","critical"]},"notes":{"type":["string","null"],"maxLength":500},"tags":{"type":"array","items":{"type":"string"}},"depends_on":{"type":"array","items":{"type":"string"}},"title":{"type":"string"}},"additionalProperties":false}},
"required":["id","updates"],
"additionalProperties":false}`

const updateTaskOutput = `{
"type":"object",
"properties":{
 "id":{"type":"string"},"title":{"type":"string"},"status":{"type":"string"},"assignee":{"type":["string","null"]},"priority":{"type":"string"},"updated_at":{"type":"string"},"updated_fields":{"type":"array","items":{"type":"string"}},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["id","title","status","updated_at","updated_fields"]},{"required":["code","message"]}]}`

// updateTask is the tool update_task.
func updateTask(t *workspace.Tasks) tool {
	return tool{
		name: "update_task", title: "Update a task card", description: updateTaskDescription,
		input: updateTaskInput, output: updateTaskOutput,
		rate: rate{Limit: 10, Burst: 15},
		call: typed(t.Cards.Update),
	}
}
