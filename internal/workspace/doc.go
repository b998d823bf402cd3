// Package workspace opens and closes one folder: it decides which folder a
// command works on, reads its configuration, takes its lock, opens its stores
// and hands out one Workspace to search, read and index with. When another
// process already owns the folder, the same calls are forwarded to that process
// over a Unix socket. It holds no retrieval logic: see indexer and retriever.
//
// # Files
//
//	.cairn/config.toml       settings (else .cuedeck/config.toml)
//	.cairn/.gitignore        keeps the index out of the repository
//	.cairn/index/lock        flock: exclusive = owner, shared = reader; holds the owner's pid
//	.cairn/index/gate        flock: a waiting owner keeps new readers out
//	.cairn/index/sock        the owner's Unix socket
//
// The stores' own files lie beside them.
//
// # An owner that does not answer
//
// A process that is stopped or hangs keeps its lock. Callers notice within three
// seconds, read what it has left on disk, say so in every answer, and refuse to
// index; they ask it again as soon as it answers, or one takes its place when it
// has ended. Nothing else goes by way of the owner: cards, tasks and what is known
// of tools are written under locks of their own.
//
// # A folder that is removed
//
// Whoever asks or writes, and once a second the owner by itself, compares what it
// has open with what is at the paths. What was removed is let go, and the folder
// is taken anew; where it is missing, every answer is a *FolderError.
//
// # An index that is damaged
//
// The keyword index and the vectors are derived from the documents. One that
// cannot be opened is done without, which answers say, and set aside and made anew
// by the next owner. Without the documents themselves there is a *RebuildError.
//
// # A store that is shared
//
// With Options.Store the index, the catalogue of tools and what is learnt from use
// are on a server that many processes share: see internal/store/qdrant for the
// first and internal/store/shared for the others. One process at a time writes
// documents, under a lease; any may import tools and learn.
package workspace
