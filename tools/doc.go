// Package tools serves a workspace to agents over MCP. It decides nothing about
// ranking or storage: see retriever, indexer and internal/workspace.
//
// A client can call each tool in two ways that share limits and arguments: through
// tools/call, which answers with structured content and the same JSON as text, and
// as a JSON-RPC method of the tool's name, which answers with the bare result and
// fails with a JSON-RPC error.
//
// To add a tool, write a function that returns it, as in status.go, and add it to
// the table in groups.go. Its arguments and its answer are structs: the schemas
// that clients see come from their tags, see schema.go.
package tools
