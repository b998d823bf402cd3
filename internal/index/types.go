package index

import (
	"errors"
	"time"

	"cairn/internal/config"
	"cairn/internal/owner"
	"cairn/retriever"
)

// ExplainRequest asks for the trace of a search.
type ExplainRequest struct {
	Query retriever.Query `json:"query"`
	// Candidates is how many of each list to name, see Retriever.Explain.
	Candidates int `json:"candidates,omitempty"`
}

// IndexRequest asks for a run of the indexer.
type IndexRequest struct {
	// Rebuild removes the index first.
	Rebuild bool `json:"rebuild,omitempty"`
	// NoEmbed leaves the vectors pending.
	NoEmbed bool `json:"no_embed,omitempty"`
	// Join waits for a run in progress instead of failing with a *owner.LockError.
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
	Embedded  int     `json:"embedded"` // texts that the model embedded, without cached ones
	Cached    int     `json:"cached"`   // vectors taken from the cache
	Pending   int     `json:"pending"`  // chunks left without a vector
	Skipped   int     `json:"skipped"`  // files not indexed, see Status.Skipped
	Seconds   float64 `json:"seconds"`
}

// Status is the state of a workspace.
type Status struct {
	retriever.IndexState
	// Model is the ID of the model whose vectors the index holds or will hold.
	Model     string           `json:"model"`
	Workspace config.Selection `json:"workspace"`
	// Kinds counts the files by their format; absent when all have one.
	Kinds map[string]int `json:"kinds,omitempty"`
	// NotEnglish is how many percent of the text, by a sample, are in another language,
	// when that is most of it and Model knows English alone.
	NotEnglish int `json:"not_english_percent,omitempty"`
	// Skipped counts the files that are not indexed, by reason.
	Skipped map[string]int `json:"skipped"`
	// Progress is present while a run is in progress.
	Progress *Progress `json:"progress,omitempty"`
	// Owner is the process that has the index open for writing, if any.
	Owner *owner.Holder `json:"owner,omitempty"`
	// Watching is how the owner learns of changed files: "events", or "polling"
	// and the reason; absent when it does not watch.
	Watching string `json:"watching,omitempty"`
	// Store is the address of the store that holds the index, if it is not the folder's own.
	Store string `json:"store,omitempty"`
	// KeywordSince and VectorsSince are when the oldest change was noticed that
	// keyword search, or search by meaning, does not see yet; zero for none.
	KeywordSince time.Time `json:"keyword_behind_since,omitzero"`
	VectorsSince time.Time `json:"vectors_behind_since,omitzero"`
	// Degraded names the parts that are missing, such as KeywordsLacking; Problem
	// explains them.
	Degraded []string `json:"degraded,omitempty"`
	// Problem is why the last run in the background failed.
	Problem string `json:"problem,omitempty"`
	// Warnings name configuration without effect, and records that were recovered.
	Warnings []string `json:"warnings,omitempty"`
}

// SkippedFile is a file or folder that is not indexed, or a file indexed in part.
type SkippedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"` // as walk.Reason says it
}

// KeywordsLacking is what Answer.Degraded and Status.Degraded call a keyword index
// that is damaged and not complete again. Answers are found by meaning then.
const KeywordsLacking = "keywords"

// DocumentsLacking is what Answer.Degraded and Status.Degraded call documents that are
// damaged and not indexed again. There are no answers then.
const DocumentsLacking = "documents"

// ErrNoIndex is returned where an index is needed and there is none.
var ErrNoIndex = errors.New("this folder has no index yet; run `cairn index`, or call the index tool")

// ErrReadOnly is returned by Index and Watch of an Index without files.
var ErrReadOnly = errors.New("this process only answers from the store; run `cairn index --store ...` where the files are")

// RebuildError is returned for an index that this binary cannot use as it is:
// it was made in another format or with another model, or it is damaged.
type RebuildError struct {
	Reason string

	part string // that is damaged, or of an earlier format
}

func (e *RebuildError) Error() string {
	return e.Reason + "; rebuild it with `cairn index --rebuild`"
}
