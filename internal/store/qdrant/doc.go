// Package qdrant stores the chunks and documents of an index on a Qdrant server. It is
// not a general database: records are only for the writer's lease and the state of the
// index.
//
// # Collections
//
// A store called NAME has these collections, for generation G from 1:
//
//	NAME-G            chunks: see Chunks
//	NAME-documents-G  documents and their texts, without vectors, with the
//	                  dictionary of their words and the average length of
//	                  chunks: see Documents and terms
//	NAME-records      records, without vectors: see Records. The state of the
//	                  index and the writer's lease
//
// NAME and NAME-documents are aliases for one generation. The writer fills a new
// generation while the old one serves searches, then moves all aliases in one operation.
//
// A point's id is the UUIDv5 of the chunk's id in a namespace of this package. The
// payload contains the chunk's id and the fields for filters:
//
//	chunk     store.ChunkID
//	tags, priority, assignee
//	          folded by store.Fold; only for documents with front matter
//	under     hashes of prefixes of the path: see under
//	title, trail, body
//	          the text of the sparse vector
//
// The metadata of a collection name the format, the model and the dimension.
package qdrant
