// Package retriever answers queries from an index. It does not build the index:
// see package indexer.
//
// A query runs through these files in order: search (the whole), legs (keyword
// and vector hits), blend (one score of both, 70/30), rank (chunks to sections to
// documents), cousage (the bonus of what was used together), page with snippet
// (results) and budget (text within a token budget). Read, in read, place, file and
// part, returns the documents and sections that results name.
package retriever
