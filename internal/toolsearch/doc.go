// Package toolsearch finds the tools that serve an intent. It plans nothing:
// package suggest makes a graph of tasks from the tools it finds.
//
// Rank blends keywords and vectors, over the whole intent and over its parts, and
// computes the weight of the keywords for each query. It adds bounded, explained
// terms for past use: the co-usage graph and the memory of past intents. Without
// past use, the order is that of the hybrid search.
package toolsearch
