// Package face is the room of what people and other programs meet, except for the tools of
// the MCP server, which are in package tools, and the command, which is in cmd.
//
//   - host opens a folder with everything that serves it, and wires the rest.
//   - server speaks HTTP: the JSON API, MCP and the pages of web. token knows who may.
//   - view is the model of an answer for people: its notes and the words to mark. term
//     prints answers, web shows them, finder is the interactive list of cairn open.
//   - connect writes cairn into the configuration of clients, doctor checks a folder,
//     upgrade replaces the binary, service starts the server at login.
//
// The room imports the room of a folder, package tools and the rooms below them, except for
// the models and the indexer. Start with host.Open.
package face
