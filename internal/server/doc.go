// Package server is the HTTP server of one or more isolated workspaces. Package
// tools produces the answers; callers mount web pages with Handle.
//
// # Addresses
//
//	/mcp             MCP over streamable HTTP, for the first workspace
//	/api/search      search, as the tool read_context answers
//	/api/read        a document, section or lines, as the tool read_doc answers
//	/api/status      the state of the index, as the tool status answers
//	/api/openapi.json  the description of /api and of question tasks, OpenAPI 3.1
//	/w/NAME/...      the same for the workspace of that name
//	/healthz         whether the process answers
//	/readyz          whether every workspace answers
//	/metrics         counts and durations, for Prometheus
package server
