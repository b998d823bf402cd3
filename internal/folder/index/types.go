package index

import (
	"errors"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/retriever"
)

// ExplainRequest is a request for the trace of a search.
type ExplainRequest struct {
	Query retriever.Query `json:"query"`
	// Candidates is the number of entries to return of each list, see Retriever.Explain.
	Candidates int `json:"candidates,omitempty"`
}

// IndexRequest is a request for a run of the indexer.
type IndexRequest struct {
	// Rebuild removes the index first.
	Rebuild bool `json:"rebuild,omitempty"`
	// NoEmbed leaves the vectors pending.
	NoEmbed bool `json:"no_embed,omitempty"`
	// Join waits for a run in progress instead of failing with a *owner.LockError.
	Join bool `json:"join,omitempty"`
}

// IndexReport counts what a completed run did.
type IndexReport struct {
	Files     int     `json:"files"`   // documents in the index now
	Added     int     `json:"added"`   // new or changed documents
	Removed   int     `json:"removed"` // removed documents
	Unchanged int     `json:"unchanged"`
	Sections  int     `json:"sections"`
	Chunks    int     `json:"chunks"`
	Embedded  int     `json:"embedded"` // texts that the model embedded, without cached ones
	Cached    int     `json:"cached"`   // vectors taken from the cache
	Pending   int     `json:"pending"`  // chunks without a vector
	Skipped   int     `json:"skipped"`  // files not indexed, see Status.Skipped
	Seconds   float64 `json:"seconds"`
}

// StatusRequest is a request for the state of a workspace.
type StatusRequest struct {
	// Selection is the folder as the caller has selected it, which may be by another rule
	// than the owner; the zero value means the selection of the owner.
	Selection config.Selection `json:"selection"`
}

// Status is the state of a workspace.
type Status struct {
	retriever.IndexState
	// Model is the ID of the model whose vectors the index holds or will hold.
	Model string `json:"model"`
	// Kernels is present if the vectors were made with another kernel than that of this
	// process. Scores then differ by up to .004.
	Kernels   *Kernels         `json:"kernels,omitempty"`
	Workspace config.Selection `json:"workspace"`
	// Kinds counts the files by their format; absent if all have the same.
	Kinds map[string]int `json:"kinds,omitempty"`
	// Tasks counts the documents with a section for tasks.
	Tasks int `json:"documents_with_tasks,omitempty"`
	// Notes counts the notes, Outdated those whose cited lines changed, as the watcher last found
	// them. OutdatedNotes has the paths of the first ones.
	Notes         int      `json:"notes,omitempty"`
	Outdated      int      `json:"outdated,omitempty"`
	OutdatedNotes []string `json:"outdated_notes,omitempty"`
	// NotEnglish is the percentage of the text that is not English, estimated from a
	// sample. It is 0 unless it is most of the text and Model supports English only.
	NotEnglish int `json:"not_english_percent,omitempty"`
	// Skipped counts the files that are not indexed, by reason.
	Skipped map[string]int `json:"skipped"`
	// Progress is present while a run is in progress.
	Progress *Progress `json:"progress,omitempty"`
	// Owner is the process that has the index open for writing, if any.
	Owner *owner.Holder `json:"owner,omitempty"`
	// Watching is how the owner finds changed files: "events", or "polling" and the
	// reason; absent if it does not watch.
	Watching string `json:"watching,omitempty"`
	// Store is the address of the store that holds the index, if it is not the folder's own.
	Store string `json:"store,omitempty"`
	// KeywordSince and VectorsSince are the times of the oldest change that keyword
	// search, or search by meaning, does not find yet; zero if there is none.
	KeywordSince time.Time `json:"keyword_behind_since,omitzero"`
	VectorsSince time.Time `json:"vectors_behind_since,omitzero"`
	// Degraded names the parts that are missing, such as KeywordsLacking; Problem
	// explains them.
	Degraded []string `json:"degraded,omitempty"`
	// Problem is the error of the last run in the background.
	Problem string `json:"problem,omitempty"`
	// Warnings lists configuration without effect, and recovered files.
	Warnings []string `json:"warnings,omitempty"`
}

// Kernels names the kernel of the process that created the index, and that of this process.
type Kernels struct {
	Vectors string `json:"vectors"`
	Process string `json:"process"`
}

// SkippedFile is a file or folder that is not indexed, or a file indexed in part.
type SkippedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"` // such as the text of a walk.Reason
}

// KeywordsLacking is the value in Answer.Degraded and Status.Degraded for a keyword index
// that is damaged and not rebuilt yet. Search by meaning answers alone then.
const KeywordsLacking = "keywords"

// DocumentsLacking is the value in Answer.Degraded and Status.Degraded for documents that
// are damaged and not indexed again yet. Searches find nothing then.
const DocumentsLacking = "documents"

// OwnerLacking is the value in the field Degraded of answers that this process gives itself
// because the owner of the folder does not answer: files that changed since are not indexed.
const OwnerLacking = "owner"

// ErrNoIndex is returned by operations that need an index if there is none.
var ErrNoIndex = errors.New("this folder has no index yet; run `cairn index`, or call the index tool")

// ErrReadOnly is returned by Index and Watch of an Index without files.
var ErrReadOnly = errors.New("this process only answers from the store; run `cairn index --store ...` where the files are")

// RebuildError reports an index that must be rebuilt: it has another format, was made with
// another model, or is damaged.
type RebuildError struct {
	Reason string

	part string // the part that is damaged or of an earlier format
	why  error  // the error of opening it
}

func (e *RebuildError) Error() string {
	return e.Reason + "; rebuild it with `cairn index --rebuild`"
}
