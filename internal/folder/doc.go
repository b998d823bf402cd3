// Package folder is the room of one folder that cairn serves.
//
//   - config selects the folder and reads its settings. encoder opens the models that a
//     process chose.
//   - index joins the document store, both indexes, the indexer and the retriever, in the
//     process that owns the folder.
//   - workspace opens the folder: its index, which another process may own, its tasks and
//     its records.
//   - history relates files by the commits that changed them together. bundle compiles what
//     belongs to a task.
//   - mirror copies the index to a Qdrant server. scan finds every line that matches, in the
//     files that can match by their n-grams.
//
// The room imports the stores, the indexer, the retriever, the rooms of tools, tasks and
// question tasks, and the rooms below them. Start with workspace.Open.
package folder
