package tools

import (
	"cairn/internal/workspace"
)

const browseDocumentsDescription = `List the folders and documents at a path, or the outline of one document; with a query the documents below that match it.
Use it to learn how a workspace is laid out. Not for questions: read_context ranks by meaning.`

const browseDocumentsInput = `{
"type":"object",
"properties":{
 "path":{"type":"string","default":"/"},
 "query":{"type":"string"},
 "include_related":{"type":"boolean","description":"Add documents that these link to","default":false},
 "link_depth":{"type":"integer","minimum":1,"maximum":6,"default":2},
 "limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},
"additionalProperties":false}`

const browseDocumentsOutput = `{
"type":"object",
"properties":{
 "path":{"type":"string"},"folders":{"type":"array","items":{"type":"object"}},"documents":{"type":"array","items":{"type":"object"}},"total":{"type":"integer"},"truncated":{"type":"boolean"},"related":{"type":"array","items":{"type":"object"}},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"},"context":{"type":"object"}
},
"anyOf":[{"required":["path","folders","documents","total","truncated"]},{"required":["success","error","code"]}]}`

// browseDocuments is the tool browse_documents.
func browseDocuments(t *workspace.Tasks) tool {
	return tool{
		name: "browse_documents", title: "Browse documents", description: browseDocumentsDescription,
		input: browseDocumentsInput, output: browseDocumentsOutput,
		readOnly: true,
		call:     document(t.Documents.Browse),
	}
}
