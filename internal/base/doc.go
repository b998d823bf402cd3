// Package base is the room of mechanisms that know nothing of documents, tools or tasks.
//
//   - atomicfile, checksum, packed and home: files that survive a crash, checksums,
//     the encoding of records, and the user's private directories.
//   - health: the check and the repair of each part of a folder.
//   - owner: one process owns a directory, and others send it their operations.
//   - taskdag: the dependency graph. draw: a graph as text.
//   - job and quota: work in the background with its progress, and limits of clients.
//   - observe, metrics and tracing: how long the steps of a query take.
//   - testutil: support for tests. archtest: which package may import which,
//     and how many lines a room may have.
//
// The room imports nothing of cairn outside of it, except that testutil imports models.
// Start with owner.Open.
package base
