package indexer

// Report is the result of a run.
type Report struct {
	// Files is the number of files in the index after the run. Changed files have
	// other bytes than before.
	Files, Added, Changed, Removed, Unchanged int
	// Skipped counts the files that are not indexed, by reason. The index keeps what it
	// has of those that could not be read in this run (permissions, I/O).
	Skipped map[string]int
	// Sections and Chunks are those of the whole index after the run.
	Sections, Chunks int
	// Embedded counts the texts that the encoder embedded, FromCache the chunks
	// whose vector the cache held.
	Embedded, FromCache int
	// Generation is the index's after the run. It grows only when something changed.
	Generation uint64
}
