package retriever

import (
	"cmp"
	"context"
	"strings"
	"time"

	"cairn/internal/observe"
	"cairn/internal/query"
)

// Trace records one search: what each step received and what it made of that.
// Answer holds the components of the scores.
type Trace struct {
	Query     string     `json:"query"`
	Mode      Mode       `json:"mode"` // asked for; Answer has the one that ran
	Analysis  Analysis   `json:"analysis"`
	Embedding *Embedding `json:"embedding,omitempty"` // nil where nothing is embedded
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

// Analysis is how the query was understood.
type Analysis struct {
	Terms  []Term `json:"terms"`  // that the keyword index looks for
	Chunks int    `json:"chunks"` // in the keyword index; 0 if it does not count them
	// Plain is the query without its operators.
	Plain    string `json:"plain"`
	Phrases  bool   `json:"phrases"`  // it holds "required phrases"
	Excludes bool   `json:"excludes"` // it holds -excluded words
	// Near is whether nothing matched as typed, so that near spellings were searched.
	Near bool `json:"near_spellings"`
}

// Term is a word of the query as the keyword index holds it, and how many
// chunks hold it.
type Term struct {
	Term   string `json:"term"`
	Chunks int    `json:"chunks"`
}

// Embedding is how the query became a vector.
type Embedding struct {
	Model  string `json:"model"`
	Kernel string `json:"kernel,omitempty"` // of the engine, if it has a name
	// Text is what the model embedded, after Prefix.
	Text      string  `json:"text"`
	Prefix    string  `json:"prefix,omitempty"`
	Tokens    []int32 `json:"tokens"` // ids of word pieces, special ones included
	Dimension int     `json:"dimension"`
	Cached    bool    `json:"cached"` // the vector was still in memory
	Took      float64 `json:"took_ms"`
	Problem   string  `json:"problem,omitempty"` // why there is no vector
}

// Leg is what one index answered.
type Leg struct {
	Asked int      `json:"asked"` // the most chunks asked for
	Found int      `json:"found"`
	Took  float64  `json:"took_ms"`
	Best  []LegHit `json:"best"` // the first hits
}

// LegHit is a chunk in the order of a leg.
type LegHit struct {
	Rank  int     `json:"rank"`
	Chunk string  `json:"chunk"`
	Score float64 `json:"score"`  // raw: BM25, or the cosine
	Share float64 `json:"normal"` // as it enters the blend, in [0, 1]
	// Cut is why it is not a candidate: "similarity" (not near enough, and no
	// word matches) or "operators" (a phrase or an exclusion forbids it).
	Cut string `json:"cut,omitempty"`
}

// Blending is how the legs became one ranking.
type Blending struct {
	Fusion        Fusion  `json:"fusion"`
	VectorWeight  float64 `json:"vector_weight"`
	KeywordWeight float64 `json:"keyword_weight"`
	BestBM25      float64 `json:"best_bm25"`      // what BM25 is divided by
	MinSimilarity float64 `json:"min_similarity"` // at or below this cosine a word has to match
	Candidates    int     `json:"candidates"`     // chunks
	LookedUp      int     `json:"looked_up"`      // cosines of keyword hits beyond the vector leg
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

// Graph is what the co-usage graph changed.
type Graph struct {
	Context    []string     `json:"context"` // what the query says is in use
	Limit      float64      `json:"limit"`   // most that a score is changed by
	Considered int          `json:"looked"`  // documents
	Changes    []RankChange `json:"moved"`   // documents whose score it changed, best first
}

// RankChange is a document that the graph lifted or lowered.
type RankChange struct {
	Path   string  `json:"path"`
	Bonus  float64 `json:"bonus"`
	Before int     `json:"before"` // its rank
	After  int     `json:"after"`
}

// Reranking is what the re-ranker changed.
type Reranking struct {
	Passages int        `json:"passages"` // that it was to read
	Read     int        `json:"read"`     // those that it had time for
	Budget   float64    `json:"budget_ms"`
	Best     []Reranked `json:"best"` // documents that it read
}

// Reranked is a document with the best logit of its passages.
type Reranked struct {
	Rank   int     `json:"rank"`
	Before int     `json:"before"` // its rank before
	Logit  float64 `json:"logit"`
	Path   string  `json:"path"`
}

// Dropped is what was found and is not shown.
type Dropped struct {
	Rounds     int      `json:"rounds"` // how often the legs were asked, each time for more
	Similarity int      `json:"similarity"`
	Operators  int      `json:"operators"`
	Removed    []string `json:"gone"` // documents removed or changed meanwhile
	Duplicates []string `json:"duplicates"`
	Beyond     int      `json:"beyond_limit"` // documents after the last one shown
}

// BudgetUse is how the token budget was spent.
type BudgetUse struct {
	MaxTokens int         `json:"max_tokens"`
	Parts     []ResultUse `json:"parts"`
	Omitted   []Omitted   `json:"omitted"`
}

// ResultUse is what the text of one result cost.
type ResultUse struct {
	Place  string `json:"place"`
	Tokens int    `json:"tokens"`
	Whole  bool   `json:"whole"` // the section, else a part of it
}

// Step is a stage of observe, in milliseconds since the search began.
type Step struct {
	Stage string  `json:"stage"`
	Start float64 `json:"start_ms"`
	Took  float64 `json:"took_ms"`
}

// TraceLimit bounds the candidates that a Trace names of each list.
const TraceLimit = 100

// Explain searches as Search does and returns its trace. best is how many
// candidates of each list to name, 1 to TraceLimit; 0 means 10. It fails as
// Search does.
func (r *Retriever) Explain(ctx context.Context, q Query, best int) (*Trace, error) {
	if best == 0 {
		best = 10
	}
	if best < 1 || best > TraceLimit {
		return nil, invalid("candidates", "%d, want 1 to %d", best, TraceLimit)
	}
	q.Explain = false // the components of the scores would use the budget; finish adds them
	t := &tracer{best: best, start: time.Now()}
	t.trace = Trace{Query: strings.TrimSpace(q.Text), Mode: cmp.Or(q.Mode, Hybrid), Stages: []Step{}}
	answer, err := r.Search(observe.With(context.WithValue(ctx, tracerKey{}, t), t), q)
	if err != nil {
		return nil, err
	}
	t.trace.Took, t.trace.Answer = ms(time.Since(t.start)), answer
	if err := r.analysis(&t.trace, t.query); err != nil {
		return nil, err
	}
	r.finish(t, q)
	return &t.trace, nil
}

// analysis fills in how the query was understood.
func (r *Retriever) analysis(trace *Trace, q query.Query) error {
	stats, chunks, err := r.statistics(q)
	if err != nil {
		return err
	}
	trace.Analysis = Analysis{
		Terms: []Term{}, Chunks: chunks, Plain: q.Words, Near: trace.Answer.Fuzzy,
		Phrases: len(q.Phrases) > 0, Excludes: len(q.Excluded)+len(q.Dashed) > 0,
	}
	for _, t := range stats {
		trace.Analysis.Terms = append(trace.Analysis.Terms, Term{t.Term, t.DocFreq})
	}
	return nil
}

// finish fills in what is known at the end of the search.
func (r *Retriever) finish(t *tracer, q Query) {
	trace := &t.trace
	embedded := trace.Analysis.Plain
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
		trace.Embedding = &Embedding{Model: d.ID, Text: embedded, Prefix: d.QueryPrefix, Dimension: d.Dimension, Cached: t.cached, Took: took[observe.Embed.String()]}
		trace.Embedding.Tokens = append([]int32{}, e.Tokenizer().Encode(d.QueryPrefix+embedded)...)
		if k, ok := e.(interface{ Kernel() string }); ok {
			trace.Embedding.Kernel = k.Kernel()
		}
		if t.vectorErr != nil {
			trace.Embedding.Problem = t.vectorErr.Error()
		}
	}
	trace.Graph.Context, trace.Graph.Limit = append([]string{}, q.Context...), r.options.ReweighLimit
	if r.options.Reweigher == nil {
		trace.Graph.Limit, trace.Graph.Considered = 0, 0
	}
	a := trace.Answer
	for i := range a.Results {
		e := t.scores[a.Results[i].Path]
		a.Results[i].Explain = &e
	}
	trace.Dropped.Beyond = max(0, a.TotalCount-len(a.Results)-a.OmittedCount-len(trace.Dropped.Duplicates))
	if q.MaxTokens > 0 {
		trace.Budget = &BudgetUse{MaxTokens: min(q.MaxTokens, MaxBudget), Parts: []ResultUse{}, Omitted: append([]Omitted{}, a.Omitted...)}
		for i := range a.Results { // fit may have taken out some that it had let in
			if use, ok := t.used[place(a.Results[i].Path, a.Results[i].Anchor)]; ok {
				trace.Budget.Parts = append(trace.Budget.Parts, use)
			}
		}
	}
	if trace.Graph.Changes == nil {
		trace.Graph.Changes = []RankChange{}
	}
	if trace.Blend.Best == nil {
		trace.Blend.Best = []Place{}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
