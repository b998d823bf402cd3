package workspace

import (
	"context"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/graphrank"
	"cairn/internal/store/flat"
	"cairn/internal/store/graph"
	"cairn/internal/store/text"
	"cairn/internal/toolsearch"
	"cairn/models"
)

// toolIndex is the searchable form of a toolbox, made in memory when it is
// first asked for and brought up to date when catalogue or usage have changed.
type toolIndex struct {
	mu       sync.Mutex
	model    *lazyModel // nil searches by keywords alone
	keywords *text.Index
	base     *toolsearch.Index // without usage
	cache    *vectorMemory
	current  *toolsearch.Index // base with usage
	// catalogue and usage are the generations that current was made of.
	catalogue, usage uint64
}

// UseModel makes Index search by meaning as well, with the model that open
// loads when vectors are first needed. It is called before Index, if at all.
func (t *Toolbox) UseModel(d models.Description, open func() (models.Embedder, error)) {
	t.index.model = newLazyModel(d, open)
}

// Index returns the tools of the catalogue, searchable, with what use has taught
// by now. The first call embeds every tool, and later ones what is new;
// progress, which may be nil, hears of it. The index must not be synced.
func (t *Toolbox) Index(ctx context.Context, progress func(Progress)) (*toolsearch.Index, error) {
	x := &t.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.open(); err != nil {
		return nil, err
	}
	// The generation is read first: what is written in between is then seen
	// by the next call.
	catalogue, err := t.Catalog.Generation()
	if err != nil {
		return nil, err
	}
	usage, err := t.Usage.Generation()
	if err != nil {
		return nil, err
	}
	if x.current != nil && x.catalogue == catalogue && x.usage == usage {
		return x.current, nil
	}
	x.current = nil
	tools, err := t.Catalog.Tools()
	if err != nil {
		return nil, err
	}
	err = x.base.Sync(ctx, tools, func(p toolsearch.Progress) {
		if progress != nil {
			progress(Progress{Phase: "tools " + p.Stage, Done: p.Done, Total: p.Total})
		}
	})
	if err != nil {
		return nil, err
	}
	learnt, err := t.learnt(ctx)
	if err != nil {
		return nil, err
	}
	x.current, x.catalogue, x.usage = x.base.WithUsage(learnt), catalogue, usage
	return x.current, nil
}

// open makes the empty index.
func (x *toolIndex) open() (err error) {
	if x.base != nil {
		return nil
	}
	if x.cache, err = newVectorMemory(); err != nil {
		return err
	}
	if x.keywords, err = text.Memory(); err != nil {
		return err
	}
	stores, o := toolsearch.Stores{Keyword: x.keywords}, &toolsearch.Options{}
	if x.model != nil {
		d := x.model.Description().Dimension
		stores.Names, stores.Texts = flat.Memory(d), flat.Memory(d)
		o.Embedder, o.Cache = x.model, x.cache
	}
	x.base, err = toolsearch.New(stores, o)
	return err
}

// learnt copies what use has taught: the store's graph may only be read
// while the store is, and the index keeps its own.
func (t *Toolbox) learnt(ctx context.Context) (*toolsearch.Usage, error) {
	g := &graphrank.Graph{}
	err := t.Usage.Read(func(stored *graphrank.Graph) error {
		for _, id := range stored.Nodes() {
			g.AddNode(id)
		}
		for e := range stored.Edges() {
			g.Set(e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	intents, err := t.Usage.Intents()
	if err != nil {
		return nil, err
	}
	var traces []toolsearch.Trace
	for _, m := range intents {
		trace := toolsearch.Trace{Intent: m.Text, Tools: m.Tools, Edges: m.Edges}
		// What was only read says nothing about tools.
		if servedByTool(m.Tools) && toolsearch.CheckTrace(trace) == nil {
			traces = append(traces, trace)
		}
	}
	if t.index.model == nil {
		return toolsearch.NewUsage(ctx, g, traces, nil, nil)
	}
	return toolsearch.NewUsage(ctx, g, traces, t.index.model, t.index.cache)
}

func servedByTool(ids []string) bool {
	for _, id := range ids {
		if _, document := graph.DocumentPath(id); !document {
			return true
		}
	}
	return false
}

// close closes what Index has opened.
func (x *toolIndex) close() (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.keywords != nil {
		err = x.keywords.Close()
	}
	if x.model != nil {
		if closeErr := x.model.Close(); err == nil {
			err = closeErr
		}
	}
	return err
}

// vectorMemory keeps vectors for as long as the process lives, so that one more
// intent does not embed all others again.
type vectorMemory struct {
	vectors *lru.Cache[[32]byte, []float32]
}

// rememberedVectors bounds a vectorMemory to some 30 MB.
const rememberedVectors = 20_000

func newVectorMemory() (*vectorMemory, error) {
	c, err := lru.New[[32]byte, []float32](rememberedVectors)
	return &vectorMemory{c}, err
}

// Get implements toolsearch.VectorCache.
func (m *vectorMemory) Get(keys [][32]byte) ([][]float32, error) {
	vectors := make([][]float32, len(keys))
	for i, k := range keys {
		vectors[i], _ = m.vectors.Get(k)
	}
	return vectors, nil
}

// Put implements toolsearch.VectorCache.
func (m *vectorMemory) Put(keys [][32]byte, vectors [][]float32) error {
	for i, k := range keys {
		m.vectors.Add(k, vectors[i])
	}
	return nil
}
