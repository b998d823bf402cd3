package indexer

// Report is the result of a run.
type Report struct {
	// Files is the number of files in the index after the run. Changed counts the files
	// whose bytes changed.
	Files, Added, Changed, Removed, Unchanged int
	// Skipped counts the files that were not indexed, by reason. If a file could not be
	// read (permissions, I/O), the index keeps its previous text.
	Skipped map[string]int
	// Sections and Chunks count the whole index after the run.
	Sections, Chunks int
	// Embedded counts the texts that the encoder embedded, FromCache the chunks
	// whose vector came from the cache.
	Embedded, FromCache int
	// Generation is the generation of the index after the run. A run advances it only if
	// something changed.
	Generation uint64
}
