package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/health"
	"cairn/internal/base/home"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/store/keyword"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/plancheck"
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

type none = struct{}

// The operations of the owner of a toolbox. A call may run twice if the owner ends
// meanwhile. A repeated LearnOp or ObserveOp may count a trace twice; the other operations
// are idempotent.
const (
	// ImportOp replaces the tools of a source, see catalog.Import. RemoveOp removes a
	// source and its tools, and returns their ids.
	ImportOp owner.Op[ImportRequest, catalog.Diff, none] = "tools/import"
	RemoveOp owner.Op[string, []string, none]            = "tools/remove"
	// ListOp lists the tools of the catalogue, by id. StatsOp counts the tools and the usage.
	ListOp  owner.Op[ListRequest, *List, none] = "tools/list"
	StatsOp owner.Op[none, *Stats, none]       = "tools/stats"
	// LookupOp returns the tool of an id, or of a name that only one server has; see
	// catalog.Lookup. ResolveOp returns the ids of names. It does not change ids of
	// documents, and names that do not identify exactly one tool.
	LookupOp  owner.Op[string, catalog.Tool, none] = "tools/lookup"
	ResolveOp owner.Op[[]string, []string, none]   = "tools/resolve"
	// ExampleOp returns the shortest known arguments of a successful call of a tool, with
	// secrets masked; see usage.Example. CheckOp checks a plan, see plancheck.
	ExampleOp owner.Op[string, json.RawMessage, none]                   = "tools/example"
	CheckOp   owner.Op[plancheck.Plan, *plancheck.Report, job.Progress] = "tools/check"
	// SearchOp finds tools without waiting for missing vectors; see toolsearch. SuggestOp
	// plans which tools to use; see suggest.
	SearchOp  owner.Op[toolsearch.Query, *toolsearch.Answer, job.Progress] = "tools/search"
	SuggestOp owner.Op[suggest.Request, *suggest.Suggestion, job.Progress] = "tools/suggest"
	// PrepareOp indexes the tools. Then it waits until the vectors of tools and past
	// intents are complete, for at most the given duration.
	PrepareOp owner.Op[time.Duration, *Prepared, job.Progress] = "tools/prepare"
	// LearnOp adds traces to the usage, all or none, with ids in place of the names of
	// tools. It does not change names that do not identify exactly one tool, and returns
	// them, each once, in order of appearance.
	LearnOp owner.Op[[]usage.Trace, []string, none] = "tools/learn"
	// ObserveOp adds a change of the usage graph. ForgetOp removes the selected usage.
	ObserveOp owner.Op[usage.Change, none, none]             = "tools/observe"
	ForgetOp  owner.Op[ForgetRequest, usage.Forgotten, none] = "tools/forget"
	// GraphOp returns the changes of the usage graph since a generation; see Graph.
	GraphOp owner.Op[uint64, GraphChanges, none] = "tools/graph"
	// BackupOp reports every record, and RestoreOp replaces all. ExportOp reports every
	// tool, edge and intent, and MergeOp adds them to those of the folder.
	BackupOp  owner.Op[none, none, Line]         = "tools/backup"
	RestoreOp owner.Op[[]Line, none, none]       = "tools/restore"
	ExportOp  owner.Op[none, none, Exported]     = "tools/export"
	MergeOp   owner.Op[[]Exported, Merged, none] = "tools/merge"
	// VerifyOp verifies the files and, if its argument is true, repairs them.
	VerifyOp owner.Op[bool, *health.Report, none] = "tools/verify"
)

// ImportRequest replaces the tools of a source, see catalog.Import.
type ImportRequest struct {
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
	// Degraded is as in toolsearch.Answer.
	Degraded []string `json:"degraded,omitempty"`
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
	Tools   int      `json:"tools"`
	Sources []string `json:"sources"`
	Usage   struct {
		Nodes   int     `json:"nodes"`
		Edges   int     `json:"edges"`
		Density float64 `json:"density"`
		Intents int     `json:"intents"`
	} `json:"usage"`
}

// Prepared is the outcome of PrepareOp.
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

// GraphChanges are the edges changed since a generation, or all edges.
type GraphChanges struct {
	Generation uint64           `json:"generation"`
	Whole      bool             `json:"whole,omitempty"`
	Edges      []graphrank.Edge `json:"edges,omitempty"`
}

// Toolbox runs the operations on the files of a folder in their owner. The first operation
// opens the files.
type Toolbox struct {
	o Options

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

// New returns the toolbox in o.Place.
func New(o Options) *Toolbox {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &Toolbox{o: o}
	for _, path := range Files(o.Place) {
		s.files = append(s.files, kv.NewFile(path, &kv.FileOptions{ReadOnly: o.ReadOnly, Logger: o.Logger}))
	}
	if o.Model != nil {
		s.index.model = models.NewLazy(o.Description, o.Model)
	}
	return s
}

// Serve registers the operations on a server.
func (s *Toolbox) Serve(server *owner.Server) {
	s.ServeReads(server)
	answer(s, server, ImportOp, func(_ context.Context, r ImportRequest) (catalog.Diff, error) {
		return s.catalog.Import(r.Source, r.Tools)
	})
	answer(s, server, RemoveOp, func(_ context.Context, source string) ([]string, error) { return s.catalog.Forget(source) })
	handle(s, server, PrepareOp, s.prepare)
	answer(s, server, LearnOp, s.learn)
	answer(s, server, ObserveOp, func(ctx context.Context, c usage.Change) (none, error) { return none{}, s.usage.Add(ctx, c) })
	answer(s, server, ForgetOp, s.forget)
	handle(s, server, BackupOp, s.backup)
	answer(s, server, RestoreOp, s.restore)
	handle(s, server, ExportOp, s.export)
	answer(s, server, MergeOp, s.merge)
	answer(s, server, VerifyOp, s.verify)
}

// ServeReads registers the operations that only read.
func (s *Toolbox) ServeReads(server *owner.Server) {
	answer(s, server, ListOp, s.list)
	answer(s, server, StatsOp, s.stats)
	answer(s, server, LookupOp, func(_ context.Context, name string) (catalog.Tool, error) { return s.catalog.Lookup(name) })
	answer(s, server, ResolveOp, s.resolveAll)
	handle(s, server, SearchOp, func(ctx context.Context, q toolsearch.Query, progress func(job.Progress)) (*toolsearch.Answer, error) {
		x, err := s.Index(ctx, progress)
		if err != nil {
			return nil, err
		}
		a, err := x.Search(ctx, q)
		if err == nil {
			a.Degraded = append(a.Degraded, s.lacks()...)
		}
		return a, err
	})
	handle(s, server, SuggestOp, func(ctx context.Context, r suggest.Request, progress func(job.Progress)) (*suggest.Suggestion, error) {
		x, err := s.Index(ctx, progress)
		if err != nil {
			return nil, err
		}
		return suggest.Suggest(ctx, x, r)
	})
	answer(s, server, ExampleOp, func(ctx context.Context, id string) (json.RawMessage, error) { return s.usage.Example(ctx, id) })
	handle(s, server, CheckOp, s.check)
	answer(s, server, GraphOp, s.changes)
}

// lacks returns the part that answers lack if the owner does not answer.
func (s *Toolbox) lacks() []string {
	if !s.o.ReadOnly {
		return nil
	}
	return []string{"owner"}
}

// Files returns the paths of the files of records.
func Files(place home.Place) []string {
	return []string{filepath.Join(place.Records, catalogFile), filepath.Join(place.Records, usageFile)}
}

// handle registers an operation. It opens the files before fn, and notes damage after it.
func handle[In, Out, Line any](s *Toolbox, server *owner.Server, op owner.Op[In, Out, Line], fn func(context.Context, In, func(Line)) (Out, error)) {
	op.Handle(server, func(ctx context.Context, in In, ahead func(Line)) (out Out, err error) {
		err = s.with(ctx, func() error {
			out, err = fn(ctx, in, ahead)
			return err
		})
		return out, err
	})
}

// answer is handle for an operation that reports no progress.
func answer[In, Out, Line any](s *Toolbox, server *owner.Server, op owner.Op[In, Out, Line], fn func(context.Context, In) (Out, error)) {
	handle(s, server, op, func(ctx context.Context, in In, _ func(Line)) (Out, error) { return fn(ctx, in) })
}

// Read calls fn with the usage graph. fn must neither change nor retain it.
func (s *Toolbox) Read(fn func(*graphrank.Graph)) error {
	return s.with(context.Background(), func() error { return s.usage.Read(fn) })
}

// with calls fn with the files open, and notes damage of the index.
func (s *Toolbox) with(ctx context.Context, fn func() error) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	err := fn()
	if errors.Is(err, keyword.ErrCorrupt) {
		s.damaged.Store(true)
	}
	if errors.Is(err, kv.ErrClosed) {
		return owner.ErrEnded
	}
	return err
}

// open opens the catalogue and the usage graph.
func (s *Toolbox) open(ctx context.Context) error {
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

func (s *Toolbox) openRecords(ctx context.Context) (err error) {
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
	s.usage, err = usage.Open(learnt, &usage.Options{HalfLife: s.o.HalfLife, Logger: s.o.Logger, Masks: s.o.Masks})
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
func (s *Toolbox) Removed() bool { return s.damaged.Load() }

// Close stops the jobs and closes the files.
func (s *Toolbox) Close() error {
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

func (s *Toolbox) list(_ context.Context, r ListRequest) (*List, error) {
	all, err := s.catalog.Snapshot()
	if err != nil {
		return nil, err
	}
	l := &List{Tools: []Listed{}, Servers: []string{}, Degraded: s.lacks()}
	for i := range all.Tools {
		t := &all.Tools[i]
		if n := len(l.Servers); n == 0 || l.Servers[n-1] != t.Server && !slices.Contains(l.Servers, t.Server) {
			l.Servers = append(l.Servers, t.Server)
		}
		if r.Server != "" && t.Server != r.Server || !strings.HasPrefix(t.ID, r.Prefix) && !strings.HasPrefix(t.Name, r.Prefix) {
			continue
		}
		if l.Total++; r.Limit <= 0 || len(l.Tools) < r.Limit {
			l.Tools = append(l.Tools, Listed{t.ID, t.Server, t.Description, t.SchemaError, t.Flags})
		}
	}
	return l, nil
}

func (s *Toolbox) stats(context.Context, none) (*Stats, error) {
	all, err := s.catalog.Snapshot()
	if err != nil {
		return nil, err
	}
	intents, err := s.usage.Intents()
	if err != nil {
		return nil, err
	}
	st := &Stats{Tools: len(all.Tools), Sources: all.Sources}
	st.Usage.Intents = len(intents)
	return st, s.usage.Read(func(g *graphrank.Graph) {
		st.Usage.Nodes, st.Usage.Edges, st.Usage.Density = g.Len(), g.EdgeCount(), g.Density()
	})
}

// resolve returns the id of the tool or document of a name, or the name itself if it does
// not identify exactly one.
func (s *Toolbox) resolve(name string) (id string, found bool, err error) {
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

// resolveAll returns the ids of names.
func (s *Toolbox) resolveAll(_ context.Context, names []string) ([]string, error) {
	ids := make([]string, len(names))
	for i, name := range names {
		var err error
		if ids[i], _, err = s.resolve(name); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// learn adds traces to the usage, with ids in place of names. It returns the unknown names.
func (s *Toolbox) learn(ctx context.Context, traces []usage.Trace) (unknown []string, err error) {
	ids := map[string]string{}
	resolved := slices.Clone(traces)
	for i := range resolved {
		resolved[i].Calls = slices.Clone(traces[i].Calls)
		for k := range resolved[i].Calls {
			name := &resolved[i].Calls[k].Tool
			if _, known := ids[*name]; !known {
				id, found, err := s.resolve(*name)
				if err != nil {
					return nil, err
				}
				if ids[*name] = id; !found {
					unknown = append(unknown, *name)
				}
			}
			*name = ids[*name]
		}
	}
	return unknown, s.usage.Learn(ctx, resolved...)
}

func (s *Toolbox) forget(_ context.Context, r ForgetRequest) (usage.Forgotten, error) {
	if r.Name == "" && !r.Before.IsZero() {
		return s.usage.Forget(func(_ []string, last int64) bool { return last < r.Before.Unix() })
	}
	if r.Name == "" && r.All {
		return s.usage.Forget(func([]string, int64) bool { return true })
	}
	id, known := r.Name, false
	err := s.usage.Read(func(g *graphrank.Graph) {
		known = g.Has(id)
	})
	if err != nil {
		return usage.Forgotten{}, err
	}
	if !known {
		if id, _, err = s.resolve(id); err != nil {
			return usage.Forgotten{}, err
		}
	}
	return s.usage.Forget(func(nodes []string, _ int64) bool { return slices.Contains(nodes, id) })
}

// changes returns the edges changed since a generation, or all edges.
func (s *Toolbox) changes(_ context.Context, generation uint64) (GraphChanges, error) {
	since, ok, err := s.usage.Since(generation)
	if err != nil {
		return GraphChanges{}, err
	}
	c := GraphChanges{Generation: since.Generation, Edges: since.Edges}
	if ok && generation > 0 {
		return c, nil
	}
	c.Whole, c.Edges = true, nil
	err = s.usage.Read(func(g *graphrank.Graph) {
		c.Edges = slices.Collect(g.Edges())
	})
	return c, err
}

// check checks a plan, and adds the examples of the tools whose arguments are wrong.
func (s *Toolbox) check(ctx context.Context, p plancheck.Plan, progress func(job.Progress)) (*plancheck.Report, error) {
	x, err := s.Index(ctx, progress)
	if err != nil {
		return nil, err
	}
	r, err := plancheck.Check(ctx, x, s.catalog.Lookup, p)
	if err != nil {
		return nil, err
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Input != "" {
			if f.Example, err = s.usage.Example(ctx, f.Tool); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func (s *Toolbox) prepare(ctx context.Context, wait time.Duration, progress func(job.Progress)) (*Prepared, error) {
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
