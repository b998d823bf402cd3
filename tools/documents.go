package tools

import (
	"cairn/internal/workspace"
)

// documentTools browse, search and edit documents by section.
func documentTools(t *workspace.Tasks) []tool {
	return []tool{
		{
			name: "view_section", title: "View sections of a document", groups: []Group{Docs}, readOnly: true,
			description: `Show up to ten sections of a document in full, with the hash and time that a write takes as its precondition.
Use it before section edits them. Not for search: read_context and read_doc read what is indexed.`,
			handler: documentHandler(t.Documents.ViewSection),
		},
		{
			name: "section", title: "Edit sections of a document", groups: []Group{Docs}, notIdempotent: true,
			description: `Edit sections of a document by anchor: replace, append, prepend, insert_before, insert_after, append_child, remove. Each operation succeeds or fails by itself; the file is written once.
Use it for edits below one heading. Not for new files. Pass if_hash of view_section to be safe from other writers.`,
			handler: documentHandler(t.Documents.Section),
		},
		{
			name: "browse_documents", title: "Browse documents", groups: []Group{Docs}, readOnly: true,
			description: `List the folders and documents at a path, or the outline of one document; with a query the documents below that match it.
Use it to learn how a workspace is laid out. Not for questions: read_context ranks by meaning.`,
			handler: documentHandler(t.Documents.Browse),
		},
		{
			name: "search_documents", title: "Search lines of documents", groups: []Group{Docs}, readOnly: true,
			description: `Find the lines of documents that contain a text, or match a regular expression (RE2).
Use it for every occurrence of an exact wording. Not for questions: read_context ranks by meaning.`,
			handler: documentHandler(t.Documents.SearchDocuments),
		},
	}
}
