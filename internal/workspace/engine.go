package workspace

import (
	"context"
	"errors"
	"time"

	"cairn/retriever"
)

// engine is what a workspace can do, either with its own stores (local), by
// asking the owner (remote), beside one that does not answer (beside), or without
// an index (missing). Every method may be
// called concurrently, but for close.
type engine interface {
	Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error)
	Explain(ctx context.Context, r ExplainRequest) (*retriever.Trace, error)
	Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error)
	ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error)
	Index(ctx context.Context, r IndexRequest, progress func(Progress)) (*IndexReport, error)
	Status(ctx context.Context) (*Status, error)
	Documents(ctx context.Context, r DocumentsRequest) (*Documents, error)
	Watch(ctx context.Context, fn func(WatchEvent)) error
	close() error
}

// ExplainRequest asks for the whole way of a search.
type ExplainRequest struct {
	Query retriever.Query `json:"query"`
	// Candidates is how many of each list to name, see Retriever.Explain.
	Candidates int `json:"candidates,omitempty"`
}

// IndexRequest asks for a run of the indexer.
type IndexRequest struct {
	// Rebuild throws the index away first.
	Rebuild bool `json:"rebuild,omitempty"`
	// NoEmbed leaves the vectors pending.
	NoEmbed bool `json:"no_embed,omitempty"`
	// Join waits for a run that is already going on, instead of failing with a *LockError.
	Join bool `json:"join,omitempty"`
}

// IndexReport is what a completed run did.
type IndexReport struct {
	Files     int     `json:"files"`   // documents in the index now
	Added     int     `json:"added"`   // new or changed documents
	Removed   int     `json:"removed"` // documents that left
	Unchanged int     `json:"unchanged"`
	Sections  int     `json:"sections"`
	Chunks    int     `json:"chunks"`
	Embedded  int     `json:"embedded"` // texts the model ran over; cached ones are not among them
	Cached    int     `json:"cached"`   // vectors taken from the cache
	Pending   int     `json:"pending"`  // chunks left without a vector
	Skipped   int     `json:"skipped"`  // files not indexed, see Status.Skipped
	Seconds   float64 `json:"seconds"`
}

// Status is the state of a workspace.
type Status struct {
	retriever.IndexState
	// Model is the ID of the model whose vectors the index holds or will hold.
	Model     string    `json:"model"`
	Workspace Selection `json:"workspace"`
	// Skipped counts the files that are not indexed, by reason.
	Skipped map[string]int `json:"skipped"`
	// Progress is present while a run is going on.
	Progress *Progress `json:"progress,omitempty"`
	// Owner is the process that holds the index open for writing, if any.
	Owner *Holder `json:"owner,omitempty"`
	// Watching is how the owner learns of changed files: "events", or "polling"
	// and why; absent when it does not.
	Watching string `json:"watching,omitempty"`
	// Store is the address of the store that holds the index, if it is not the folder's own.
	Store string `json:"store,omitempty"`
	// KeywordSince and VectorsSince are when the oldest change was noticed that
	// keyword search, or search by meaning, does not see yet; zero for none.
	KeywordSince time.Time `json:"keyword_behind_since,omitzero"`
	VectorsSince time.Time `json:"vectors_behind_since,omitzero"`
	// Degraded is OwnerLacking when the owner does not answer; Problem says more.
	Degraded []string `json:"degraded,omitempty"`
	// Problem is why the last run in the background failed.
	Problem string `json:"problem,omitempty"`
	// Warnings speak of configuration without effect.
	Warnings []string `json:"warnings,omitempty"`
}

// ErrNoIndex is returned where an index is needed and there is none.
var ErrNoIndex = errors.New("this folder has no index yet; run `cairn index`, or call the index tool")

// RebuildError is returned for an index that this binary cannot use as it is:
// it was made in another format or with another model, or it is damaged.
type RebuildError struct{ Reason string }

func (e *RebuildError) Error() string {
	return e.Reason + "; rebuild it with `cairn index --rebuild`"
}

// missing is a folder without an index. It creates nothing.
type missing struct{ w *Workspace }

func (missing) Search(_ context.Context, q retriever.Query) (*retriever.Answer, error) {
	return &retriever.Answer{
		Results: []retriever.Result{}, Mode: q.Mode, Index: retriever.IndexState{State: "missing"}, Degraded: []string{},
		Reason: "not_indexed", Hint: "this folder has no index yet: call the tool index, or run `cairn index`",
	}, nil
}

func (missing) Explain(context.Context, ExplainRequest) (*retriever.Trace, error) {
	return nil, ErrNoIndex
}

func (missing) Read(context.Context, retriever.ReadRequest) (*retriever.Reading, error) {
	return nil, ErrNoIndex
}

func (missing) ReadAll(context.Context, retriever.ReadRequest) (*retriever.Readings, error) {
	return nil, ErrNoIndex
}

func (missing) Index(context.Context, IndexRequest, func(Progress)) (*IndexReport, error) {
	return nil, errReadOnly
}

func (m missing) Status(context.Context) (*Status, error) {
	return m.w.status(retriever.IndexState{State: "missing"}), nil
}

func (missing) close() error { return nil }

// errReadOnly says that the engine cannot write; the workspace then opens one that can.
var errReadOnly = errors.New("opened for reading")

// errGone says that the owner went away before it answered.
var errGone = errors.New("the owner of the folder has gone")

// closeLimit bounds the wait for answers in flight when a workspace is closed.
const closeLimit = 300 * time.Millisecond
