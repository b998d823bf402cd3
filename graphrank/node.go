package graphrank

import "strings"

// DocumentPrefix is the prefix of the IDs of documents. No ID of a tool has it.
const DocumentPrefix = "doc:"

// DocumentID returns the ID of the document at a workspace path.
func DocumentID(path string) string { return DocumentPrefix + path }

// DocumentPath returns the path of the document with an ID. ok is false for a tool.
func DocumentPath(id string) (path string, ok bool) { return strings.CutPrefix(id, DocumentPrefix) }
