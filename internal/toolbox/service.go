package toolbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/checksum"
	"cairn/internal/base/home"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/store/keyword"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/records"
	"cairn/internal/toolbox/records/postgres"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
	"cairn/internal/toolbox/usage"
	"cairn/models"
)

// The records of a folder.
const (
	catalogFile = "catalog.db"
	usageFile   = "usage.db"
)

// The operations. A call may run twice if the owner ends meanwhile. A repeated learn or
// observe may count a trace twice; the other operations are idempotent.
const (
	opImport  owner.Op[importRequest, catalog.Diff, struct{}]              = "tools/import"
	opRemove  owner.Op[string, []string, struct{}]                         = "tools/remove"
	opList    owner.Op[ListRequest, *List, struct{}]                       = "tools/list"
	opStats   owner.Op[struct{}, *Stats, struct{}]                         = "tools/stats"
	opLookup  owner.Op[string, catalog.Tool, struct{}]                     = "tools/lookup"
	opResolve owner.Op[[]string, []string, struct{}]                       = "tools/resolve"
	opSearch  owner.Op[toolsearch.Query, *toolsearch.Answer, job.Progress] = "tools/search"
	opSuggest owner.Op[suggest.Request, *suggest.Suggestion, job.Progress] = "tools/suggest"
	opPrepare owner.Op[time.Duration, *Prepared, job.Progress]             = "tools/prepare"
	opLearn   owner.Op[[]usage.Trace, []string, struct{}]                  = "tools/learn"
	opObserve owner.Op[usage.Change, struct{}, struct{}]                   = "tools/observe"
	opForget  owner.Op[ForgetRequest, usage.Forgotten, struct{}]           = "tools/forget"
	opBackup  owner.Op[struct{}, struct{}, Line]                           = "tools/backup"
	opRestore owner.Op[[]Line, struct{}, struct{}]                         = "tools/restore"
	opExport  owner.Op[struct{}, struct{}, Exported]                       = "tools/export"
	opMerge   owner.Op[[]Exported, Merged, struct{}]                       = "tools/merge"
	opVerify  owner.Op[bool, []checksum.File, struct{}]                    = "tools/verify"
	opGraph   owner.Op[uint64, graphChanges, struct{}]                     = "tools/graph"
)

type importRequest struct {
	Source string         `json:"source"`
	Tools  []catalog.Tool `json:"tools"`
}

// ListRequest selects tools.
type ListRequest struct {
	Server string `json:"server,omitempty"` // "" is every server
	Prefix string `json:"prefix,omitempty"` // of the id or the name
	Limit  int    `json:"limit,omitempty"`  // 0 means no limit
}

// List holds tools of the catalogue.
type List struct {
	Tools []Listed `json:"tools"`
	Total int      `json:"total"` // without the limit
	// Servers are the servers of the whole catalogue, in the order of their tools.
	Servers []string `json:"servers"`
}

// Listed is a tool in a list.
type Listed struct {
	ID          string         `json:"id"`
	Server      string         `json:"server,omitempty"`
	Description string         `json:"description"`
	SchemaError string         `json:"schemaError,omitempty"`
	Flags       []catalog.Flag `json:"flags,omitempty"`
}

// Stats counts the tools and the usage.
type Stats struct {
	Tools   int        `json:"tools"`
	Sources []string   `json:"sources"`
	Usage   UsageStats `json:"usage"`
}

// UsageStats counts the edges and intents.
type UsageStats struct {
	Nodes   int     `json:"nodes"`
	Edges   int     `json:"edges"`
	Density float64 `json:"density"`
	Intents int     `json:"intents"`
}

// Prepared is the outcome of Prepare.
type Prepared struct {
	// TimedOut reports that vectors are still missing. They are made in the background.
	TimedOut bool `json:"timed_out"`
	// Failure is the error of the model, "" if there is none. After an error, searches use
	// only keywords.
	Failure string `json:"failure,omitempty"`
}

// ForgetRequest selects the usage to forget. If several fields are set, the first one
// counts.
type ForgetRequest struct {
	// Name is the id or name of a tool, or the node of a document.
	Name string `json:"name,omitempty"`
	// Before selects what was last observed before this time.
	Before time.Time `json:"before,omitzero"`
	All    bool      `json:"all,omitempty"`
}

// graphChanges are the edges changed since a generation, or all edges.
type graphChanges struct {
	Generation uint64           `json:"generation"`
	Whole      bool             `json:"whole,omitempty"`
	Edges      []graphrank.Edge `json:"edges,omitempty"`
}

// service runs the operations on the files of a folder. The first operation opens the
// files.
type service struct {
	o     Options
	place home.Place // zero: everything is in memory

	damaged atomic.Bool // an operation has found damage of the index

	mu       sync.Mutex
	opened   bool
	closed   bool
	err      error // of opening
	catalog  *catalog.Catalog
	usage    *usage.Store
	database *postgres.DB             // nil unless Options.Postgres is set
	records  map[string]records.Store // by part
	files    []*kv.File               // of the catalogue and the usage
	index    toolIndex
}

func newService(o Options, place home.Place) *service {
	s := &service{o: o, place: place}
	for _, name := range []string{catalogFile, usageFile} {
		s.files = append(s.files, kv.NewFile(filepath.Join(place.Records, name), &kv.FileOptions{Logger: o.Logger}))
	}
	if o.Model != nil {
		s.index.model = models.NewLazy(o.Description, o.Model)
	}
	return s
}

// register registers the operations with a server.
func (s *service) register(server *owner.Server) {
	handle(s, server, opImport, func(_ context.Context, r importRequest, _ func(struct{})) (catalog.Diff, error) {
		return s.catalog.Import(r.Source, r.Tools)
	})
	handle(s, server, opRemove, func(_ context.Context, source string, _ func(struct{})) ([]string, error) {
		return s.catalog.Forget(source)
	})
	handle(s, server, opList, func(_ context.Context, r ListRequest, _ func(struct{})) (*List, error) { return s.list(r) })
	handle(s, server, opStats, func(context.Context, struct{}, func(struct{})) (*Stats, error) { return s.stats() })
	handle(s, server, opLookup, func(_ context.Context, name string, _ func(struct{})) (catalog.Tool, error) {
		return s.catalog.Lookup(name)
	})
	handle(s, server, opResolve, func(_ context.Context, names []string, _ func(struct{})) ([]string, error) {
		ids := make([]string, len(names))
		for i, name := range names {
			var err error
			if ids[i], _, err = s.resolve(name); err != nil {
				return nil, err
			}
		}
		return ids, nil
	})
	handle(s, server, opSearch, func(ctx context.Context, q toolsearch.Query, progress func(job.Progress)) (*toolsearch.Answer, error) {
		x, err := s.Index(ctx, progress)
		if err != nil {
			return nil, err
		}
		return x.Search(ctx, q)
	})
	handle(s, server, opSuggest, func(ctx context.Context, r suggest.Request, progress func(job.Progress)) (*suggest.Suggestion, error) {
		x, err := s.Index(ctx, progress)
		if err != nil {
			return nil, err
		}
		return suggest.Suggest(ctx, x, r)
	})
	handle(s, server, opPrepare, s.prepare)
	handle(s, server, opLearn, func(ctx context.Context, traces []usage.Trace, _ func(struct{})) ([]string, error) {
		return s.learn(ctx, traces)
	})
	handle(s, server, opObserve, func(ctx context.Context, c usage.Change, _ func(struct{})) (struct{}, error) {
		return struct{}{}, s.usage.Add(ctx, c)
	})
	handle(s, server, opForget, func(_ context.Context, r ForgetRequest, _ func(struct{})) (usage.Forgotten, error) {
		return s.forget(r)
	})
	handle(s, server, opBackup, s.backup)
	handle(s, server, opRestore, s.restore)
	handle(s, server, opExport, s.export)
	handle(s, server, opMerge, s.merge)
	handle(s, server, opVerify, func(ctx context.Context, repair bool, _ func(struct{})) ([]checksum.File, error) {
		return s.verify(ctx, repair)
	})
	handle(s, server, opGraph, func(_ context.Context, generation uint64, _ func(struct{})) (graphChanges, error) {
		return s.changes(generation)
	})
}

// handle registers an operation. It opens the files before fn, and notes damage after it.
func handle[In, Out, Line any](s *service, server *owner.Server, op owner.Op[In, Out, Line], fn func(context.Context, In, func(Line)) (Out, error)) {
	op.Handle(server, func(ctx context.Context, in In, ahead func(Line)) (out Out, err error) {
		if err := s.open(ctx); err != nil {
			return out, err
		}
		out, err = fn(ctx, in, ahead)
		if errors.Is(err, keyword.ErrCorrupt) {
			s.damaged.Store(true)
		}
		if errors.Is(err, kv.ErrClosed) {
			err = owner.ErrEnded
		}
		return out, err
	})
}

// open opens the catalogue and the usage graph.
func (s *service) open(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return owner.ErrEnded
	}
	if s.opened {
		return s.err
	}
	s.opened, s.err = true, s.openRecords(ctx)
	for range s.files { // each may have been recovered
		if _, damaged := errors.AsType[*kv.CorruptError](s.err); damaged {
			s.err = s.openRecords(ctx)
		}
	}
	return s.err
}

func (s *service) openRecords(ctx context.Context) (err error) {
	var tools, learnt records.Store = records.NewFile(s.files[0], catalog.Buckets()...), records.NewFile(s.files[1], usage.Buckets()...)
	if s.o.Postgres != "" && s.database == nil {
		if s.database, err = postgres.Open(ctx, s.o.Postgres, s.o.Logger); err != nil {
			return err
		}
	}
	if s.database != nil {
		own := []records.Store{tools, learnt}
		tools, learnt = s.database.Store(s.o.Space+"/catalogue"), s.database.Store(s.o.Space+"/usage")
		// The first server copies the records of its folder.
		for i, shared := range []records.Store{tools, learnt} {
			if err := copyToEmpty(ctx, own[i], shared); err != nil {
				return err
			}
		}
	}
	s.records = map[string]records.Store{catalogPart: tools, usagePart: learnt}
	if s.catalog, err = catalog.Open(tools); err != nil {
		return err
	}
	s.usage, err = usage.Open(learnt, &usage.Options{HalfLife: s.o.HalfLife, Logger: s.o.Logger})
	return err
}

// copyToEmpty copies records to a store that was never written.
func copyToEmpty(ctx context.Context, from, to records.Store) error {
	there, err := to.Since(ctx, 0)
	if err != nil || there.Generation > 0 {
		return err
	}
	all, err := from.Since(ctx, 0)
	if err != nil {
		return err
	}
	return records.Replace(ctx, to, all.Records)
}

// Removed implements owner.Service. After damage of the index it returns true, so that the
// owner starts a new service, which builds it.
func (s *service) Removed() bool { return s.damaged.Load() }

// Close stops the jobs and closes the files.
func (s *service) Close() error {
	errs := []error{s.index.close()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	if s.database != nil {
		errs = append(errs, s.database.Close())
	}
	return errors.Join(errs...)
}

func (s *service) list(r ListRequest) (*List, error) {
	tools, err := s.catalog.Tools()
	l := &List{Tools: []Listed{}, Servers: []string{}}
	servers := map[string]bool{}
	for i := range tools {
		t := &tools[i]
		if !servers[t.Server] {
			servers[t.Server] = true
			l.Servers = append(l.Servers, t.Server)
		}
		if r.Server != "" && t.Server != r.Server || !strings.HasPrefix(t.ID, r.Prefix) && !strings.HasPrefix(t.Name, r.Prefix) {
			continue
		}
		if l.Total++; r.Limit <= 0 || len(l.Tools) < r.Limit {
			l.Tools = append(l.Tools, Listed{t.ID, t.Server, t.Description, t.SchemaError, t.Flags})
		}
	}
	return l, err
}

func (s *service) stats() (*Stats, error) {
	st := &Stats{}
	tools, err := s.catalog.Tools()
	if err != nil {
		return nil, err
	}
	st.Tools = len(tools)
	if st.Sources, err = s.catalog.Sources(); err != nil {
		return nil, err
	}
	intents, err := s.usage.Intents()
	if err != nil {
		return nil, err
	}
	st.Usage.Intents = len(intents)
	return st, s.usage.Read(func(g *graphrank.Graph) error {
		st.Usage.Nodes, st.Usage.Edges, st.Usage.Density = g.Len(), g.EdgeCount(), g.Density()
		return nil
	})
}

// resolve returns the id of the tool or document of a name, or the name itself if it does
// not identify exactly one.
func (s *service) resolve(name string) (id string, found bool, err error) {
	if path, ok := graphrank.DocumentPath(name); ok {
		return graphrank.DocumentID(strings.TrimPrefix(path, "/")), true, nil
	}
	tool, err := s.catalog.Lookup(name)
	_, missing := errors.AsType[*catalog.UnknownError](err)
	_, several := errors.AsType[*catalog.AmbiguousError](err)
	switch {
	case missing || several:
		return name, false, nil
	case err != nil:
		return "", false, err
	}
	return tool.ID, true, nil
}

// learn adds traces to the usage, with ids in place of names. It returns the unknown names.
func (s *service) learn(ctx context.Context, traces []usage.Trace) (unknown []string, err error) {
	ids := map[string]string{}
	resolved := make([]usage.Trace, len(traces))
	for i, trace := range traces {
		resolved[i] = trace
		resolved[i].Calls = slices.Clone(trace.Calls)
		for k := range resolved[i].Calls {
			name := &resolved[i].Calls[k].Tool
			id, known := ids[*name]
			if !known {
				var found bool
				if id, found, err = s.resolve(*name); err != nil {
					return nil, err
				}
				if ids[*name] = id; !found {
					unknown = append(unknown, *name)
				}
			}
			*name = id
		}
	}
	return unknown, s.usage.Learn(ctx, resolved...)
}

func (s *service) forget(r ForgetRequest) (usage.Forgotten, error) {
	if r.Name == "" && !r.Before.IsZero() {
		return s.usage.ForgetBefore(r.Before)
	}
	if r.Name == "" && r.All {
		return s.usage.ForgetAll()
	}
	id, known := r.Name, false
	err := s.usage.Read(func(g *graphrank.Graph) error {
		known = g.Has(id)
		return nil
	})
	if err != nil {
		return usage.Forgotten{}, err
	}
	if !known {
		if id, _, err = s.resolve(id); err != nil {
			return usage.Forgotten{}, err
		}
	}
	return s.usage.ForgetNode(id)
}

// changes returns the edges changed since a generation, or all edges.
func (s *service) changes(generation uint64) (graphChanges, error) {
	since, ok, err := s.usage.Since(generation)
	if err != nil {
		return graphChanges{}, err
	}
	c := graphChanges{Generation: since.Generation, Edges: since.Edges}
	if ok && generation > 0 {
		return c, nil
	}
	c.Whole, c.Edges = true, nil
	err = s.usage.Read(func(g *graphrank.Graph) error {
		c.Edges = slices.Collect(g.Edges())
		return nil
	})
	return c, err
}

func (s *service) prepare(ctx context.Context, wait time.Duration, progress func(job.Progress)) (*Prepared, error) {
	if _, err := s.Index(ctx, progress); err != nil {
		return nil, err
	}
	p := &Prepared{}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	switch err := s.waitVectors(limited, progress); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		p.TimedOut = true
	case err != nil:
		p.Failure = fmt.Sprint(err)
	}
	return p, nil
}
