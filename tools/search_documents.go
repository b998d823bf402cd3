package tools

import (
	"cairn/internal/workspace"
)

const searchDocumentsDescription = `Find the lines of documents that hold a text, or match a regular expression (RE2).
Use it for every occurrence of an exact wording. Not for questions: read_context ranks by meaning.`

const searchDocumentsInput = `{
"type":"object",
"properties":{
 "query":{"type":"string","minLength":1},
 "scope":{"type":"string","description":"Folder or document, such as '/guides/'","default":"/"},
 "type":{"type":"string","enum":["fulltext","regex"],"default":"fulltext"},
 "context_lines":{"type":"integer","minimum":0,"maximum":10,"default":2},
 "max_results":{"type":"integer","minimum":1,"maximum":500,"default":50},
 "max_match_length":{"type":"integer","minimum":20,"maximum":500,"default":80},
 "verbose":{"type":"boolean","description":"Add the lines around","default":false}},
"required":["query"],
"additionalProperties":false}`

const searchDocumentsOutput = `{
"type":"object",
"properties":{
 "results":{"type":"array","items":{"type":"object"}},"total_matches":{"type":"integer"},"truncated":{"type":"boolean"},
 "success":{"type":"boolean"},"error":{"type":"string"},"code":{"type":"string"},"context":{"type":"object"}
},
"anyOf":[{"required":["results","total_matches","truncated"]},{"required":["success","error","code"]}]}`

// searchDocuments is the tool search_documents.
func searchDocuments(t *workspace.Tasks) tool {
	return tool{
		name: "search_documents", title: "Search lines of documents", description: searchDocumentsDescription,
		input: searchDocumentsInput, output: searchDocumentsOutput,
		readOnly: true,
		call:     document(t.Documents.SearchDocuments),
	}
}
