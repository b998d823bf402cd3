// Package indexer brings an index up to date with the files of a folder. It does
// not search: see package retriever.
//
// A run has three phases. scan compares files with the stored documents and
// stores what changed, cut into sections and chunks (read, split, chunk); keywords
// and vectors (with window) bring the two derived indexes up to the documents. A
// run is resumable: the document store is the truth, and a document stays marked as
// pending until both indexes hold it.
package indexer
