// Package tools is the face agents see: a few MCP tools over one workspace,
// one tool a file, the server that speaks the protocol, and the mapping of
// errors to the codes of the tools' specification. It decides nothing about
// ranking or storage: see retriever, indexer and internal/workspace.
//
// Each tool can be called in two ways that share limits and arguments: through
// tools/call, where the answer is structured content with the same JSON as
// text, and as a JSON-RPC method of its own name, where the answer is the bare
// result and a failure is a JSON-RPC error.
package tools
