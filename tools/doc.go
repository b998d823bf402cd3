// Package tools serves a workspace to agents over MCP. It implements neither ranking nor
// storage: see retriever, indexer and internal/folder/workspace.
//
// A client can call each tool in two ways, with the same arguments and limits. tools/call
// answers with structured content and the same JSON as text. A direct call, which is a
// JSON-RPC request whose method is the name of the tool, answers with the bare result or
// with a JSON-RPC error.
//
// To add a tool, write a function that returns it, as in status.go, and add it to allTools
// in groups.go. The arguments and the answer of a tool are structs. The schemas that clients
// see are made from their tags, see schema.go.
package tools
