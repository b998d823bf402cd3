package tools

import (
	"cairn/internal/workspace"
)

const editSectionDescription = `Edit sections of a document by anchor: replace, append, prepend, insert_before, insert_after, append_child, remove. Each operation succeeds or fails by itself; the file is written once.
Use it for edits below one heading. Not for new files. Pass if_hash of view_section to be safe from other writers.`

const editSectionInput = `{
"type":"object",
"properties":{
 "document":{"type":"string","description":"Such as '/project/setup.md'"},
 "operations":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","properties":{"section":{"type":"string"},"operation":{"type":"string","enum":["replace","append","prepend","insert_before","insert_after","append_child","remove"],"default":"replace"},"content":{"type":"string"},"title":{"type":"string","description":"Of a section that is made"}},"required":["section"],"additionalProperties":false}},
 "if_hash":{"type":"string","description":"Refuse when the file has another SHA-256"},
 "if_mtime":{"type":"string","description":"Refuse when the file has another time"}},
"required":["document","operations"],
"additionalProperties":false}`

const editSectionOutput = `{
"type":"object",
"properties":{
 "success":{"type":"boolean"},"document":{"type":"string"},"results":{"type":"array","items":{"type":"object"}},"sections_modified":{"type":"integer"},"total_operations":{"type":"integer"},"timestamp":{"type":"string"},"hash":{"type":"string"},"mtime":{"type":"string"},
 "error":{"type":"string"},"code":{"type":"string"},"context":{"type":"object"}
},
"anyOf":[{"required":["success","document","results"]},{"required":["success","error","code"]}]}`

// editSection is the tool section.
func editSection(t *workspace.Tasks) tool {
	return tool{
		name: "section", title: "Edit sections of a document", description: editSectionDescription,
		input: editSectionInput, output: editSectionOutput,
		counts: true,
		call:   document(t.Documents.Section),
	}
}
