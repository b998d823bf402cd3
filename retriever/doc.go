// Package retriever answers queries from an index. Package indexer builds the index.
//
// A query passes through these files in order: search (all the steps), legs (keyword and
// vector hits), blend (one score from both, 70/30), rank (chunks to sections to documents),
// cousage (the bonus from the co-usage graph). Page and snippet make results, and budget
// adds text within a token budget. Read, in read, place and file, returns the
// documents and sections that results refer to.
package retriever
