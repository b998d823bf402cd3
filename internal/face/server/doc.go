// Package server is the HTTP server of one or more isolated workspaces. Package tools
// produces the answers. Callers mount web pages with Server.Handle.
//
// Before it answers a request, the server checks the host name, the origin, the token, the
// limits, the workspace and the scope, in this order.
//
// # Addresses
//
//	/mcp               MCP over streamable HTTP, for the first workspace
//	/api/search        the answer of the tool read_context
//	/api/read          the answer of the tool read_doc
//	/api/status        the answer of the tool status
//	/api/openapi.json  the OpenAPI 3.1 description of /api and of question tasks
//	/w/NAME/...        the paths above for the workspace NAME
//	/login             signs a browser in, with a link or a token
//	/healthz           whether the process answers
//	/readyz            whether every workspace can be searched
//	/metrics           metrics for Prometheus
package server
