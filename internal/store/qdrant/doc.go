// Package qdrant keeps on a Qdrant server what the embedded stores keep in
// files: vectors, the keyword index as sparse vectors, documents, and small
// versioned records. Any number of processes share it, so a server needs no
// disk of its own.
//
// # Collections
//
// For a store called NAME there are, for generation G from 1:
//
//	NAME-G            one point a chunk: its vector, quantised to int8
//	NAME-words-G      one point a chunk: its BM25 term weights as a sparse vector
//	NAME-documents-G  documents and their texts, without vectors, and the
//	                  dictionary of their words: see terms
//	NAME-records      records, without vectors: see Records. The state of the
//	                  index, the lengths of chunks and the writer's lease
//
// NAME, NAME-words and NAME-documents are aliases of one generation. A new one
// is built beside it and all aliases are moved in one operation.
//
// A point's id is the UUIDv5 of the chunk's id in a namespace of our own; the
// chunk's id is in the payload, with what filters ask for:
//
//	chunk     store.ChunkID
//	tags, priority, assignee
//	          folded by store.Fold; only of documents with front matter
//	under     numbers that stand for the beginnings of the path, see under
//
// The collection's metadata name the format, the model and the dimension.
package qdrant
