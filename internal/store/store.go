// Package store defines the contract between an index and its users: documents,
// their sections and chunks, and the two derived indexes that find them. It does
// not implement them. The documents are the truth; the keyword index and the
// vectors can be rebuilt from them.
//
// Its sub-packages hold the implementations: docs (documents, on bbolt), keyword
// (on Bleve) and flat (exact vectors). storetest is the suite
// every vector store passes.
package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/code"
	"cairn/internal/query"
)

// Document is one indexed file. docs.Store.Text returns its text.
type Document struct {
	// Path is the identity: relative to the workspace, slash-separated, clean.
	Path string
	// Title is the front matter's title, else the first heading, else the file name.
	Title string
	// Hash is the SHA-256 of the whole file, in hex.
	Hash string
	// Size in bytes and ModTime in Unix nanoseconds when it was read; the indexer
	// does not read a file again while both are unchanged.
	Size, ModTime int64
	// Labels are the fields that a Filter compares.
	Labels Labels
	// Sections in document order. Never empty for a non-empty text.
	Sections []Section
}

// Labels are the front-matter fields that a Filter compares. Found is whether the
// file has valid front matter; without it no label filter matches.
type Labels struct {
	Found    bool
	Tags     []string
	Priority string
	Assignee string
	Status   string
}

// Equal reports whether the labels are the same.
func (l Labels) Equal(o Labels) bool {
	return l.Found == o.Found && l.Priority == o.Priority && l.Assignee == o.Assignee && l.Status == o.Status && slices.Equal(l.Tags, o.Tags)
}

// Section is a heading with the text below it. It has two extents: its own text
// ends where the next heading of any level begins, the whole ends before the
// next heading of the same or a higher level. Offsets are bytes into the file,
// half-open; lines count from 1, both ends included.
type Section struct {
	// Level is 1 to 6, or 0 for text before the first heading.
	Level int
	// Heading is the heading's plain text; empty at level 0.
	Heading string
	// Anchor is the GitHub slug, unique in the document; empty only at level 0.
	Anchor string
	// Trail is the headings from the outermost down to this one, included.
	Trail []string
	// Parent is the index of the enclosing section in Document.Sections, -1 at the top.
	Parent int
	// Start is where the heading begins, OwnEnd where the next heading of any
	// level begins, End where the section with all below it ends.
	Start, OwnEnd, End int
	// StartLine is the heading's line; OwnEndLine and EndLine are the last
	// lines that are not blank before OwnEnd and End.
	StartLine, OwnEndLine, EndLine int
	// Hash is the SHA-256, in hex, of text[Start:End] with blank lines at both
	// ends removed: what read_doc returns for the anchor.
	Hash string
	// Fingerprint is a 64-bit simhash of the own text's words: near-duplicates differ in few bits.
	Fingerprint uint64
	// Chunks are the pieces of the own text that are indexed, in order.
	Chunks []Chunk
}

// Chunk is a piece of a section's own text, short enough for the encoder together
// with its heading trail.
type Chunk struct {
	// Start and End are byte offsets into the file.
	Start, End int
	// Fence is the mark of the fenced code block that Start is inside, such as "```";
	// "" outside of one.
	Fence string `json:",omitempty"`
}

// MaxFence is the most characters of a Chunk.Fence.
const MaxFence = 64

// ChunkID names chunk n of a section: path, "#", anchor, ".", n. Anchors hold
// neither '#' nor '.', so SplitChunkID is its inverse for any path.
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

// SplitChunkID takes a chunk id apart. ok is false when id is not one.
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

// Filter narrows a search. The zero Filter matches every document. All conditions
// must hold, and any one of Tags. All comparisons but the path's ignore case.
type Filter struct {
	Tags     []string
	Priority string
	Assignee string
	// PathPrefix is compared letter by letter, so it is a folder only with a slash at
	// its end: "docs/" or, for docs/auth.md and docs/authors/, "docs/au".
	PathPrefix string
	// Kind is Code for source code, Docs for all other files, and "" for both.
	Kind Kind
}

// Kind tells source code from documents, by the name of the file.
type Kind string

// The kinds.
const (
	Docs Kind = "docs"
	Code Kind = "code"
)

// ParseKind turns a word into a Kind; "all" is "".
func ParseKind(s string) (Kind, error) {
	switch s {
	case "", "all":
		return "", nil
	case string(Docs), string(Code):
		return Kind(s), nil
	}
	return "", fmt.Errorf("unknown kind %q, want {docs,code,all}", s)
}

// KindOf returns the kind of a file.
func KindOf(path string) Kind {
	if code.IsSource(path) {
		return Code
	}
	return Docs
}

// Normalised returns f with a PathPrefix as paths of documents begin, without "./" or
// "/". The retriever calls it once, before every other use of a filter.
func (f Filter) Normalised() Filter {
	f.PathPrefix = strings.TrimPrefix(strings.TrimPrefix(f.PathPrefix, "./"), "/")
	return f
}

// IsZero reports whether f matches every document.
func (f Filter) IsZero() bool {
	return len(f.Tags) == 0 && f.Priority == "" && f.Assignee == "" && f.PathPrefix == "" && f.Kind == ""
}

// Match reports whether a document passes the filter. A document without front
// matter passes only a filter without labels.
func (f Filter) Match(path string, l Labels) bool {
	if !strings.HasPrefix(path, f.PathPrefix) || f.Kind != "" && f.Kind != KindOf(path) {
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
	if len(f.Tags) == 0 {
		return true
	}
	for _, want := range f.Tags {
		for _, have := range l.Tags {
			if strings.EqualFold(want, have) {
				return true
			}
		}
	}
	return false
}

// Hit is a chunk found by one leg. Score is larger for better, in the leg's own
// unit: BM25 for the keyword leg, cosine for the vector leg.
type Hit struct {
	Chunk string
	Score float64
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

// Key identifies the text that a vector was made from: the SHA-256 of what the
// encoder was given. A store holds vectors of one model only.
type Key = [sha256.Size]byte

// KeyOf returns the key of text.
func KeyOf(text string) Key { return sha256.Sum256([]byte(text)) }

// VectorEntry is a chunk for a vector store.
type VectorEntry struct {
	Chunk  string // ChunkID
	Path   string
	Labels Labels
	Vector []float32 // unit length
	Key    Key       // of the embedded text; the zero Key if it is unknown
}

// KeywordSearcher finds chunks by their words. Safe for concurrent use.
type KeywordSearcher interface {
	// Search returns at most k chunks that pass the filter and match at least
	// one term, best first, ties by chunk id. No terms, no hits.
	Search(ctx context.Context, q query.Query, k int, f Filter) ([]Hit, error)
	// Admits reports, for each chunk, whether the index holds it with every
	// phrase of q and nothing that q excludes.
	Admits(ctx context.Context, q query.Query, chunks []string) ([]bool, error)
}

// Keyword is the keyword index. Safe for concurrent use: one writer, many readers.
type Keyword interface {
	KeywordSearcher
	// Update applies one batch: it removes stale chunks and adds or replaces
	// entries. Both may be empty. It ignores unknown stale ids. When it returns,
	// the batch is durable and searches see it.
	Update(ctx context.Context, entries []KeywordEntry, stale []string) error
	// Count returns the number of chunks.
	Count() (int, error)
	Close() error
}

// VectorSearcher finds chunks by their vectors. Safe for concurrent use.
type VectorSearcher interface {
	// Search returns the k chunks nearest to the unit vector query that pass
	// the filter, by cosine, best first, ties by chunk id. An empty store
	// gives no hits.
	Search(ctx context.Context, query []float32, k int, f Filter) ([]Hit, error)
	// Scores returns the cosine of each chunk with query, in the order of
	// chunks; NaN for a chunk that has no vector.
	Scores(ctx context.Context, query []float32, chunks []string) ([]float64, error)
}

// Vectors is a vector store. Safe for concurrent use: one writer, many readers.
type Vectors interface {
	VectorSearcher
	// Update applies one batch: it removes stale chunks and adds or replaces
	// entries. It ignores unknown stale ids. When it returns, the batch is durable
	// and searches see it. It fails, and changes nothing, for a vector of another
	// dimension.
	Update(ctx context.Context, entries []VectorEntry, stale []string) error
	// Count returns the number of vectors.
	Count() (int, error)
	Close() error
}
