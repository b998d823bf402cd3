package tools

import (
	"cairn/internal/workspace"
)

const viewSectionDescription = `Show up to ten sections of a document in full, with the hash and time that a write can be held to.
Use it before section edits them. Not for search: read_context and read_doc read what is indexed.`

const viewSectionInput = `{
"type":"object",
"properties":{
 "document":{"type":"string","description":"Such as '/project/setup.md'"},
 "section":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":10}],"description":"Anchors, such as '#overview' or 'setup/config'"}},
"required":["document","section"],
"additionalProperties":false}`

const viewSectionOutput = `{
"type":"object",
"properties":{
 "document":{"type":"string"},"sections":{"type":"array","items":{"type":"object"}},"summary":{"type":"object"},"hash":{"type":"string"},"mtime":{"type":"string"},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"},"context":{"type":"object"}
},
"anyOf":[{"required":["document","sections","summary","hash","mtime"]},{"required":["success","error","code"]}]}`

// viewSection is the tool view_section.
func viewSection(t *workspace.Tasks) tool {
	return tool{
		name: "view_section", title: "View sections of a document", description: viewSectionDescription,
		input: viewSectionInput, output: viewSectionOutput,
		readOnly: true,
		call:     document(t.Documents.ViewSection),
	}
}
