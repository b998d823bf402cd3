// Package toolbox keeps the tools of a folder in the process that owns its files: the
// catalogue, the usage graph, and an index derived from them. It does not rank tools: see
// toolsearch.
//
// Package owner decides which process that is. The other processes call the operations,
// such as SearchOp. The catalogue and the usage graph are in two files, or with
// Options.Postgres in a database that servers share. The first operation opens the files,
// so an owner that uses no tools opens none of them.
//
// The room imports the stores, graphrank and the rooms below them. catalog reads and keeps
// the definitions of tools, usage what was used together, records the store of both;
// toolsearch finds tools and suggest plans with them; plancheck checks plans and planrun runs
// them. Start with New.
package toolbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/store/kv"
	"cairn/internal/text/secret"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
	"cairn/models"
)

// Options configures New. Zero fields select the defaults.
type Options struct {
	// Place has the directories of the files. The zero Place keeps everything in memory.
	Place home.Place
	// HalfLife is the half-life of counts; 0 means usage.DefaultHalfLife, negative no decay.
	HalfLife time.Duration
	// Postgres is the address of a database that servers share; "" means files. Space is
	// the name of the records in the database.
	Postgres, Space string
	// Description and Model define the embedding model. Without them, searches use only
	// keywords. Model is called before the first vector is made.
	Description models.Description
	Model       func() (models.Embedder, error)
	// Reader opens the model that reads requests. Nil means none.
	Reader func() (models.Reader, error)
	// ReadOnly reads the files of an owner that does not answer, and marks answers as
	// degraded. Only the operations of ServeReads may be called.
	ReadOnly bool
	// Masks mask secrets in examples of calls, see usage.Options.
	Masks *secret.Masks
	// Logger receives errors of work in the background; nil discards them.
	Logger *slog.Logger

	minStored int // 0 is minStored
}

// ErrorKinds lists the errors of the operations that clients receive with their type.
var ErrorKinds = owner.Kinds{
	"unknown":      owner.KindOf[*catalog.UnknownError](),
	"ambiguous":    owner.KindOf[*catalog.AmbiguousError](),
	"cycle":        owner.KindOf[*suggest.CycleError](),
	"unknown_tool": owner.KindOf[*suggest.UnknownToolError](),
	"corrupt":      owner.KindOf[*kv.CorruptError](),
	"no_query":     owner.Sentinel(toolsearch.ErrNoQuery),
}

// Graph is a copy of the owner's usage graph in another part of the program. The zero Graph
// is empty. It is safe for concurrent use.
type Graph struct {
	mu         sync.RWMutex
	graph      *graphrank.Graph
	generation uint64
}

// Read calls fn with the graph of folder, after copying the changes since the last Read
// from the owner. fn must neither change nor retain the graph.
func (c *Graph) Read(ctx context.Context, folder *owner.Folder, fn func(*graphrank.Graph)) error {
	c.mu.RLock()
	known := c.generation
	c.mu.RUnlock()
	next, err := GraphOp.Call(ctx, folder, known, nil)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.graph == nil || next.Whole && next.Generation != c.generation {
		c.graph = &graphrank.Graph{}
	}
	if next.Generation != c.generation {
		for _, e := range next.Edges {
			c.graph.Set(e)
		}
		c.generation = next.Generation
	}
	c.mu.Unlock()
	c.mu.RLock()
	defer c.mu.RUnlock()
	fn(c.graph)
	return nil
}
