package toolsearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/catalog"
	"cairn/internal/store"
	"cairn/models"
)

// Stores are the indexes an Index keeps its tools in. They may be in memory or
// on disk; what they hold is derived from the catalogue. All are the caller's
// to close.
type Stores struct {
	// Keyword holds names, descriptions and the parameters of both schemas.
	Keyword store.Keyword
	// Names holds the vectors of the names alone, Texts those of "name.
	// description". A tool is as near as the nearer of the two, mostly: names
	// tell tools apart that share a way of describing, descriptions those whose
	// names say little. Both are nil without an embedder.
	Names, Texts store.Vectors
}

// VectorCache remembers the vectors of texts by the SHA-256 of the text.
type VectorCache interface {
	Get(keys [][32]byte) ([][]float32, error)
	Put(keys [][32]byte, vectors [][]float32) error
}

// Options are the knobs of New. Nil and the zero value mean the defaults.
type Options struct {
	// Embedder makes the vectors; nil searches by keywords alone. It stays the
	// caller's to close.
	Embedder models.Embedder
	// Cache keeps vectors of tools from run to run; nil keeps none.
	Cache VectorCache
	// Usage is what use has taught; nil is nothing.
	Usage *Usage
	// Logger hears of a vector leg that fails. Nil is silent.
	Logger *slog.Logger
}

// Index is the tools of a catalogue, searchable. It is safe for concurrent use.
type Index struct {
	stores  Stores
	options Options
	queries *lru.Cache[string, []float32]

	write sync.Mutex // held by Sync

	mu      sync.RWMutex
	tools   []catalog.Tool // sorted by ID
	at      map[string]int // ID -> position
	digests map[string]string
	needs   map[string][]string // ID -> IDs of the tools it is declared to need
	givers  map[string][]string // name of an output, as giverKey has it -> IDs
	missing int                 // tools without vectors yet
}

// queryCache is how many embedded intents and parts are kept, some 1.5 kB each.
const queryCache = 512

// New returns an index without tools; Sync brings them in.
func New(stores Stores, o *Options) (*Index, error) {
	x := &Index{stores: stores, at: map[string]int{}, digests: map[string]string{}}
	if o != nil {
		x.options = *o
	}
	if x.options.Logger == nil {
		x.options.Logger = slog.New(slog.DiscardHandler)
	}
	if stores.Keyword == nil {
		return nil, errors.New("a tool index needs a keyword index")
	}
	if x.options.Embedder != nil && (stores.Names == nil || stores.Texts == nil) {
		return nil, errors.New("a tool index with an embedder needs stores for its vectors")
	}
	var err error
	x.queries, err = lru.New[string, []float32](queryCache)
	return x, err
}

// Progress is how far a Sync is, in tools.
type Progress struct {
	// Stage is "keywords" or "vectors".
	Stage       string
	Done, Total int
}

// keywordBatch and vectorBatch are how many tools are brought in at a time.
const (
	keywordBatch = 1000
	vectorBatch  = 128
)

// Sync makes tools the whole of the index: what is gone leaves, what is new or
// changed enters, what is as it was costs nothing. Tools are findable by keyword
// first; their vectors follow. After an error the next Sync does what is
// left. progress may be nil.
func (x *Index) Sync(ctx context.Context, tools []catalog.Tool, progress func(Progress)) error {
	x.write.Lock()
	defer x.write.Unlock()
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b catalog.Tool) int { return strings.Compare(a.ID, b.ID) })
	tools = slices.CompactFunc(tools, func(a, b catalog.Tool) bool { return a.ID == b.ID })
	if progress == nil {
		progress = func(Progress) {}
	}
	at := make(map[string]int, len(tools))
	digests := make(map[string]string, len(tools))
	var changed []int
	x.mu.RLock()
	old := x.digests
	x.mu.RUnlock()
	for i, t := range tools {
		at[t.ID], digests[t.ID] = i, digest(&t)
		if old[t.ID] != digests[t.ID] {
			changed = append(changed, i)
		}
	}
	var stale []string
	for id := range old {
		if _, ok := at[id]; !ok {
			stale = append(stale, id)
		}
	}
	slices.Sort(stale)
	if err := x.syncKeywords(ctx, tools, changed, stale, progress); err != nil {
		return err
	}
	needs, givers := resolveNeeds(tools, at), indexGivers(tools)
	x.mu.Lock()
	x.tools, x.at, x.needs, x.givers = tools, at, needs, givers
	if x.options.Embedder != nil {
		x.missing = len(changed)
	}
	x.mu.Unlock()
	if err := x.syncVectors(ctx, tools, changed, stale, progress); err != nil {
		return err
	}
	x.mu.Lock()
	x.digests, x.missing = digests, 0
	x.mu.Unlock()
	return nil
}

func (x *Index) syncKeywords(ctx context.Context, tools []catalog.Tool, changed []int, stale []string, progress func(Progress)) error {
	for done := 0; done < len(changed) || len(stale) > 0; {
		batch := changed[done:min(done+keywordBatch, len(changed))]
		entries := make([]store.TextEntry, len(batch))
		for n, i := range batch {
			entries[n] = keywordEntry(&tools[i])
		}
		if err := x.stores.Keyword.Update(ctx, entries, stale); err != nil {
			return fmt.Errorf("indexing tools by keyword: %w", err)
		}
		stale = nil
		done += len(batch)
		progress(Progress{"keywords", done, len(changed)})
	}
	return nil
}

func (x *Index) syncVectors(ctx context.Context, tools []catalog.Tool, changed []int, stale []string, progress func(Progress)) error {
	if x.options.Embedder == nil {
		return nil
	}
	// Short names together and long texts together pad the least.
	order := slices.Clone(changed)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(tools[a].Description), len(tools[b].Description)) })
	for done := 0; done < len(order) || len(stale) > 0; {
		batch := order[done:min(done+vectorBatch, len(order))]
		names, texts := make([]string, len(batch)), make([]string, len(batch))
		for n, i := range batch {
			names[n], texts[n] = nameText(&tools[i]), vectorText(&tools[i])
		}
		for _, leg := range []struct {
			store store.Vectors
			texts []string
		}{{x.stores.Names, names}, {x.stores.Texts, texts}} {
			vectors, err := embedAll(ctx, x.options.Embedder, x.options.Cache, leg.texts)
			if err != nil {
				return fmt.Errorf("embedding tools: %w", err)
			}
			entries := make([]store.VectorEntry, len(batch))
			for n, i := range batch {
				entries[n] = store.VectorEntry{Chunk: tools[i].ID, Path: tools[i].ID, Vector: vectors[n]}
			}
			if err := leg.store.Update(ctx, entries, stale); err != nil {
				return fmt.Errorf("indexing tools by vector: %w", err)
			}
		}
		stale = nil
		done += len(batch)
		x.mu.Lock()
		x.missing = len(order) - done
		x.mu.Unlock()
		progress(Progress{"vectors", done, len(order)})
	}
	return nil
}

// Len is the number of tools.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.tools)
}

// Tool returns the tool of an ID.
func (x *Index) Tool(id string) (catalog.Tool, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i, ok := x.at[id]
	if !ok {
		return catalog.Tool{}, false
	}
	return x.tools[i], true
}

// Tools returns all tools, sorted by ID. They must not be changed.
func (x *Index) Tools() []catalog.Tool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.tools
}

// Usage is what use has taught, nil when nothing is kept.
func (x *Index) Usage() *Usage { return x.options.Usage }

// Givers returns the tools that have an output of that name, however it is
// cased, sorted by ID. It must not be changed.
func (x *Index) Givers(name string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.givers[giverKey(name)]
}

func giverKey(name string) string { return strings.Join(Words(name), "") }

func indexGivers(tools []catalog.Tool) map[string][]string {
	index := map[string][]string{}
	for i := range tools {
		for _, out := range tools[i].Gives {
			k := giverKey(out.Name)
			if list := index[k]; len(list) == 0 || list[len(list)-1] != tools[i].ID {
				index[k] = append(list, tools[i].ID)
			}
		}
	}
	return index
}

// maxClosure bounds the tools that one is found to need.
const maxClosure = 64

// Needs returns the tools that id is declared to need, directly or through
// others, nearest first, with their distances from 1.
func (x *Index) Needs(id string) (ids []string, distances []int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return closure(x.needs, id)
}

// DirectNeeds returns the tools that id is itself declared to need.
func (x *Index) DirectNeeds(id string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.needs[id]
}

func closure(needs map[string][]string, id string) (ids []string, distances []int) {
	seen := map[string]bool{id: true}
	frontier := []string{id}
	for depth := 1; len(frontier) > 0; depth++ {
		var next []string
		for _, f := range frontier {
			for _, n := range needs[f] {
				if !seen[n] && len(ids) < maxClosure {
					seen[n] = true
					ids, distances, next = append(ids, n), append(distances, depth), append(next, n)
				}
			}
		}
		frontier = next
	}
	return ids, distances
}

// resolveNeeds turns declared names into ids: an id as it is, or a name of the
// same server, or a name that one tool alone has. What names no tool is left out.
func resolveNeeds(tools []catalog.Tool, at map[string]int) map[string][]string {
	byName := make(map[string][]string)
	for _, t := range tools {
		byName[t.Name] = append(byName[t.Name], t.ID)
	}
	needs := make(map[string][]string)
	for _, t := range tools {
		for _, name := range t.DependsOn {
			id := name
			if _, ok := at[id]; !ok {
				id = catalog.MakeID(t.Server, name)
			}
			if _, ok := at[id]; !ok && len(byName[name]) == 1 {
				id = byName[name][0]
			}
			if _, ok := at[id]; ok && id != t.ID && !slices.Contains(needs[t.ID], id) {
				needs[t.ID] = append(needs[t.ID], id)
			}
		}
	}
	return needs
}

// WithUsage returns an index over the same tools and stores that has learnt
// something else: for comparing, and for many users of one catalogue. It does
// not see later Syncs of x and must not be synced itself.
func (x *Index) WithUsage(u *Usage) *Index {
	x.mu.RLock()
	defer x.mu.RUnlock()
	y := &Index{stores: x.stores, options: x.options, queries: x.queries, tools: x.tools, at: x.at, digests: x.digests, needs: x.needs, givers: x.givers, missing: x.missing}
	y.options.Usage = u
	return y
}

// Uncached is x with another embedder and no embedded intents, for measuring
// what an intent costs that was never asked. What holds of WithUsage holds of it.
func (x *Index) Uncached(e models.Embedder) (*Index, error) {
	y := x.WithUsage(x.options.Usage)
	y.options.Embedder = e
	var err error
	y.queries, err = lru.New[string, []float32](queryCache)
	return y, err
}
