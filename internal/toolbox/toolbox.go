// Package toolbox opens the tools of a folder: the catalogue, the usage graph, and an index
// derived from them. It does not rank tools: see toolsearch.
//
// One process owns the files of a toolbox, and a Toolbox of another process sends its calls
// to the owner. The catalogue and the usage graph are in two files, or with Options.Postgres
// in a database that servers share. The lock of the toolbox is not that of the index of the
// documents, so opening a toolbox does not open that index.
//
// The room imports the stores, graphrank and the rooms below them. catalog reads and keeps
// the definitions of tools, usage what was used together, records the store of both;
// toolsearch finds tools and suggest plans with them. Start with Open.
package toolbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/home"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
	"cairn/internal/toolbox/usage"
	"cairn/models"
)

// Options configures Open. Zero fields select the defaults.
type Options struct {
	// Root is the folder of the workspace.
	Root string
	// HalfLife is the half-life of counts; 0 means usage.DefaultHalfLife, negative no decay.
	HalfLife time.Duration
	// Postgres is the address of a database that servers share; "" means files. Space is
	// the name of the records in the database.
	Postgres, Space string
	// Description and Model define the embedding model. Without them, searches use only
	// keywords. Model is called before the first vector is made.
	Description models.Description
	Model       func() (models.Embedder, error)
	// AnyModel accepts an owner with another model.
	AnyModel bool
	// Takeover makes this process the owner soon after another owner ends. It is for
	// processes that run for a long time.
	Takeover bool
	// Command is the name of this process in messages to others, such as "cairn tools".
	Command string
	// Logger receives errors of work in the background; nil discards them.
	Logger *slog.Logger

	minStored int // 0 is minStored
}

// Toolbox runs operations in the owner process of a folder's tools, which may be this
// process. It is safe for concurrent use.
type Toolbox struct {
	o      Options
	folder *owner.Folder
	warm   *job.Job[struct{}] // nil unless Warm was called

	mu    sync.RWMutex // guards graph
	graph copiedGraph

	local func() *service // the newest service of this process, for tests
}

// lockFile and socketName are the names of the lock and the socket of the owner.
const (
	lockFile   = "tools.lock"
	socketName = "tools.sock"
)

// Open opens the toolbox of a folder.
func Open(ctx context.Context, o Options) (*Toolbox, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Toolbox{o: o}
	place, err := home.Of(o.Root)
	if err != nil {
		return nil, err
	}
	var newest *service
	t.local = func() *service { return newest }
	t.folder, err = owner.Open(ctx, owner.Options{
		Dir: place.Index, Make: place.Make, Lock: lockFile, Socket: socketName,
		Takeover: o.Takeover, Command: o.Command, Identity: map[string]string{"model": o.Description.ID}, Accept: t.accept, Errors: wireErrors, Logger: o.Logger,
		Serve: func(s *owner.Server) (owner.Service, error) {
			newest = newService(o, place)
			newest.register(s)
			return newest, nil
		},
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// ModelError reports that the owner has another model.
type ModelError struct {
	Holder     owner.Holder
	Have, Want string
}

func (e *ModelError) Error() string {
	return fmt.Sprintf("process %d (%s) searches the tools with the model %s, not %s: use the same --model, or end it with `kill %[1]d`", e.Holder.PID, e.Holder.Command, e.Have, e.Want)
}

func (t *Toolbox) accept(h owner.Holder, identity map[string]string) error {
	if want := t.o.Description.ID; !t.o.AnyModel && want != "" && identity["model"] != want {
		return &ModelError{h, identity["model"], want}
	}
	return nil
}

// wireErrors are the errors that keep their type when the owner sends them to a client.
var wireErrors = owner.Kinds{
	"unknown":      owner.KindOf[*catalog.UnknownError](),
	"ambiguous":    owner.KindOf[*catalog.AmbiguousError](),
	"cycle":        owner.KindOf[*suggest.CycleError](),
	"unknown_tool": owner.KindOf[*suggest.UnknownToolError](),
	"locked":       owner.KindOf[*kv.LockedError](),
	"corrupt":      owner.KindOf[*kv.CorruptError](),
	"format":       owner.KindOf[*usage.FormatError](),
	"no_query":     owner.Sentinel(toolsearch.ErrNoQuery),
}

// Close closes the files, or the connection to the owner. All writes are durable before
// Close.
func (t *Toolbox) Close() error {
	if t.warm != nil {
		t.warm.Stop()
	}
	return t.folder.Close()
}

// Import replaces the tools of a source; see catalog.Import.
func (t *Toolbox) Import(ctx context.Context, source string, tools []catalog.Tool) (catalog.Diff, error) {
	return opImport.Call(ctx, t.folder, importRequest{source, tools}, nil)
}

// RemoveSource removes a source and its tools, and returns their ids.
func (t *Toolbox) RemoveSource(ctx context.Context, source string) ([]string, error) {
	return opRemove.Call(ctx, t.folder, source, nil)
}

// Tools lists the tools of the catalogue, by id.
func (t *Toolbox) Tools(ctx context.Context, r ListRequest) (*List, error) {
	return opList.Call(ctx, t.folder, r, nil)
}

// Stats counts the tools and the usage.
func (t *Toolbox) Stats(ctx context.Context) (*Stats, error) {
	return opStats.Call(ctx, t.folder, struct{}{}, nil)
}

// Lookup returns the tool of an id, or of a name that only one server has; see
// catalog.Lookup.
func (t *Toolbox) Lookup(ctx context.Context, name string) (catalog.Tool, error) {
	return opLookup.Call(ctx, t.folder, name, nil)
}

// Resolve returns the ids of tools. It does not change ids of documents, and names that do
// not identify exactly one tool.
func (t *Toolbox) Resolve(ctx context.Context, names ...string) ([]string, error) {
	if len(names) == 0 {
		return nil, ctx.Err()
	}
	return opResolve.Call(ctx, t.folder, names, nil)
}

// Search finds tools without waiting for missing vectors; see toolsearch. progress may be nil.
func (t *Toolbox) Search(ctx context.Context, q toolsearch.Query, progress func(job.Progress)) (*toolsearch.Answer, error) {
	return opSearch.Call(ctx, t.folder, q, progress)
}

// Suggest plans which tools to use; see suggest. progress may be nil.
func (t *Toolbox) Suggest(ctx context.Context, r suggest.Request, progress func(job.Progress)) (*suggest.Suggestion, error) {
	return opSuggest.Call(ctx, t.folder, r, progress)
}

// Prepare indexes the tools. Then it waits until the vectors of tools and past intents are
// complete, for at most the duration wait. progress may be nil.
func (t *Toolbox) Prepare(ctx context.Context, wait time.Duration, progress func(job.Progress)) (*Prepared, error) {
	return opPrepare.Call(ctx, t.folder, wait, progress)
}

// Warm calls Prepare in the background, so that the first search does not wait for the
// index. It logs an error, which the first search returns, too.
func (t *Toolbox) Warm() {
	t.warm = job.Start(func(ctx context.Context, progress func(job.Progress)) (struct{}, error) {
		p, err := t.Prepare(ctx, maxWait, progress)
		if err == nil && p.Failure != "" {
			err = errors.New(p.Failure)
		}
		if err != nil && ctx.Err() == nil {
			t.o.Logger.Warn("preparing the search of tools", "error", err)
		}
		return struct{}{}, err
	})
}

// maxWait is longer than the preparation of any catalogue.
const maxWait = 24 * time.Hour

// Learn adds traces to the usage, all or none, with ids in place of the names of tools. It
// does not change names that do not identify exactly one tool, and returns them, each once,
// in order of appearance.
func (t *Toolbox) Learn(ctx context.Context, traces ...usage.Trace) (unknown []string, err error) {
	return opLearn.Call(ctx, t.folder, traces, nil)
}

// Observe adds a change of the usage graph.
func (t *Toolbox) Observe(ctx context.Context, c usage.Change) error {
	if c.Empty() {
		return nil
	}
	_, err := opObserve.Call(ctx, t.folder, c, nil)
	return err
}

// Forget removes the selected usage.
func (t *Toolbox) Forget(ctx context.Context, r ForgetRequest) (usage.Forgotten, error) {
	return opForget.Call(ctx, t.folder, r, nil)
}

// copiedGraph is a copy of the owner's graph.
type copiedGraph struct {
	graph      *graphrank.Graph
	generation uint64
}

// Read calls fn with the usage graph. fn must neither change nor retain it. The first Read
// of a client copies the graph from the owner; later ones copy the changes.
func (t *Toolbox) Read(ctx context.Context, fn func(*graphrank.Graph) error) error {
	t.mu.RLock()
	known := t.graph.generation
	t.mu.RUnlock()
	next, err := opGraph.Call(ctx, t.folder, known, nil)
	if err != nil {
		return err
	}
	t.mu.Lock()
	if t.graph.graph == nil || next.Whole && next.Generation != t.graph.generation {
		t.graph.graph = &graphrank.Graph{}
	}
	if next.Generation != t.graph.generation {
		for _, e := range next.Edges {
			t.graph.graph.Set(e)
		}
		t.graph.generation = next.Generation
	}
	t.mu.Unlock()
	t.mu.RLock()
	defer t.mu.RUnlock()
	return fn(t.graph.graph)
}
