// Package toolsearch finds the tools that serve an intent, among thousands. It
// blends keywords and vectors with a trust in the keywords that every query
// earns anew, looks at the whole intent and at its parts, and adds, within
// bounds and explained, what use has taught: the co-usage graph and the memory
// of past intents. Without a graph and a memory its order is that of the
// hybrid search alone.
//
// It plans nothing: package suggest makes a graph of tasks of what is found.
package toolsearch
