// Package retriever answers a query with ranked sections: it runs the keyword
// and the vector leg, blends them 70/30, groups chunks into sections and
// sections into documents, and fits the answer into a token budget. It also
// reads documents and sections back. It does not index: see package indexer.
package retriever
