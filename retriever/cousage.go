package retriever

import (
	"log/slog"
	"strings"

	"cairn/graphrank"
)

// CoUsageLimit is the largest bonus of CoUsage. benchmarks/quality.md compares it with
// .05 and .20.
const CoUsageLimit = 0.10

// CoUsage is the Reweigher that raises documents which were used together with the
// documents and tools in the context of a query. It changes nothing if the context is
// empty or the graph contains none of it.
type CoUsage struct {
	// Read calls a function with the graph.
	Read func(func(*graphrank.Graph) error) error
	// Log receives the error if the graph cannot be read.
	Log *slog.Logger
}

// Bonus implements Reweigher.
func (u CoUsage) Bonus(q Query, paths []string) []float64 {
	if len(q.Context) == 0 {
		return nil
	}
	var bonus []float64
	err := u.Read(func(g *graphrank.Graph) error {
		bonus = u.bonus(g, q.Context, paths)
		return nil
	})
	if err != nil {
		u.Log.Warn("reading the co-usage graph", "error", err)
	}
	return bonus
}

func (u CoUsage) bonus(g *graphrank.Graph, inUse, paths []string) []float64 {
	var context []string
	for _, name := range inUse {
		if id, ok := contextNode(g, name); ok {
			context = append(context, id)
		}
	}
	if len(context) == 0 {
		return nil
	}
	candidates := make([]string, len(paths))
	for i, path := range paths {
		candidates[i] = graphrank.DocumentID(path)
	}
	bonus := g.Affinity(context, candidates)
	for i := range bonus {
		bonus[i] *= CoUsageLimit
	}
	return bonus
}

// contextNode returns the graph's node for a document's path, with or without an
// anchor, or for a tool's id.
func contextNode(g *graphrank.Graph, name string) (id string, ok bool) {
	path, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, graphrank.DocumentPrefix), "/"), "#")
	for _, id := range []string{graphrank.DocumentID(path), name} {
		if g.Has(id) {
			return id, true
		}
	}
	return "", false
}
