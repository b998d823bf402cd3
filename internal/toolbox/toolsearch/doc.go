// Package toolsearch finds the tools that serve an intent. Package suggest plans a graph of
// tasks with them.
//
// Rank blends keyword and vector scores, for the whole intent and for its parts, and
// computes the weight of the keywords for each query. It adds bounded, explained terms for
// past use: the co-usage graph and the memory of past intents. Without past use, the order
// is that of the hybrid search.
package toolsearch
