// Package indexer updates an index to match the files of a folder. Package retriever
// searches the index.
//
// A run has three phases. The scan compares files with the stored documents, divides
// changed files into sections and chunks (read, split, chunk), and stores them. The
// phases keywords and vectors (with window) update the two derived indexes to match the
// documents. A run is resumable: the document store is the source of truth, and a
// document is marked as pending until both indexes contain it.
package indexer
