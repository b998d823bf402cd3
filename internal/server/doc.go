// Package server answers over HTTP for one or more workspaces, strictly apart:
// MCP on one URL each, a small JSON API beside it, and what operators ask for.
// It decides who may ask and how much; what is answered is the business of
// tools, and pages are mounted from elsewhere (Handle).
//
// # Addresses
//
//	/mcp             MCP over streamable HTTP, for the first workspace
//	/api/search      search, as the tool read_context answers
//	/api/read        a document, section or lines, as the tool read_doc answers
//	/api/status      the state of the index, as the tool status answers
//	/api/openapi.json  the description of /api and of question tasks, OpenAPI 3.1
//	/w/NAME/...      the same for the workspace of that name
//	/healthz         the process answers
//	/readyz          every workspace answers
//	/metrics         what was done and how long it took, for Prometheus
package server
