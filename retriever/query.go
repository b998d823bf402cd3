package retriever

import (
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/invisible"
	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// Mode chooses the legs a search runs on.
type Mode string

// The modes. Hybrid blends both legs and is the default.
const (
	Hybrid   Mode = "hybrid"
	Keyword  Mode = "keyword"
	Semantic Mode = "semantic"
)

// ParseMode turns a word into a Mode; "" is Hybrid.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return Hybrid, nil
	case Hybrid, Keyword, Semantic:
		return m, nil
	}
	return "", invalid("mode", "unknown mode %q, want {hybrid,keyword,semantic}", s)
}

// Query is one search.
type Query struct {
	// Text has 1 to MaxQuery runes after trimming. Package query has its syntax. More than
	// 200 runes are pasted text without operators; of more than 1,000 the most informative
	// pieces are searched for.
	Text string `json:"query"`
	// Mode is Hybrid when empty.
	Mode Mode `json:"mode,omitempty"`
	// Limit is the most results to return, 1 to 50; 0 means 5, and with MaxTokens as
	// many as have room.
	Limit int `json:"limit,omitempty"`
	// Cursor continues an earlier answer (Answer.NextCursor).
	Cursor string `json:"cursor,omitempty"`
	// Filter narrows the search before ranking.
	Filter store.Filter `json:"filters,omitzero"`
	// Context are documents (their paths) and tools (their ids) in use, at most
	// MaxContext: documents that were used together with them may rank higher.
	Context []string `json:"context,omitempty"`
	// MaxTokens, when not 0, asks for the text of the hits, at most that many tokens
	// (tiktoken) of it and at least MinBudget. More than MaxBudget counts as MaxBudget,
	// which no answer exceeds as a whole.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Explain adds every component of every score.
	Explain bool `json:"explain,omitempty"`
}

// The bounds of a Query.
const (
	DefaultLimit = 5
	MaxLimit     = 50
	MaxQuery     = 4000 // runes
	MinBudget    = 200  // tokens: what an answer with one short hit takes
	MaxBudget    = 25_000
	MaxContext   = 50
)

// check returns q with its defaults filled in, or an *InvalidError.
func (q Query) check(maxRunes int) (Query, error) {
	q.Text = strings.TrimSpace(q.Text)
	if n := utf8.RuneCountInString(q.Text); n < 1 || n > maxRunes {
		return q, invalid("query", "%d characters, want 1 to %d", n, maxRunes)
	}
	if !utf8.ValidString(q.Text) {
		return q, invalid("query", "it is not valid UTF-8")
	}
	var err error
	if q.Mode, err = ParseMode(string(q.Mode)); err != nil {
		return q, err
	}
	switch {
	case q.Limit == 0 && q.MaxTokens > 0:
		q.Limit = budgetLimit(q.MaxTokens)
	case q.Limit == 0:
		q.Limit = DefaultLimit
	case q.Limit < 1 || q.Limit > MaxLimit:
		return q, invalid("limit", "%d, want 1 to %d", q.Limit, MaxLimit)
	}
	if len(q.Context) > MaxContext {
		return q, invalid("context", "%d, want at most %d", len(q.Context), MaxContext)
	}
	if q.MaxTokens != 0 && q.MaxTokens < MinBudget {
		return q, invalid("max_tokens", "%d, want at least %d", q.MaxTokens, MinBudget)
	}
	q.MaxTokens = min(q.MaxTokens, MaxBudget)
	q.Filter = q.Filter.Normalised()
	if q.Filter.Kind, err = store.ParseKind(string(q.Filter.Kind)); err != nil {
		return q, invalid("kind", "%v", err)
	}
	return q, nil
}

// Lines is a range of lines, counted from 1, both ends included.
type Lines struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Result is a document found, represented by its best section. LineRange,
// SectionHash and SectionTokens describe what reading path#anchor returns: the
// section with its subsections. Passage is the part of it that matched.
type Result struct {
	Path          string   `json:"path"`
	Title         string   `json:"title"`
	Headings      []string `json:"headings"` // trail of the section, outermost first
	Anchor        string   `json:"anchor"`
	Anchors       []string `json:"anchors"` // texts of the document's first three headings
	LineRange     Lines    `json:"line_range"`
	Passage       Lines    `json:"passage"`
	Hash          string   `json:"hash"`   // SHA-256 of the file, hex
	Tokens        int      `json:"tokens"` // of the file, bytes/4 rounded down
	SectionHash   string   `json:"section_hash"`
	SectionTokens int      `json:"section_tokens"` // tiktoken
	Score         float64  `json:"score"`          // in [0, 1]
	Snippet       string   `json:"snippet"`
	// Content is text of the section, only within a token budget. Passage has its
	// lines then, Snippet, Anchors and More are empty, and hashes have ShortHash digits.
	Content string `json:"content,omitempty"`
	// Flags are signs that Snippet or Content hides something from people.
	Flags []invisible.Flag `json:"flags,omitempty"`
	// Stale is set when the file on disk is no longer the one indexed.
	Stale bool `json:"stale,omitempty"`
	// More are further sections of the same document that matched, best first.
	More []SectionRef `json:"more,omitempty"`
	// Duplicates are places with nearly the same text, which have no result.
	Duplicates []string `json:"duplicates,omitempty"`
	// Explain is present when the query asked for it.
	Explain *Explanation `json:"explain,omitempty"`

	candidate *candidateText // what Content is chosen from, only within a token budget
}

// SectionRef points at a section of the result's document.
type SectionRef struct {
	Anchor    string  `json:"anchor"`
	Heading   string  `json:"heading"`
	LineRange Lines   `json:"line_range"`
	Score     float64 `json:"score"`
}

// Omitted is a hit whose text did not fit the token budget; Path (with
// "#anchor" or ":from-to") is what read_doc takes.
type Omitted struct {
	Path   string `json:"path"`
	Tokens int    `json:"tokens"`
}

// Spent says how a token budget was spent. Counts are tokens (tiktoken).
type Spent struct {
	Tokens   int `json:"tokens"`   // as asked for
	Text     int `json:"text"`     // of the hits
	Envelope int `json:"envelope"` // of all else in the answer
}

// ShortHash is the number of hexadecimal digits of the hashes within a token budget.
// ReadRequest takes them as the expected hash.
const ShortHash = 12

// IndexState describes the index that an answer was made from.
type IndexState struct {
	// State is "missing" (never indexed), "building" (an indexing run is going
	// on), "partial" (files or vectors are pending without a run) or "ready".
	State    string `json:"state"`
	Files    int    `json:"files"`
	Sections int    `json:"sections"`
	Embedded int    `json:"embedded"` // chunks that have a vector
	Pending  int    `json:"pending"`  // chunks without a vector
	// Unindexed are files that were found and that searches do not see yet.
	Unindexed int    `json:"unindexed,omitempty"`
	BuiltAt   string `json:"built_at,omitempty"`
}

// NewIndexState derives the state of an index from the counts of its document
// store. building is whether an indexing run is going on, and unread how many files
// it has yet to read.
func NewIndexState(m docs.Meta, c docs.Counts, building bool, unread int) IndexState {
	s := IndexState{
		Files: c.Files, Sections: c.Sections, Unindexed: c.Keyword.Files + unread,
		Embedded: max(0, c.Chunks-c.Vectors.Chunks), Pending: c.Vectors.Chunks,
	}
	if !m.BuiltAt.IsZero() {
		s.BuiltAt = m.BuiltAt.UTC().Format(time.RFC3339)
	}
	switch {
	case building:
		s.State = "building"
	case m.Generation == 0 && c.Files == 0:
		s.State = "missing"
	case m.Generation == 0 || c.Keyword.Files > 0 || c.Vectors.Files > 0:
		s.State = "partial"
	default:
		s.State = "ready"
	}
	return s
}

// Answer is the result of a search, the structured content of read_context.
type Answer struct {
	Results    []Result   `json:"results"`
	TotalCount int        `json:"total_count"` // documents that matched
	HasMore    bool       `json:"has_more"`
	NextCursor *string    `json:"next_cursor"`
	Mode       Mode       `json:"mode"`
	Index      IndexState `json:"index"`
	// Degraded names what a full answer lacks: "files" (the first index is not complete),
	// "vectors" (none or not all), "rerank" (the re-ranker had no time for all passages),
	// "stale", and "keywords", which package index adds.
	Degraded []string `json:"degraded"`
	// Reason explains an empty answer: "no_match", "not_indexed", "indexing", "empty_workspace".
	Reason string `json:"reason,omitempty"`
	// Hint names the tool to call next, or says that nothing relevant was found.
	Hint string `json:"hint,omitempty"`
	// Folders say what the folders of the results are for.
	Folders []Folder `json:"folders,omitempty"`
	// Answerable is the estimated probability that the documents have what the query
	// asks for, on the first page of a complete index.
	Answerable *float64 `json:"answerable,omitempty"`
	// Budget says how a token budget was spent.
	Budget *Spent `json:"budget,omitempty"`
	// OmittedCount is the number of hits that have no text within the token budget;
	// Omitted lists the first three.
	OmittedCount int       `json:"omitted_count,omitempty"`
	Omitted      []Omitted `json:"omitted,omitempty"`
	// Searched is what was searched for instead of a query that is too long.
	Searched string `json:"searched,omitempty"`
	// Fuzzy is set when nothing matched the words as typed and near spellings were used.
	Fuzzy bool `json:"fuzzy,omitempty"`
}
