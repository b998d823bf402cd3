package retriever

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/invisible"
)

// Mode selects the legs that a search uses.
type Mode string

// The modes. Hybrid blends both legs and is the default.
const (
	Hybrid   Mode = "hybrid"
	Keyword  Mode = "keyword"
	Semantic Mode = "semantic"
)

// ParseMode converts a mode's name to a Mode; "" is Hybrid.
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
	// Text has 1 to MaxQuery runes after trimming. Package query documents the syntax.
	// A text of more than 200 runes is treated as pasted text without operators. If it
	// has more than 1,000 runes, only its most informative pieces are searched for.
	Text string `json:"query"`
	// Mode is Hybrid if empty.
	Mode Mode `json:"mode,omitempty"`
	// Limit is the maximum number of results, 1 to 50. 0 means 5, or with MaxTokens as
	// many as fit.
	Limit int `json:"limit,omitempty"`
	// Cursor continues an earlier answer (Answer.NextCursor).
	Cursor string `json:"cursor,omitempty"`
	// Filter narrows the search before ranking.
	Filter store.Filter `json:"filters,omitzero"`
	// Context lists the paths of documents and the ids of tools in use, at most
	// MaxContext. Documents that were used together with them may rank higher.
	Context []string `json:"context,omitempty"`
	// MaxTokens, if not 0, requests the text of the hits and bounds it, in tokens
	// (tiktoken). It is at least MinBudget. A larger value than MaxBudget counts as
	// MaxBudget, which also bounds the whole answer.
	MaxTokens int `json:"max_tokens,omitempty"`
	// AsText makes MaxTokens the bound of Answer.Text, and lists the best hits without text
	// among the results. Without MaxTokens the text has at most DefaultTokens tokens, often
	// fewer.
	AsText bool `json:"as_text,omitempty"`
	// Explain adds all components of each score to the answer.
	Explain bool `json:"explain,omitempty"`
	// Paths adds the paths of all documents that matched to the answer.
	Paths bool `json:"paths,omitempty"`
}

// The bounds of a Query.
const (
	DefaultLimit = 5
	MaxLimit     = 50
	MaxQuery     = 4000 // runes
	MinBudget    = 200  // tokens: the size of an answer with one short hit
	MaxBudget    = 25_000
	MaxContext   = 50
)

// Check returns q with defaults filled in, or an *InvalidError.
func (q Query) Check() (Query, error) { return q.check(MaxQuery) }

// check returns q with defaults filled in, or an *InvalidError.
func (q Query) check(maxRunes int) (Query, error) {
	q.Text = strings.TrimSpace(q.Text)
	if n := utf8.RuneCountInString(q.Text); n < 1 || n > maxRunes {
		return q, invalid("query", "%d characters, want 1 to %d", n, maxRunes)
	}
	if !utf8.ValidString(q.Text) {
		return q, invalid("query", "not valid UTF-8")
	}
	var err error
	if q.Mode, err = ParseMode(string(q.Mode)); err != nil {
		return q, err
	}
	switch {
	case q.Limit == 0 && (q.MaxTokens > 0 || q.AsText): // more than the passages that fit, since some are short
		q.Limit = min(max(DefaultLimit, 2*cmp.Or(q.MaxTokens, DefaultTokens)/passageTokens), MaxLimit)
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

// Lines is a range of lines, numbered from 1, inclusive at both ends.
type Lines struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Result is a document that a search found, represented by its best section.
// LineRange, SectionHash and SectionTokens describe the section with its subsections,
// which is what reading path#anchor returns. Passage is the part that matched.
type Result struct {
	Path          string   `json:"path"`
	Title         string   `json:"title"`
	Headings      []string `json:"headings"` // trail of the section, outermost first
	Anchor        string   `json:"anchor"`
	Anchors       []string `json:"anchors,omitempty"` // the document's first three headings, names in source code
	LineRange     Lines    `json:"line_range"`
	Passage       Lines    `json:"passage"`
	Hash          string   `json:"hash"`           // SHA-256 of the file, hex
	Tokens        int      `json:"tokens"`         // of the file, bytes/4 rounded down
	SectionHash   string   `json:"section_hash"`   // ShortHash digits
	SectionTokens int      `json:"section_tokens"` // tiktoken
	Score         float64  `json:"score"`          // in [0, 1], to 4 decimals; exact with Query.Explain
	Snippet       string   `json:"snippet,omitempty"`
	// Content is text of the section, set only within a token budget. Passage is then the
	// lines of Content, Snippet and Anchors are omitted, and Hash has ShortHash digits.
	Content string `json:"content,omitempty"`
	// Flags are signs that Snippet, Content or the content of More holds text that people do not see.
	Flags []invisible.Flag `json:"flags,omitempty"`
	// Stale is set if the file on disk has changed since it was indexed.
	Stale bool `json:"stale,omitempty"`
	// Outdated lists what no longer holds of what a note rests on.
	Outdated []Outdated `json:"outdated,omitempty"`
	// More lists other sections of the document that matched, best first. Within a token
	// budget it lists those with Content.
	More []SectionRef `json:"more,omitempty"`
	// Duplicates lists places with nearly the same text. They have no result of their own.
	Duplicates []string `json:"duplicates,omitempty"`
	// Explain is set if Query.Explain is.
	Explain *Explanation `json:"explain,omitempty"`

	candidate *candidateText // the source of Content; set only within a token budget
}

// SectionRef refers to a section of the result's document.
type SectionRef struct {
	Anchor    string  `json:"anchor"`
	Heading   string  `json:"heading"`
	LineRange Lines   `json:"line_range"`
	Score     float64 `json:"score"` // rounded like that of a Result
	// Content is text of the section without its subsections, and Passage its lines. They
	// are set only within a token budget.
	Passage *Lines `json:"passage,omitempty"`
	Content string `json:"content,omitempty"`

	candidate *candidateText // the source of Content; set only within a token budget
}

// Omitted is a hit whose text did not fit into the token budget. The tool read_doc
// accepts Path, which includes "#anchor" or ":from-to".
type Omitted struct {
	Path   string `json:"path"`
	Tokens int    `json:"tokens"`
}

// Spent reports how a token budget was spent. Counts are tokens (tiktoken).
type Spent struct {
	Tokens   int `json:"tokens"`   // the budget
	Text     int `json:"text"`     // of the hits
	Envelope int `json:"envelope"` // of the rest of the answer
}

// ShortHash is the number of hexadecimal digits of the hash of a section in a Result, and
// of the hash of a file in an answer with a token budget: a whole hash costs some 40
// tokens. ReadRequest accepts such a hash as ExpectedHash.
const ShortHash = 12

// IndexState describes the index that produced an answer.
type IndexState struct {
	// State is "missing" (never indexed), "building" (an indexing run is in
	// progress), "partial" (files or vectors are pending, and no run is in progress)
	// or "ready".
	State    string `json:"state"`
	Files    int    `json:"files"`
	Sections int    `json:"sections"`
	Embedded int    `json:"embedded"` // chunks that have a vector
	Pending  int    `json:"pending"`  // chunks without a vector
	// Unindexed is the number of files that were found but are not searchable yet.
	Unindexed int    `json:"unindexed,omitempty"`
	BuiltAt   string `json:"built_at,omitempty"`
}

// NewIndexState derives the state of an index from the counts of its document
// store. building reports whether an indexing run is in progress; unread is the number
// of files that the run has not read yet.
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
	Paths      []string   `json:"paths,omitempty"` // set if Query.Paths is, in the order of the ranking
	NextCursor *string    `json:"next_cursor"`
	Mode       Mode       `json:"mode"`
	Index      IndexState `json:"index"`
	// Degraded names what the answer lacks: "files" (the first index is not complete),
	// "vectors" (none, or not all), "rerank" (the re-ranker ran out of time), "stale",
	// and "keywords", "documents" and "owner", which package index adds.
	Degraded []string `json:"degraded"`
	// Reason explains an empty answer: "no_match", "not_indexed", "indexing", "empty_workspace".
	Reason string `json:"reason,omitempty"`
	// Hint names the tool to call next, or states that nothing relevant was found.
	Hint string `json:"hint,omitempty"`
	// Folders describes the folders of the results.
	Folders []Folder `json:"folders,omitempty"`
	// Answerable is the estimated probability that the documents answer the query. It
	// is set on the first page if the index is complete.
	Answerable *float64 `json:"answerable,omitempty"`
	// UnknownWords are the words of the query that occur in no document. They are set if
	// Answerable is low.
	UnknownWords []string `json:"unknown_words,omitempty"`
	// Budget reports how a token budget was spent.
	Budget *Spent `json:"budget,omitempty"`
	// OmittedCount is the number of hits whose text did not fit into the token budget;
	// Omitted lists the first three.
	OmittedCount int       `json:"omitted_count,omitempty"`
	Omitted      []Omitted `json:"omitted,omitempty"`
	// Searched is the text that was searched for if the query was too long.
	Searched string `json:"searched,omitempty"`
	// Fuzzy is set if no word matched as typed, so that near spellings were searched.
	Fuzzy bool `json:"fuzzy,omitempty"`
}
