package toolsearch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"cairn/internal/base/job"
	"cairn/internal/store"
	"cairn/internal/text/query"
	"cairn/internal/toolbox/catalog"
	"cairn/models"
)

// Stores holds the indexes of an Index, in memory or on disk. They are derived from the
// catalogue. The caller closes them.
type Stores struct {
	// Keyword indexes names, descriptions and the parameters of both schemas.
	Keyword Keyword
	// Names holds the vectors of the names alone, Texts those of "name. description". The
	// nearer vector has most of the weight: names distinguish tools with similar
	// descriptions, and descriptions tools with vague names. Both are nil without an
	// embedder.
	Names, Texts store.Vectors
}

// Keyword is the part of a store.Keyword that an Index uses.
type Keyword interface {
	Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error
	Search(ctx context.Context, q query.Query, k int, f store.Filter) ([]store.Hit, error)
}

// PersistentKeyword is a keyword index that can have the tools of an earlier run. The Index
// calls Update between Begin and Finish.
type PersistentKeyword interface {
	Keyword
	// Begin announces the new contents by a digest of all tools and their number. It
	// returns which of them the index has.
	Begin(whole [32]byte, tools int) (Stored, error)
	// Finish completes the announced contents. Without it the next Begin returns
	// StoredNothing.
	Finish(ctx context.Context) error
}

// Stored is the state of a PersistentKeyword at the beginning of an update.
type Stored int

// The states of a PersistentKeyword.
const (
	StoredNothing Stored = iota
	StoredLast           // it has the contents of the last Update of the Index
	StoredAll            // it has the announced contents
)

// VectorCache caches the vectors of texts by the SHA-256 of the text.
type VectorCache interface {
	Get(keys [][32]byte) ([][]float32, error)
	Put(keys [][32]byte, vectors [][]float32) error
}

// Options configures New. Nil and the zero value mean the defaults.
type Options struct {
	// Embedder computes the vectors. Nil searches by keywords alone. The caller closes it.
	Embedder models.Embedder
	// Cache keeps vectors of tools between runs. Nil keeps none.
	Cache VectorCache
	// Usage holds past use; nil means none.
	Usage *Usage
	// Logger receives a warning if the embedder fails. Nil discards it.
	Logger *slog.Logger
}

// Index searches the tools of a catalogue. It is safe for concurrent use.
type Index struct {
	stores  Stores
	options Options
	queries *lru.Cache[string, []float32]

	embedding sync.Mutex // held by Embed
	write     sync.Mutex // held while the stores change; guards digests
	// digests holds the digests of the tools in the stores, by ID.
	digests map[string]string

	mu         sync.RWMutex
	tools      []catalog.Tool      // sorted by ID
	at         map[string]int      // positions in tools, by ID
	needs      map[string][]string // IDs of the tools that a tool is declared to need, by ID
	producers  map[string][]string // IDs of tools, by the producerKey of an output
	givers     map[string][]string // IDs of tools, by entity
	unembedded map[string]bool     // IDs of tools without vectors

	// missing is the length of unembedded, changes the number of changes of vectors. The
	// results of WithUsage share both.
	missing *atomic.Int64
	changes *atomic.Int64
}

// queryCache is the number of cached vectors of intents and parts, about 1.5 kB each.
const queryCache = 512

// New returns an empty index; Sync adds the tools.
func New(stores Stores, o *Options) (*Index, error) {
	x := &Index{stores: stores, at: map[string]int{}, digests: map[string]string{}, unembedded: map[string]bool{}, missing: new(atomic.Int64), changes: new(atomic.Int64)}
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

// keywordBatch, knownBatch and vectorBatch are the numbers of tools in a batch: for the
// keyword index, of vectors to look up in the cache, and of vectors to compute. knownBatch
// is large because opening the cache reads each of its entries.
const (
	keywordBatch = 8192
	knownBatch   = 4096
	vectorBatch  = 128
)

// KeywordsPhase is the phase of a job.Progress of Update. The others are "tools vectors"
// and "tools intents".
const KeywordsPhase = "tools keywords"

// Sync runs Update, then Embed. progress may be nil.
func (x *Index) Sync(ctx context.Context, tools []catalog.Tool, progress func(job.Progress)) error {
	if err := x.Update(ctx, tools, progress); err != nil {
		return err
	}
	return x.Embed(ctx, progress)
}

// Update makes tools the contents of the index: it removes other tools, and indexes new and
// changed ones. After it, keyword search finds all tools, and vector search those with
// vectors in the cache; Embed computes the Missing ones. After an error the next Update
// continues. progress may be nil.
func (x *Index) Update(ctx context.Context, tools []catalog.Tool, progress func(job.Progress)) error {
	x.write.Lock()
	defer x.write.Unlock()
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b catalog.Tool) int { return strings.Compare(a.ID, b.ID) })
	tools = slices.CompactFunc(tools, func(a, b catalog.Tool) bool { return a.ID == b.ID })
	if progress == nil {
		progress = func(job.Progress) {}
	}
	at := make(map[string]int, len(tools))
	digests := make(map[string]string, len(tools))
	var changed []int
	for i, t := range tools {
		at[t.ID], digests[t.ID] = i, digest(&t)
		if x.digests[t.ID] != digests[t.ID] {
			changed = append(changed, i)
		}
	}
	var stale []string
	for id := range x.digests {
		if _, ok := at[id]; !ok {
			stale = append(stale, id)
		}
	}
	slices.Sort(stale)
	if err := x.updateKeywords(ctx, tools, digests, changed, stale, progress); err != nil {
		return err
	}
	if x.options.Embedder != nil && len(stale) > 0 {
		for _, s := range []store.Vectors{x.stores.Names, x.stores.Texts} {
			if err := s.Update(ctx, nil, stale); err != nil {
				return fmt.Errorf("removing tools' vectors: %w", err)
			}
		}
		x.changes.Add(1)
	}
	needs, producers, givers := resolveNeeds(tools, at), indexProducers(tools), indexGivers(tools)
	x.mu.Lock()
	x.tools, x.at, x.needs, x.producers, x.givers = tools, at, needs, producers, givers
	if x.options.Embedder != nil {
		for _, id := range stale {
			delete(x.unembedded, id)
		}
		for _, i := range changed {
			x.unembedded[tools[i].ID] = true
		}
		x.missing.Store(int64(len(x.unembedded)))
	}
	x.mu.Unlock()
	x.digests = digests
	return x.fromCache(ctx, tools, changed)
}

// Missing returns the number of tools without vectors.
func (x *Index) Missing() int { return int(x.missing.Load()) }

// updateKeywords updates the keyword index.
func (x *Index) updateKeywords(ctx context.Context, tools []catalog.Tool, digests map[string]string, changed []int, stale []string, progress func(job.Progress)) error {
	k, ok := x.stores.Keyword.(PersistentKeyword)
	if !ok {
		return x.syncKeywords(ctx, tools, changed, stale, progress)
	}
	whole := sha256.New()
	all := make([]int, len(tools))
	for i := range tools {
		whole.Write([]byte(tools[i].ID + "\x00" + digests[tools[i].ID]))
		all[i] = i
	}
	var err error
	for range 2 { // in the second attempt, an index that cannot be stored is in memory
		var stored Stored
		if stored, err = k.Begin([32]byte(whole.Sum(nil)), len(tools)); err != nil || stored == StoredAll {
			return err
		}
		if stored == StoredNothing {
			changed, stale = all, nil
		}
		if err = x.syncKeywords(ctx, tools, changed, stale, progress); err == nil {
			err = k.Finish(ctx)
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (x *Index) syncKeywords(ctx context.Context, tools []catalog.Tool, changed []int, stale []string, progress func(job.Progress)) error {
	for done := 0; done < len(changed) || len(stale) > 0; {
		batch := changed[done:min(done+keywordBatch, len(changed))]
		entries := make([]store.KeywordEntry, len(batch))
		for n, i := range batch {
			entries[n] = keywordEntry(&tools[i])
		}
		if err := x.stores.Keyword.Update(ctx, entries, stale); err != nil {
			return fmt.Errorf("indexing tools by keyword: %w", err)
		}
		stale = nil
		done += len(batch)
		progress(job.Progress{Phase: KeywordsPhase, Done: done, Total: len(changed)})
	}
	return nil
}

// fromCache stores the vectors of changed tools that are in the cache. The caller holds
// x.write.
func (x *Index) fromCache(ctx context.Context, tools []catalog.Tool, changed []int) error {
	if x.options.Embedder == nil || x.options.Cache == nil {
		return nil
	}
	for batch := range slices.Chunk(changed, knownBatch) {
		both := make([]string, 0, 2*len(batch))
		for _, i := range batch {
			both = append(both, nameText(&tools[i]), vectorText(&tools[i]))
		}
		_, vectors, err := lookUp(both, x.options.Cache)
		if err != nil {
			return err
		}
		var ids []string
		var names, texts [][]float32
		for n, i := range batch {
			if name, text := vectors[2*n], vectors[2*n+1]; name != nil && text != nil {
				ids, names, texts = append(ids, tools[i].ID), append(names, name), append(texts, text)
			}
		}
		if err := x.put(ctx, ids, names, texts); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// put stores the vectors of tools. The caller holds x.write.
func (x *Index) put(ctx context.Context, ids []string, names, texts [][]float32) error {
	if len(ids) == 0 {
		return nil
	}
	g, running := errgroup.WithContext(ctx)
	for _, leg := range []struct {
		store   store.Vectors
		vectors [][]float32
	}{{x.stores.Names, names}, {x.stores.Texts, texts}} {
		g.Go(func() error {
			entries := make([]store.VectorEntry, len(ids))
			for n, id := range ids {
				entries[n] = store.VectorEntry{Chunk: id, Path: id, Vector: leg.vectors[n]}
			}
			return leg.store.Update(running, entries, nil)
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("indexing tools by vector: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range ids {
		delete(x.unembedded, id)
	}
	x.missing.Store(int64(len(x.unembedded)))
	x.changes.Add(1)
	return nil
}

// Embed computes the missing vectors. Searches and Updates can run at the same time. After
// an error, or the end of ctx, the next Embed continues. progress may be nil.
func (x *Index) Embed(ctx context.Context, progress func(job.Progress)) error {
	if x.options.Embedder == nil {
		return nil
	}
	x.embedding.Lock()
	defer x.embedding.Unlock()
	if progress == nil {
		progress = func(job.Progress) {}
	}
	for x.Missing() > 0 {
		order := x.toEmbed()
		total, done := len(order), 0
		for batch := range slices.Chunk(order, vectorBatch) {
			if err := x.embedTools(ctx, batch); err != nil {
				return err
			}
			done += len(batch)
			progress(job.Progress{Phase: "tools vectors", Done: done, Total: total, Searchable: true})
		}
	}
	return nil
}

// toEmbed returns the tools without vectors, sorted by length, because a batch of texts of
// similar length needs the least padding.
func (x *Index) toEmbed() []catalog.Tool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	list := make([]catalog.Tool, 0, len(x.unembedded))
	for id := range x.unembedded {
		list = append(list, x.tools[x.at[id]])
	}
	slices.SortFunc(list, func(a, b catalog.Tool) int {
		return cmp.Or(cmp.Compare(len(a.Description), len(b.Description)), strings.Compare(a.ID, b.ID))
	})
	return list
}

// embedTools computes the vectors of a batch, and stores those of tools that have not
// changed during the computation.
func (x *Index) embedTools(ctx context.Context, batch []catalog.Tool) error {
	texts := make([]string, 0, 2*len(batch))
	for i := range batch {
		texts = append(texts, nameText(&batch[i]))
	}
	for i := range batch {
		texts = append(texts, vectorText(&batch[i]))
	}
	vectors, err := embedAll(ctx, x.options.Embedder, x.options.Cache, texts)
	if err != nil {
		return fmt.Errorf("embedding tools: %w", err)
	}
	x.write.Lock()
	defer x.write.Unlock()
	var ids []string
	var names, own [][]float32
	for i := range batch {
		if x.digests[batch[i].ID] == digest(&batch[i]) {
			ids, names, own = append(ids, batch[i].ID), append(names, vectors[i]), append(own, vectors[len(batch)+i])
		}
	}
	return x.put(ctx, ids, names, own)
}

// Len returns the number of tools.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.tools)
}

// Tool returns the tool with an ID.
func (x *Index) Tool(id string) (catalog.Tool, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i, ok := x.at[id]
	if !ok {
		return catalog.Tool{}, false
	}
	return x.tools[i], true
}

// Usage returns Options.Usage.
func (x *Index) Usage() *Usage { return x.options.Usage }

// Producers returns the IDs of the tools with an output of that name, in any case, sorted.
// The caller must not change the slice.
func (x *Index) Producers(name string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.producers[producerKey(name)]
}

func producerKey(name string) string { return strings.Join(Words(name), "") }

func indexProducers(tools []catalog.Tool) map[string][]string {
	index := map[string][]string{}
	for i := range tools {
		for _, out := range tools[i].Gives {
			k := producerKey(out.Name)
			if list := index[k]; len(list) == 0 || list[len(list)-1] != tools[i].ID {
				index[k] = append(list, tools[i].ID)
			}
		}
	}
	return index
}

// maxClosure bounds the result of Needs.
const maxClosure = 64

// Needs returns the tools that id is declared to need, directly or through others, nearest
// first, with their distances, which begin at 1.
func (x *Index) Needs(id string) (ids []string, distances []int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return closure(x.needs, id)
}

// DirectNeeds returns the tools that id is directly declared to need.
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

// resolveNeeds resolves declared names to IDs: a name is an ID, or else a name of the same
// server, or else the name of exactly one tool. It ignores other names.
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

// WithUsage returns an index of the same tools and stores with other usage. Later Syncs of
// x do not change its tools, and it must not be synced itself.
func (x *Index) WithUsage(u *Usage) *Index {
	x.mu.RLock()
	defer x.mu.RUnlock()
	y := &Index{stores: x.stores, options: x.options, queries: x.queries, tools: x.tools, at: x.at, needs: x.needs, producers: x.producers, givers: x.givers, missing: x.missing, changes: x.changes}
	y.options.Usage = u
	return y
}

// Uncached returns x with another embedder and an empty cache of embedded intents, for
// measurements of new intents. The limits of WithUsage apply.
func (x *Index) Uncached(e models.Embedder) (*Index, error) {
	y := x.WithUsage(x.options.Usage)
	y.options.Embedder = e
	var err error
	y.queries, err = lru.New[string, []float32](queryCache)
	return y, err
}
