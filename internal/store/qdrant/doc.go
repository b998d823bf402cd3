// Package qdrant keeps the chunks and documents of an index on a Qdrant server. It
// is not a general database: records exist for the writer alone, and only where
// they guard the chunks (its lease) or describe them.
//
// # Collections
//
// For a store called NAME there are, for generation G from 1:
//
//	NAME-G            chunks: see Chunks
//	NAME-documents-G  documents and their texts, without vectors, with the
//	                  dictionary of their words and the average length of
//	                  chunks: see Documents and terms
//	NAME-records      records, without vectors: see Records. The state of the
//	                  index and the writer's lease
//
// NAME and NAME-documents are aliases of one generation. The writer fills a new
// generation while the old one answers, then moves all aliases in one operation.
//
// A point's id is the UUIDv5 of the chunk's id in a namespace of our own; the
// chunk's id is in the payload, with the fields of filters:
//
//	chunk     store.ChunkID
//	tags, priority, assignee
//	          folded by store.Fold; only of documents with front matter
//	under     numbers that stand for the beginnings of the path, see under
//	title, trail, body
//	          the text that the words were made from
//
// The collection's metadata name the format, the model and the dimension.
package qdrant
