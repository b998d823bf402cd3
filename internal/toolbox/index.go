package toolbox

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"cairn/graphrank"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/store/keyword"
	"cairn/internal/store/legs"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
	"cairn/internal/toolbox/usage"
	"cairn/models"
)

// toolIndex is the index of a toolbox. The first search builds it, and later searches
// update it after changes of the catalogue or the usage. It is in memory, except for the
// keywords of a large catalogue. Missing vectors are made in the background.
type toolIndex struct {
	mu      sync.Mutex
	model   models.Embedder   // if nil, searches use only keywords
	words   *keyword.Index    // of base
	stored  bool              // words is in a folder
	created bool              // words is in a folder and was empty
	failed  bool              // words cannot be in a folder
	vectors legs.Cache        // nil without a model
	closers []func() error    // close words and vectors
	base    *toolsearch.Index // without usage
	current *toolsearch.Index // base with usage
	learnt  *toolsearch.Usage // the usage of current
	added   int               // number of additions to learnt
	// catalogue and usage are the generations of current.
	catalogue, usage uint64
	making           *job.Job[struct{}] // the newest job that makes vectors; nil before the first
	closed           bool
}

// Index returns the index of the current catalogue and usage. It contains the vectors in
// the cache. Other vectors are made in the background; until then, answers use only
// keywords and are marked as degraded. progress, which may be nil, receives the progress of
// the keywords. The caller must not change the index.
func (s *Toolbox) Index(ctx context.Context, progress func(job.Progress)) (*toolsearch.Index, error) {
	x := &s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, owner.ErrEnded
	}
	// Read the generations before the contents, so that the next call notices a write in
	// between.
	tools, err := s.catalog.Snapshot()
	if err != nil {
		return nil, err
	}
	since, ok, err := s.usage.Since(x.usage)
	if err != nil {
		return nil, err
	}
	if x.current == nil || x.catalogue != tools.Generation {
		x.current = nil
		if err := s.updateIndex(ctx, tools.Tools, progress); err != nil {
			return nil, err
		}
	}
	if x.learnt == nil || x.usage != since.Generation {
		if err := s.addLearnt(ctx, since, ok); err != nil {
			return nil, err
		}
	}
	if x.current == nil {
		x.current, x.catalogue = x.base.WithUsage(x.learnt), tools.Generation
	}
	s.makeVectors()
	return x.current, nil
}

// updateIndex updates base. If the keyword index in the folder cannot be read or written,
// the index is in memory, and the next process builds the one in the folder again. The
// caller holds x.mu.
func (s *Toolbox) updateIndex(ctx context.Context, tools []catalog.Tool, progress func(job.Progress)) error {
	if err := s.openIndex(len(tools)); err != nil {
		return err
	}
	x := &s.index
	err := x.base.Update(ctx, tools, progress)
	if err == nil && x.created {
		err = x.words.Optimize(ctx)
		x.created = false
	}
	if err == nil || ctx.Err() != nil || !x.stored {
		return err
	}
	if !s.o.ReadOnly {
		_ = os.RemoveAll(KeywordsDir(s.o.Place.Index)) // best effort, as it may not be writable
	}
	x.base, x.failed = nil, true
	return s.updateIndex(ctx, tools, progress)
}

// maxAdded is the number of additions to learnt before it is rebuilt. Every addition makes
// a small segment of an index, and every search reads all segments.
const maxAdded = 256

// addLearnt updates learnt with the changes since x.usage, unless they are not known. The
// caller holds x.mu.
func (s *Toolbox) addLearnt(ctx context.Context, since usage.Changes, known bool) error {
	x := &s.index
	if known && x.learnt != nil && x.added < maxAdded {
		traces := tracesOf(since.Intents)
		if len(traces) > 0 {
			x.added++
		}
		if err := x.learnt.Add(ctx, since.Edges, traces); err != nil {
			return err
		}
		x.usage = since.Generation
		return nil
	}
	x.current = nil
	learnt, err := s.learnt(ctx)
	if err != nil {
		return err
	}
	x.learnt, x.usage, x.added = learnt, since.Generation, 0
	return nil
}

// waitVectors waits until the vectors of all tools and past intents exist, or ctx ends. The
// caller must call Index before. waitVectors calls progress, unless it is nil, from this
// goroutine. It returns an error of the model or of ctx.
func (s *Toolbox) waitVectors(ctx context.Context, progress func(job.Progress)) error {
	for {
		x := &s.index
		x.mu.Lock()
		s.makeVectors()
		making, complete := x.making, x.complete()
		x.mu.Unlock()
		if complete || making == nil {
			return nil
		}
		if _, err := making.Follow(ctx, progress); err != nil {
			return err
		}
	}
}

// complete reports whether no vector is missing. The caller holds x.mu.
func (x *toolIndex) complete() bool {
	return x.base.Missing()+x.learnt.Missing() == 0
}

// makeVectors starts a job that makes the missing vectors, unless a job is running. The
// caller holds x.mu.
func (s *Toolbox) makeVectors() {
	x := &s.index
	if x.closed || x.complete() || x.making != nil && x.making.Running() {
		return
	}
	base, learnt := x.base, x.learnt
	x.making = job.Start(func(ctx context.Context, progress func(job.Progress)) (struct{}, error) {
		err := base.Embed(ctx, progress)
		if err == nil {
			err = learnt.Embed(ctx, progress)
		}
		return struct{}{}, err
	})
}

// openIndex creates an empty index if there is none. Its keyword index is in the folder if
// there are many tools, and otherwise in memory. If one in memory gets many tools, openIndex
// replaces it.
func (s *Toolbox) openIndex(tools int) error {
	x := &s.index
	many := tools >= cmp.Or(s.o.minStored, minStored) && s.o.Place.Index != "" && !x.failed
	if x.base != nil && (x.stored || !many) {
		return nil
	}
	var words *keyword.Index
	var err error
	if many {
		words, x.created, err = openKeywords(KeywordsDir(s.o.Place.Index), s.o.ReadOnly)
		x.failed = err != nil
	}
	x.stored = many && !x.failed
	if !x.stored {
		words, err = keyword.Memory()
	}
	if err != nil {
		return err
	}
	x.words, x.closers = words, append(x.closers, words.Close)
	o := toolsearch.Options{Reader: s.o.Reader, Logger: s.o.Logger}
	if x.model != nil {
		if x.vectors == nil {
			s.openVectors(x.model.Description())
		}
		o.Embedder, o.Cache = x.model, x.vectors
	}
	x.base = toolsearch.New(words, o)
	return nil
}

// learnt builds a Usage. It copies the graph, because the store may change its own. The
// caller holds x.mu.
func (s *Toolbox) learnt(ctx context.Context) (*toolsearch.Usage, error) {
	g := &graphrank.Graph{}
	err := s.usage.Read(func(stored *graphrank.Graph) {
		for _, id := range stored.Nodes() {
			g.AddNode(id)
		}
		for e := range stored.Edges() {
			g.Set(e)
		}
	})
	if err != nil {
		return nil, err
	}
	intents, err := s.usage.Intents()
	if err != nil {
		return nil, err
	}
	return toolsearch.NewUsage(ctx, g, tracesOf(intents), s.index.model, s.index.vectors)
}

// tracesOf returns the traces of intents with at least one tool.
func tracesOf(intents []usage.Intent) []toolsearch.Trace {
	var traces []toolsearch.Trace
	for _, m := range intents {
		trace := toolsearch.Trace{Intent: m.Text, Tools: m.Tools, Edges: m.Edges}
		tools := slices.ContainsFunc(m.Tools, func(id string) bool { _, document := graphrank.DocumentPath(id); return !document })
		if tools && toolsearch.CheckTrace(trace) == nil {
			traces = append(traces, trace)
		}
	}
	return traces
}

// close stops the job and closes the stores and the model.
func (x *toolIndex) close() (err error) {
	x.mu.Lock()
	x.closed = true
	making := x.making
	x.mu.Unlock()
	if making != nil {
		making.Stop()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.closers {
		err = errors.Join(err, c())
	}
	if x.model != nil {
		err = errors.Join(err, x.model.Close())
	}
	return err
}
