// Package web serves the HTML pages of one workspace: search, the reader, the
// task board, plans of tools and the state of the index. It checks no tokens.
//
// The server renders the pages. It escapes the contents of files and sanitises
// rendered Markdown, and a strict Content-Security-Policy lets the browser load
// only the embedded script and style sheet.
package web
