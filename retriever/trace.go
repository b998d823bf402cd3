package retriever

import (
	"cmp"
	"context"
	"strings"
	"time"

	"cairn/internal/base/observe"
	"cairn/internal/store/keyword"
)

// Trace records the input and output of each step of one search. Answer holds the
// components of the scores.
type Trace struct {
	Query     string     `json:"query"`
	Mode      Mode       `json:"mode"` // requested; Answer.Mode is the one that ran
	Analysis  Analysis   `json:"analysis"`
	Embedding *Embedding `json:"embedding,omitempty"` // nil if the query was not embedded
	Keyword   *Leg       `json:"keyword_leg,omitempty"`
	Vector    *Leg       `json:"vector_leg,omitempty"`
	Blend     Blending   `json:"blend"`
	Graph     Graph      `json:"graph"`
	Rerank    *Reranking `json:"rerank,omitempty"` // nil without a re-ranker
	Dropped   Dropped    `json:"cuts"`
	Budget    *BudgetUse `json:"budget,omitempty"` // nil without one
	Stages    []Step     `json:"stages"`           // in the order they ended
	Took      float64    `json:"took_ms"`
	Answer    *Answer    `json:"answer"`
}

// Analysis is the result of parsing the query.
type Analysis struct {
	Terms  []keyword.TermStat `json:"terms"`  // as searched in the keyword index
	Chunks int                `json:"chunks"` // in the keyword index; 0 if it does not count them
	// Plain is the query without its operators.
	Plain    string `json:"plain"`
	Phrases  bool   `json:"phrases"`  // it contains "required phrases"
	Excludes bool   `json:"excludes"` // it contains -excluded words
	// Near is set if no word matched as typed, so that near spellings were searched.
	Near bool `json:"near_spellings"`
}

// Embedding describes the embedding of the query.
type Embedding struct {
	Model  string `json:"model"`
	Kernel string `json:"kernel,omitempty"` // of the engine, if it has a name
	// Text is the embedded text without Prefix.
	Text      string  `json:"text"`
	Prefix    string  `json:"prefix,omitempty"`
	Tokens    []int32 `json:"tokens"` // ids of word pieces, special ones included
	Dimension int     `json:"dimension"`
	Cached    bool    `json:"cached"` // the vector came from the cache
	Took      float64 `json:"took_ms"`
	Problem   string  `json:"problem,omitempty"` // why there is no vector
}

// Leg describes the hits of one index.
type Leg struct {
	Asked int      `json:"asked"` // number of chunks requested
	Found int      `json:"found"`
	Took  float64  `json:"took_ms"`
	Best  []LegHit `json:"best"` // the first hits
}

// LegHit is a chunk in the order of a leg.
type LegHit struct {
	Rank       int     `json:"rank"`
	Chunk      string  `json:"chunk"`
	Score      float64 `json:"score"`  // raw: BM25 or the cosine
	Normalised float64 `json:"normal"` // as used in the blend, in [0, 1]
	// Cut is why the hit is not a candidate: "similarity" (its cosine is too low and no
	// word matches) or "operators" (a phrase or an exclusion forbids it).
	Cut string `json:"cut,omitempty"`
}

// Blending describes how the legs were combined into one ranking.
type Blending struct {
	Fusion        string  `json:"fusion"` // always "linear"
	VectorWeight  float64 `json:"vector_weight"`
	KeywordWeight float64 `json:"keyword_weight"`
	BestBM25      float64 `json:"best_bm25"`      // divisor of BM25
	MinSimilarity float64 `json:"min_similarity"` // at or below this cosine, a word must match
	Candidates    int     `json:"candidates"`     // chunks
	LookedUp      int     `json:"looked_up"`      // keyword hits outside the vector leg whose cosine was looked up
	Imputed       int     `json:"imputed"`        // chunks without a vector, whose cosine was estimated
	Documents     int     `json:"documents"`
	Best          []Place `json:"best"` // documents before the graph
}

// Place is a document in a ranking.
type Place struct {
	Rank  int     `json:"rank"`
	Path  string  `json:"path"`
	Score float64 `json:"score"`
}

// Graph describes what the co-usage graph changed.
type Graph struct {
	Context    []string     `json:"context"` // documents and tools in use: those of the query, and changed files
	Limit      float64      `json:"limit"`   // largest change of a score
	Considered int          `json:"looked"`  // documents
	Changes    []RankChange `json:"moved"`   // documents whose score changed, best first
}

// RankChange is a document whose score the graph changed.
type RankChange struct {
	Path   string  `json:"path"`
	Bonus  float64 `json:"bonus"`
	Before int     `json:"before"` // rank
	After  int     `json:"after"`  // rank
}

// Reranking describes what the re-ranker changed.
type Reranking struct {
	Passages int        `json:"passages"` // given to the re-ranker
	Read     int        `json:"read"`     // within its time limit
	Budget   float64    `json:"budget_ms"`
	Best     []Reranked `json:"best"` // documents that it read
}

// Reranked is a document with the best logit of its passages.
type Reranked struct {
	Rank   int     `json:"rank"`
	Before int     `json:"before"` // previous rank
	Logit  float64 `json:"logit"`
	Path   string  `json:"path"`
}

// Dropped counts the hits and documents that were found but are not in the answer.
type Dropped struct {
	Rounds     int      `json:"rounds"` // number of times the legs ran, each time for more chunks
	Similarity int      `json:"similarity"`
	Operators  int      `json:"operators"`
	Removed    []string `json:"gone"` // documents removed or changed during the search
	Duplicates []string `json:"duplicates"`
	Beyond     int      `json:"beyond_limit"` // documents after the last one shown
}

// BudgetUse describes how the token budget was spent.
type BudgetUse struct {
	MaxTokens int         `json:"max_tokens"`
	Parts     []ResultUse `json:"parts"`
	Omitted   []Omitted   `json:"omitted"`
}

// ResultUse is the number of tokens of one result's text.
type ResultUse struct {
	Place  string `json:"place"`
	Tokens int    `json:"tokens"`
	Whole  bool   `json:"whole"` // the whole section
}

// Step is a stage of observe, in milliseconds since the search began.
type Step struct {
	Stage string  `json:"stage"`
	Start float64 `json:"start_ms"`
	Took  float64 `json:"took_ms"`
}

// TraceLimit is the maximum length of the lists in a Trace.
const TraceLimit = 100

// Explain runs Search and returns its trace. best is the maximum length of the lists in
// the trace, 1 to TraceLimit; 0 means 10. Explain fails as Search does.
func (r *Retriever) Explain(ctx context.Context, q Query, best int) (*Trace, error) {
	best = cmp.Or(best, 10)
	if best < 1 || best > TraceLimit {
		return nil, invalid("candidates", "%d, want 1 to %d", best, TraceLimit)
	}
	q.Explain = false // finish adds the components of the scores, so that they do not use the budget
	t := &tracer{best: best, start: time.Now()}
	t.trace = Trace{Query: strings.TrimSpace(q.Text), Mode: cmp.Or(q.Mode, Hybrid), Stages: []Step{}, Blend: Blending{Best: []Place{}}, Graph: Graph{Changes: []RankChange{}}}
	answer, err := r.Search(observe.With(context.WithValue(ctx, tracerKey{}, t), t), q)
	if err != nil {
		return nil, err
	}
	t.trace.Took, t.trace.Answer = ms(time.Since(t.start)), answer
	stats, chunks, err := r.statistics(t.query)
	if err != nil {
		return nil, err
	}
	t.trace.Analysis = Analysis{
		Terms: append([]keyword.TermStat{}, stats...), Chunks: chunks, Plain: t.query.Words, Near: answer.Fuzzy,
		Phrases: len(t.query.Phrases) > 0, Excludes: len(t.query.Excluded)+len(t.query.Dashed) > 0,
	}
	r.finish(t, q)
	return &t.trace, nil
}

// finish sets the fields that depend on the whole search.
func (r *Retriever) finish(t *tracer, q Query) {
	trace := &t.trace
	took := map[string]float64{}
	for _, s := range trace.Stages {
		took[s.Stage] += s.Took
	}
	for leg, stage := range map[*Leg]observe.Stage{trace.Keyword: observe.Keyword, trace.Vector: observe.Vectors} {
		if leg != nil {
			leg.Took = took[stage.String()]
		}
	}
	if e := r.sources.Embedder; e != nil && r.sources.Vectors != nil && trace.Mode != Keyword {
		d := e.Description()
		trace.Embedding = &Embedding{Model: d.ID, Text: trace.Analysis.Plain, Prefix: d.QueryPrefix, Dimension: d.Dimension, Cached: t.cached, Took: took[observe.Embed.String()]}
		trace.Embedding.Tokens = []int32{}
		if tok, err := e.Tokenizer(); err == nil {
			trace.Embedding.Tokens = append(trace.Embedding.Tokens, tok.Encode(d.QueryPrefix+trace.Analysis.Plain)...)
		}
		if k, ok := e.(interface{ Kernel() string }); ok {
			trace.Embedding.Kernel = k.Kernel()
		}
		if t.vectorErr != nil {
			trace.Embedding.Problem = t.vectorErr.Error()
		}
	}
	trace.Graph.Context, trace.Graph.Limit = append([]string{}, q.Context...), r.options.ReweighLimit
	switch reweigher := r.options.Reweigher.(type) {
	case nil:
		trace.Graph.Limit, trace.Graph.Considered = 0, 0
	case CoUsage:
		trace.Graph.Context = append([]string{}, reweigher.InUse(q)...)
	}
	a := trace.Answer
	for i := range a.Results {
		r := &a.Results[i]
		e, ok := t.scores[r.Place()]
		if !ok {
			e = t.scores[r.Path]
		}
		r.Explain = &e
	}
	trace.Dropped.Beyond = max(0, len(t.scores)-len(trace.Dropped.Removed)-len(a.Results)-a.OmittedCount-len(trace.Dropped.Duplicates))
	if q.MaxTokens > 0 {
		trace.Budget = &BudgetUse{MaxTokens: min(q.MaxTokens, MaxBudget), Parts: []ResultUse{}, Omitted: append([]Omitted{}, a.Omitted...)}
		for i := range a.Results {
			r := &a.Results[i]
			at := r.Place()
			for n, h := range r.candidates() {
				if n > 0 {
					at = r.PlaceOf(&r.More[n-1])
				}
				if h.tokens > 0 {
					whole := h.given == h.own || h.given == span{0, len(h.text)} // with or without its subsections
					trace.Budget.Parts = append(trace.Budget.Parts, ResultUse{Place: at, Tokens: h.tokens, Whole: whole})
				}
			}
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
