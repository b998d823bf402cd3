// Package web is cairn's page in the browser: search as one types, a reader,
// the task board and its graph, plans of tools, and the state of the index.
//
// Pages are made on the server. What comes from files is escaped, Markdown is
// sanitised after rendering, and a strict Content-Security-Policy lets the
// browser load nothing but the embedded script and style sheet.
package web
