package tools

import (
	"cairn/internal/workspace"
)

const createTaskDescription = `Create a task card. Everything is checked first: an unknown id in depends_on creates nothing.
Use it for work to be remembered. Not for a task inside a document: use the task tool.`

const createTaskInput = `{
"type":"object",
"properties":{
 "title":{"type":"string","minLength":1,"maxLength":200},
 "tags":{"type":"array","items":{"type":"string"}},
 "priority":{"type":"string","enum":["low","medium","high","critical"],"default":"medium"},
 "assignee":{"type":"string"},
 "depends_on":{"type":"array","items":{"type":"string","pattern":"^[a-z0-9]{6}$"},"description":"Tasks to be done first"}},
"required":["title"],
"additionalProperties":false}`

const createTaskOutput = `{
"type":"object",
"properties":{
 "id":{"type":"string"},"path":{"type":"string"},"metadata":{"type":"object"},
 "code":{"type":"integer"},"message":{"type":"string"},"data":{"type":"object"}
},
"anyOf":[{"required":["id","path","metadata"]},{"required":["code","message"]}]}`

// createTask is the tool create_task.
func createTask(t *workspace.Tasks) tool {
	return tool{
		name: "create_task", title: "Create a task card", description: createTaskDescription,
		input: createTaskInput, output: createTaskOutput,
		adds: true, counts: true,
		call: typed(t.Cards.Create),
	}
}
