// Package store defines the types and interfaces of an index: documents, their sections
// and chunks, and the two derived indexes that find them. The documents are the source
// of truth; the keyword index and the vectors can be rebuilt from them.
//
// Subpackages implement the interfaces: docs (documents, on bbolt), keyword (on Bleve),
// flat (vectors in files) and qdrant (on a server, which qdranttest imitates). Package storetest
// tests the implementations. Package kv is the key-value file below docs and the records of
// other rooms, and ngram makes the filters that name the files which can match a pattern. Package legs searches small sets of texts, such as the tools of a catalogue,
// by words and by vectors.
//
// The room imports text, models and base. Start with the types of this package.
package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"cairn/internal/base/packed"
	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
	"cairn/internal/text/query"
)

// Document is one indexed file. docs.Store.Text returns its text.
type Document struct {
	// Path is the identity: relative to the workspace, slash-separated, clean.
	Path string
	// Title is the title in the front matter, or else the first heading, or else the
	// name of the file.
	Title string
	// Hash is the SHA-256 of the whole file, in hex.
	Hash string
	// Size (bytes) and ModTime (Unix nanoseconds) describe the file when it was read. The
	// indexer does not read a file again if both are unchanged.
	Size, ModTime int64
	// Labels are the fields that a Filter compares.
	Labels Labels
	// Sections are in document order. A non-empty text has at least one.
	Sections []Section
}

// The parts of a document, as package markdown defines them.
type (
	Labels  = markdown.Labels
	Section = markdown.Section
	Chunk   = markdown.Chunk
)

// AppendLabels appends labels to a stored record.
func AppendLabels(b []byte, l *Labels) []byte {
	found := byte(0)
	if l.Found {
		found = 1
	}
	b = packed.AppendList(append(b, found), l.Tags)
	for _, s := range []string{l.Priority, l.Assignee, l.Status} {
		b = packed.AppendText(b, s)
	}
	return b
}

// ReadLabels reads what AppendLabels wrote. They share the memory of the record.
func ReadLabels(r *packed.Reader) Labels {
	return Labels{Found: r.Byte() == 1, Tags: r.List(), Priority: r.Text(), Assignee: r.Text(), Status: r.Text()}
}

// MaxFence is the maximum length of Chunk.Fence.
const MaxFence = markdown.MaxFence

// ChunkID returns the id of chunk n of a section: path, "#", anchor, ".", n. Anchors
// do not contain '#', so SplitChunkID is its inverse for any path.
func ChunkID(path, anchor string, n int) string {
	return path + "#" + anchor + "." + strconv.Itoa(n)
}

// ChunkIDs returns the ids of all chunks in document order.
func (d *Document) ChunkIDs() []string {
	var ids []string
	for i := range d.Sections {
		for n := range d.Sections[i].Chunks {
			ids = append(ids, ChunkID(d.Path, d.Sections[i].Anchor, n))
		}
	}
	return ids
}

// HasTasks reports whether the document is Markdown, and no card, with a section for tasks: one
// whose heading or anchor is "tasks".
func (d *Document) HasTasks() bool {
	return strings.HasSuffix(d.Path, ".md") && KindOf(d.Path) == Docs && slices.ContainsFunc(d.Sections, func(s Section) bool {
		return s.Level > 0 && (s.Anchor == "tasks" || strings.EqualFold(strings.TrimSpace(s.Heading), "tasks"))
	})
}

// SplitChunkID splits a chunk id. ok is false if id is not valid.
func SplitChunkID(id string) (path, anchor string, n int, ok bool) {
	hash := strings.LastIndexByte(id, '#')
	dot := strings.LastIndexByte(id, '.')
	if hash < 0 || dot < hash {
		return "", "", 0, false
	}
	n, err := strconv.Atoi(id[dot+1:])
	if err != nil || n < 0 {
		return "", "", 0, false
	}
	return id[:hash], id[hash+1 : dot], n, true
}

// Filter narrows a search. A document must satisfy all conditions, and have one of Tags.
// Comparisons of labels ignore case. The zero Filter matches every document.
type Filter struct {
	Tags     []string
	Priority string
	Assignee string
	// PathPrefix is a prefix of the path. It need not be a folder: "docs/au" matches
	// docs/auth.md and docs/authors/list.md.
	PathPrefix string
	// Kind selects the files of a kind; "" selects all.
	Kind Kind
	// Paths, if not nil, are the only paths that pass, sorted.
	Paths []string `json:"-"`
}

// Kind distinguishes source code, cards and notes from documents by the name of the file.
type Kind string

// The kinds.
const (
	Docs  Kind = "docs"  // all other files
	Code  Kind = "code"  // source code
	Cards Kind = "cards" // task cards
	Notes Kind = "notes" // what agents and people noted down, with receipts
)

// ParseKind converts a kind's name to a Kind; "all" is "".
func ParseKind(s string) (Kind, error) {
	switch s {
	case "", "all":
		return "", nil
	case string(Docs), string(Code), string(Cards), string(Notes):
		return Kind(s), nil
	}
	return "", fmt.Errorf("unknown kind %q, want {docs,code,cards,notes,all}", s)
}

// KindOf returns the kind of a file.
func KindOf(path string) Kind {
	switch {
	case outline.IsSource(path):
		return Code
	case IsCard(path):
		return Cards
	case IsNote(path):
		return Notes
	}
	return Docs
}

// IsCard reports whether a path is in a folder of cards, that of the workspace or of a
// further root.
func IsCard(path string) bool {
	folder := folderBefore(path, "/cards/")
	return folder == ".cairn" || folder == ".cuedeck"
}

// IsNote reports whether a path is in a folder of notes.
func IsNote(path string) bool { return folderBefore(path, "/notes/") == ".cairn" }

// folderBefore returns the name of the folder above the first one with a name, "" for none.
func folderBefore(path, name string) string {
	at := strings.Index(path, name)
	if at < 0 {
		return ""
	}
	return path[strings.LastIndexByte(path[:at], '/')+1 : at]
}

// Normalised returns f with a PathPrefix in the form of document paths, without a leading
// "./" or "/". The retriever normalises a filter before it uses it.
func (f Filter) Normalised() Filter {
	f.PathPrefix = strings.TrimPrefix(strings.TrimPrefix(f.PathPrefix, "./"), "/")
	return f
}

// IsZero reports whether f matches every document.
func (f Filter) IsZero() bool {
	return len(f.Tags) == 0 && f.Priority == "" && f.Assignee == "" && f.PathPrefix == "" && f.Kind == "" && f.Paths == nil
}

// Lists reports whether Paths lets a path pass.
func (f Filter) Lists(path string) bool {
	_, ok := slices.BinarySearch(f.Paths, path)
	return ok || f.Paths == nil
}

// Match reports whether a document passes the filter. A document without front matter
// passes only filters without labels.
func (f Filter) Match(path string, l Labels) bool {
	if !strings.HasPrefix(path, f.PathPrefix) || f.Kind != "" && f.Kind != KindOf(path) || !f.Lists(path) {
		return false
	}
	if len(f.Tags) == 0 && f.Priority == "" && f.Assignee == "" {
		return true
	}
	if !l.Found ||
		f.Priority != "" && !strings.EqualFold(f.Priority, l.Priority) ||
		f.Assignee != "" && !strings.EqualFold(f.Assignee, l.Assignee) {
		return false
	}
	return len(f.Tags) == 0 || slices.ContainsFunc(f.Tags, func(want string) bool {
		return slices.ContainsFunc(l.Tags, func(have string) bool { return strings.EqualFold(want, have) })
	})
}

// Hit is a chunk found by one leg. Score is the leg's own score, larger is better: BM25
// for the keyword leg, the cosine for the vector leg.
type Hit struct {
	Chunk string
	Score float64
}

// CompareHits orders hits best first, ties by chunk id.
func CompareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
}

// KeywordEntry is a chunk for the keyword index.
type KeywordEntry struct {
	Chunk  string // ChunkID
	Path   string
	Title  string   // the document's title
	Trail  []string // heading trail
	Body   string   // the chunk's text
	Labels Labels
}

// Key identifies the text that a vector represents by the SHA-256 of the encoder's input.
// A store holds vectors of one model only.
type Key = [sha256.Size]byte

// KeyOf returns the key of text.
func KeyOf(text string) Key { return sha256.Sum256([]byte(text)) }

// VectorEntry is a chunk for a vector store.
type VectorEntry struct {
	Chunk  string // ChunkID
	Path   string
	Labels Labels
	Vector []float32 // unit length
	Key    Key       // of the embedded text; the zero Key if unknown
}

// KeywordSearcher finds chunks by their words. It is safe for concurrent use.
type KeywordSearcher interface {
	// Search returns at most k chunks that pass the filter and match at least one term
	// of q, best first, ties by chunk id. A query without terms has no hits.
	Search(ctx context.Context, q query.Query, k int, f Filter) ([]Hit, error)
	// Admits reports, for each chunk, whether it is in the index, contains every phrase
	// of q, and contains nothing that q excludes.
	Admits(ctx context.Context, q query.Query, chunks []string) ([]bool, error)
}

// VectorSearcher finds chunks by their vectors. It is safe for concurrent use.
type VectorSearcher interface {
	// Search returns the k chunks that pass the filter and are nearest to the unit vector
	// query by cosine, best first, ties by chunk id.
	Search(ctx context.Context, query []float32, k int, f Filter) ([]Hit, error)
	// Scores returns the cosine of each chunk with query, in the order of chunks, or NaN
	// for a chunk without a vector.
	Scores(ctx context.Context, query []float32, chunks []string) ([]float64, error)
}

// Index is an index of entries. It is safe for concurrent use by one writer and any number
// of readers.
type Index[Entry any] interface {
	// Update applies one batch: it removes stale chunks and adds or replaces entries.
	// Both may be empty; unknown stale ids are ignored. When Update returns, the batch
	// is durable and searchable.
	Update(ctx context.Context, entries []Entry, stale []string) error
	// Count returns the number of chunks.
	Count() (int, error)
	// Position increases with every Update and is durable with it, so that the caller
	// recognises older files. An index without files may return 0.
	Position() uint64
	Close() error
}

// Keyword is the keyword index.
type Keyword interface {
	KeywordSearcher
	Index[KeywordEntry]
}

// Vectors is a vector store. If a vector of an Update has another dimension, Update fails
// and changes nothing.
type Vectors interface {
	VectorSearcher
	Index[VectorEntry]
}

// NextPosition returns the position after last. It contains the time, so that files made
// again have a higher position than those that they replace.
func NextPosition(last uint64) uint64 { return max(last+1, uint64(time.Now().UnixNano())) }

// LegSearcher searches the words and the vectors of chunks together.
type LegSearcher interface {
	// SearchLegs returns the results of KeywordSearcher.Search and VectorSearcher.Search,
	// and VectorSearcher.Scores of the keyword hits.
	SearchLegs(ctx context.Context, q LegsQuery) (LegHits, error)
}

// LegsQuery is a query for both legs of a search.
type LegsQuery struct {
	// Query is as in Keyword.Search. Its phrases and exclusions also apply to the
	// vector leg.
	Query query.Query
	// Vector is the unit vector of the query. If it is nil, Nearest is 0 and Cosines is nil.
	Vector []float32
	// Words and Nearest are the largest numbers of hits of the keyword and the vector leg.
	Words, Nearest int
	Filter         Filter
	// Symbol, if not empty, is the name of a symbol. Its definitions are among the hits of
	// the vector leg, whatever their rank.
	Symbol string
}

// LegHits holds the hits of both legs, each best first.
type LegHits struct {
	Keyword, Nearest []Hit
	// Cosines holds the cosines of the keyword hits, NaN for a chunk without a vector.
	Cosines []float64
}

// Fold replaces each rune of a label by the smallest rune of its case orbit. Two labels
// have the same Fold if strings.EqualFold reports them as equal. Indexes store folded
// labels, so that they match as in Filter.Match.
func Fold(label string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, label)
}

// FoldAll returns the folded labels, sorted and without repetitions.
func FoldAll(labels ...string) []string {
	folded := make([]string, len(labels))
	for i, l := range labels {
		folded[i] = Fold(l)
	}
	slices.Sort(folded)
	return slices.Compact(folded)
}
