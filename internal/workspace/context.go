package workspace

import (
	"errors"
	"log/slog"
	"strings"
	"sync"

	"cairn/graphrank"
	"cairn/internal/owner"
	"cairn/internal/toolbox"
	"cairn/internal/usage"
	"cairn/retriever"
)

// ContextLimit bounds what the documents and tools in use add to a score.
const ContextLimit = 0.10

// contextDoubt is counted against every share: what was seen once beside what is
// in use is less sure to belong to it than what was seen often.
const contextDoubt = 1

// CoUsage lifts documents that were used together with those, and the tools,
// that a query names as in use:
//
//	bonus(d) = ContextLimit · max over c in use of n(c,d) / (Σ_x n(c,x) + contextDoubt)
//
// n counts the sights of an edge between two in either direction, less decay.
// Without a context, or one that was never seen, it changes nothing.
type CoUsage struct {
	// Usage opens the graph when a query first has a context.
	Usage func() (*usage.Store, error)
	// Log hears of a graph that cannot be read.
	Log *slog.Logger
}

// Bonus implements retriever.Reweigher.
func (u CoUsage) Bonus(q retriever.Query, paths []string) []float64 {
	if len(q.Context) == 0 {
		return nil
	}
	var bonus []float64
	store, err := u.Usage()
	if err == nil {
		err = store.Read(func(g *graphrank.Graph) error {
			bonus = contextBonus(g, q.Context, paths)
			return nil
		})
	}
	if err != nil {
		u.Log.Warn("reading what is used together", "error", err)
	}
	return bonus
}

func contextBonus(g *graphrank.Graph, inUse, paths []string) []float64 {
	shares := map[string]float64{}
	for _, name := range inUse {
		id, ok := contextNode(g, name)
		if !ok {
			continue
		}
		counts, total := map[string]float64{}, 0.0
		for e := range g.Out(id) {
			counts[e.To] += e.Count
			total += e.Count
		}
		for e := range g.In(id) {
			counts[e.From] += e.Count
			total += e.Count
		}
		for other, n := range counts {
			shares[other] = max(shares[other], n/(total+contextDoubt))
		}
	}
	if len(shares) == 0 {
		return nil
	}
	bonus := make([]float64, len(paths))
	for i, path := range paths {
		bonus[i] = ContextLimit * shares[usage.DocumentID(path)]
	}
	return bonus
}

// contextNode is the node of a document's path, with or without an anchor, or
// of a tool's id.
func contextNode(g *graphrank.Graph, name string) (id string, ok bool) {
	path, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, usage.DocumentPrefix), "/"), "#")
	for _, id := range []string{usage.DocumentID(path), name} {
		if g.Has(id) {
			return id, true
		}
	}
	return "", false
}

// sharedUsage is the graph of a workspace, opened when it is first needed.
type sharedUsage struct {
	mu     sync.Mutex
	store  *usage.Store
	under  func() error // closes what the graph is kept in
	closed bool
}

// usageGraph returns what is used together in the folder.
func (w *Workspace) usageGraph() (*usage.Store, error) {
	if w.options.Usage != nil {
		return w.options.Usage, nil
	}
	u := &w.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, errGone
	}
	if u.store != nil {
		return u.store, nil
	}
	// The graph is the folder's own, also where a store holds the index: w.dir is
	// then another folder.
	store, file, err := toolbox.OpenUsage(owner.IndexDir(w.selection.Root), w.prepare, w.config.Usage)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	u.store, u.under = store, file.Close
	return store, nil
}

func (u *sharedUsage) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.store == nil {
		return nil
	}
	err := u.under()
	u.store = nil
	return err
}
