// Package tools serves a workspace to agents over MCP. It implements neither ranking nor
// storage: see retriever, indexer and internal/folder/workspace.
//
// A client can call each tool in two ways, with the same arguments and limits. tools/call
// answers with structured content and the same JSON as text. A direct call, which is a
// JSON-RPC request whose method is the name of the tool, answers with the bare result or
// with a JSON-RPC error.
//
// To add a tool, write the function that handles its calls, as in index.go, and add it to the
// list of its family there. The arguments and the answer of a tool are structs. The schemas that clients
// see are made from their tags, see schema.go.
package tools
