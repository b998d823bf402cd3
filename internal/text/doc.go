// Package text is the room of text: it reads files and queries, and knows no index.
//
//   - walk lists the files of a folder and says why it leaves a file out, watch follows
//     their changes.
//   - convert turns formatted files, such as PDF and HTML, into Markdown. outline finds the
//     symbols of source code. sandbox runs the conversions in child processes with hard
//     limits. markdown divides the text of every format into sections,
//     finds links and edits front matter.
//   - git reads the commits of a repository without executing anything.
//   - query parses what a person or an agent searches for.
//   - receipt cites lines by their content and finds out what became of them.
//   - secret and invisible find what must not be shown, or what a person does not see;
//     highlight and fit prepare text for a reader and for a budget.
//
// The room imports nothing of cairn outside of it. convert, outline and query import
// nothing of cairn at all. Start with markdown.Parse.
package text
