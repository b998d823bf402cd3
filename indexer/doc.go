// Package indexer turns files into documents, sections and chunks and keeps the
// keyword index and the vectors in step with them. A run is resumable: the
// document store is the truth, the two indexes are derived from it, and a chunk
// stays marked as pending until its index holds it. It does not search: see
// package retriever.
package indexer
