package retriever

import (
	"log/slog"
	"slices"
	"strings"

	"cairn/graphrank"
)

// CoUsageLimit is the largest bonus of CoUsage. benchmarks/quality.md compares it with
// .05 and .20.
const CoUsageLimit = 0.10

// CoUsage is the Reweigher that raises documents which were used or changed together with
// the documents and tools in use. It changes nothing if none are in use, or if nothing is
// known of them.
type CoUsage struct {
	// Read calls a function with the graph.
	Read func(func(*graphrank.Graph)) error
	// History, if not nil, relates documents by what was changed together.
	History History
	// Log receives the error if the graph cannot be read.
	Log *slog.Logger
}

// History is the history of a folder.
type History interface {
	// Changed returns documents that differ from the last commit.
	Changed() []string
	// CoChanged returns how closely each document is related to those of context, in [0, 1].
	CoChanged(context, documents []string) []float64
}

// InUse returns the context of a query, followed by the documents that differ from the last
// commit, at most MaxContext together.
func (u CoUsage) InUse(q Query) []string {
	inUse := slices.Clone(q.Context)
	if u.History != nil {
		inUse = append(inUse, u.History.Changed()...)
	}
	return inUse[:min(len(inUse), MaxContext)]
}

// Bonus implements Reweigher. It is the larger one of the bonuses of usage and history.
func (u CoUsage) Bonus(q Query, paths []string) []float64 {
	inUse := u.InUse(q)
	if len(inUse) == 0 {
		return nil
	}
	var bonus []float64
	err := u.Read(func(g *graphrank.Graph) {
		bonus = u.bonus(g, inUse, paths)
	})
	if err != nil {
		u.Log.Warn("reading the co-usage graph", "error", err)
	}
	if u.History == nil {
		return bonus
	}
	changed := u.History.CoChanged(inUse, paths)
	for i, c := range changed {
		if changed[i] = c * CoUsageLimit; i < len(bonus) {
			changed[i] = max(changed[i], bonus[i])
		}
	}
	return changed
}

func (u CoUsage) bonus(g *graphrank.Graph, inUse, paths []string) []float64 {
	var context []string // the nodes of documents, with or without an anchor, and of tools
	for _, name := range inUse {
		path, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, graphrank.DocumentPrefix), "/"), "#")
		if id := graphrank.DocumentID(path); g.Has(id) {
			context = append(context, id)
		} else if g.Has(name) {
			context = append(context, name)
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
