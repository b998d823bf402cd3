package toolbox

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"cairn/graphrank"
	"cairn/internal/job"
	"cairn/internal/owner"
	"cairn/internal/store/flat"
	"cairn/internal/toolsearch"
	"cairn/internal/usage"
	"cairn/models"
)

// toolIndex is the searchable form of a toolbox, made when it is
// first asked for, in memory but for the words of a large catalogue, and brought up to date when catalogue or usage have changed.
// Vectors that no process has made before are made behind the answers.
type toolIndex struct {
	mu           sync.Mutex
	model        *models.Lazy // nil searches by keywords alone
	keywords     *toolKeywords
	base         *toolsearch.Index      // without usage
	vectors      toolsearch.VectorCache // nil without a model
	closeVectors func() error
	current      *toolsearch.Index // base with usage
	learnt       *toolsearch.Usage // what current has learnt
	added        int               // how often something was added to learnt
	// catalogue and usage are the generations that current was made of.
	catalogue, usage uint64
	// intents are the texts of past intents that current remembers by their
	// words alone, since their vectors have yet to be made.
	intents []string
	// remade is set when the vectors of intents are there, for the next Index.
	remade bool
	making *job.Job[struct{}] // of vectors, the newest; nil before the first
	closed bool
}

// Index returns the tools of the catalogue, searchable, with what use has taught
// by now. It does not wait for vectors: those that were made before, by any
// process, are in it, the others are made in the background, and until they
// are its answers come from keywords and say so. progress, which may be nil,
// hears of the keywords. The index must not be changed.
func (s *service) Index(ctx context.Context, progress func(job.Progress)) (*toolsearch.Index, error) {
	x := &s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, owner.ErrEnded
	}
	if err := s.openIndex(); err != nil {
		return nil, err
	}
	// The generation is read first: what is written in between is then seen
	// by the next call.
	catalogue, err := s.catalog.Generation()
	if err != nil {
		return nil, err
	}
	usage, err := s.usage.Generation()
	if err != nil {
		return nil, err
	}
	current := x.current
	if x.current == nil || x.catalogue != catalogue {
		tools, err := s.catalog.Tools()
		if err != nil {
			return nil, err
		}
		x.current = nil
		if err := x.base.Update(ctx, tools, func(p toolsearch.Progress) { report(progress, p) }); err != nil {
			return nil, err
		}
	}
	if current == nil || x.usage != usage || x.remade {
		if err := s.addLearnt(ctx, usage); err != nil {
			return nil, err
		}
	}
	if x.current == nil {
		x.current, x.catalogue = x.base.WithUsage(x.learnt), catalogue
	}
	s.makeVectors()
	return x.current, nil
}

// maxAdded is how often something is added to what was learnt before it is made
// anew: every addition leaves a small piece of an index, and every search looks
// into each.
const maxAdded = 256

// addLearnt brings what use has taught up to date, as of a generation of it at least. x.mu is held.
func (s *service) addLearnt(ctx context.Context, usage uint64) error {
	x := &s.index
	if x.learnt != nil && !x.remade && x.added < maxAdded {
		since, ok, err := s.usage.Since(x.usage)
		if err != nil {
			return err
		}
		traces := tracesOf(since.Intents)
		if ok && len(toolsearch.Texts(traces)) <= soon {
			if len(traces) > 0 {
				x.added++
			}
			if err = x.learnt.Add(ctx, since.Edges, traces); err == nil {
				x.usage = since.Generation
				return nil
			}
			if ctx.Err() != nil {
				return err
			}
			// The model fails: what is made anew goes without it.
		}
	}
	x.current, x.remade = nil, false
	learnt, err := s.learnt(ctx)
	if err != nil {
		return err
	}
	x.learnt, x.usage, x.added = learnt, usage, 0
	return nil
}

func report(progress func(job.Progress), p toolsearch.Progress) {
	if progress != nil {
		progress(job.Progress{Phase: "tools " + p.Stage, Done: p.Done, Total: p.Total, Searchable: p.Stage == "vectors"})
	}
}

// WaitVectors waits until no vector of a tool or a past intent is missing, or ctx
// ends. Index has been called before. progress may be nil; it is called from
// this goroutine. The error is that of the model, or of ctx: the index answers
// by keywords then.
func (s *service) WaitVectors(ctx context.Context, progress func(job.Progress)) error {
	for {
		x := &s.index
		x.mu.Lock()
		s.makeVectors()
		making := x.making
		x.mu.Unlock()
		if making == nil {
			return nil
		}
		if _, err := making.Follow(ctx, progress); err != nil {
			return err
		}
		// The intents' vectors enter with a new index.
		if _, err := s.Index(ctx, nil); err != nil {
			return err
		}
		x.mu.Lock()
		complete := x.complete()
		x.mu.Unlock()
		if complete {
			return nil
		}
	}
}

// complete reports whether no vector is missing. x.mu is held.
func (x *toolIndex) complete() bool {
	return x.model == nil || x.base.Missing() == 0 && len(x.intents) == 0
}

// makeVectors starts a run unless nothing is missing or one goes on. x.mu is held.
func (s *service) makeVectors() {
	x := &s.index
	if x.closed || x.complete() || x.making != nil && x.making.Running() {
		return
	}
	intents := x.intents
	x.making = job.Start(func(ctx context.Context, progress func(job.Progress)) (struct{}, error) {
		if err := x.base.Embed(ctx, func(p toolsearch.Progress) { report(progress, p) }); err != nil || len(intents) == 0 {
			return struct{}{}, err
		}
		err := toolsearch.EmbedTexts(ctx, intents, x.model, x.vectors, func(p toolsearch.Progress) { report(progress, p) })
		if err == nil {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.remade = true
		}
		return struct{}{}, err
	})
}

// open makes the empty index.
func (s *service) openIndex() (err error) {
	x := &s.index
	if x.base != nil {
		return nil
	}
	if x.keywords == nil {
		dir := ""
		if s.dir != "" && s.mode != owner.Absent {
			dir = KeywordsDir(s.dir)
		}
		x.keywords = newToolKeywords(dir)
		x.keywords.least = cmp.Or(s.o.minStored, minStored)
	}
	stores, o := toolsearch.Stores{Keyword: x.keywords}, &toolsearch.Options{}
	if x.model != nil {
		d := x.model.Description()
		if x.vectors == nil {
			x.vectors, x.closeVectors = s.openVectors(d)
		}
		stores.Names, stores.Texts = flat.Memory(d.Dimension), flat.Memory(d.Dimension)
		o.Embedder, o.Cache = x.model, x.vectors
	}
	x.base, err = toolsearch.New(stores, o)
	return err
}

// soon is how many texts of past intents may be embedded while a caller
// waits: what was learnt since the last time, some tens of milliseconds.
const soon = 32

// learnt copies what use has taught: the store's graph may only be read
// while the store is, and the index keeps its own. x.mu is held.
func (s *service) learnt(ctx context.Context) (*toolsearch.Usage, error) {
	g := &graphrank.Graph{}
	err := s.usage.Read(func(stored *graphrank.Graph) error {
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
	intents, err := s.usage.Intents()
	if err != nil {
		return nil, err
	}
	traces := tracesOf(intents)
	x := &s.index
	x.intents = nil
	if x.model == nil {
		return toolsearch.NewUsage(ctx, g, traces, nil, nil)
	}
	unknown, err := toolsearch.Unknown(toolsearch.Texts(traces), x.vectors)
	if err != nil {
		return nil, err
	}
	if len(unknown) > soon {
		x.intents = unknown
		return toolsearch.NewUsage(ctx, g, traces, nil, nil)
	}
	learnt, err := toolsearch.NewUsage(ctx, g, traces, x.model, x.vectors)
	if err != nil && ctx.Err() == nil { // the model does not open: words are left
		return toolsearch.NewUsage(ctx, g, traces, nil, nil)
	}
	return learnt, err
}

// tracesOf are the intents that tools served: what was only read says nothing
// about tools.
func tracesOf(intents []usage.Intent) []toolsearch.Trace {
	var traces []toolsearch.Trace
	for _, m := range intents {
		trace := toolsearch.Trace{Intent: m.Text, Tools: m.Tools, Edges: m.Edges}
		if servedByTool(m.Tools) && toolsearch.CheckTrace(trace) == nil {
			traces = append(traces, trace)
		}
	}
	return traces
}

func servedByTool(ids []string) bool {
	for _, id := range ids {
		if _, document := usage.DocumentPath(id); !document {
			return true
		}
	}
	return false
}

// close ends what goes on and closes what Index has opened.
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
	if x.keywords != nil {
		err = x.keywords.Close()
	}
	if x.closeVectors != nil {
		err = errors.Join(err, x.closeVectors())
	}
	if x.model != nil {
		err = errors.Join(err, x.model.Close())
	}
	return err
}
