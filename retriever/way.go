package retriever

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cairn/internal/observe"
	"cairn/internal/store/keyword"
)

// Way is the whole way of one search: what each step was given and what it
// made of that. The parts of the scores of what was found are in Answer.
type Way struct {
	Query     string     `json:"query"`
	Mode      Mode       `json:"mode"` // asked for; Answer tells the one that ran
	Analysis  Analysis   `json:"analysis"`
	Embedding *Embedding `json:"embedding,omitempty"` // nil where nothing is embedded
	Keyword   *Leg       `json:"keyword_leg,omitempty"`
	Vector    *Leg       `json:"vector_leg,omitempty"`
	Blend     Blending   `json:"blend"`
	Graph     Graph      `json:"graph"`
	Cuts      Cuts       `json:"cuts"`
	Budget    *Spending  `json:"budget,omitempty"` // nil without one
	Stages    []Step     `json:"stages"`           // in the order they ended
	Took      float64    `json:"took_ms"`
	Answer    *Answer    `json:"answer"`
}

// Analysis is what the query was taken for.
type Analysis struct {
	Terms  []Term `json:"terms"`  // that the keyword index looks for
	Chunks int    `json:"chunks"` // in the keyword index; 0 where it does not tell
	// Plain is the query without its operators.
	Plain    string `json:"plain"`
	Phrases  bool   `json:"phrases"`  // it holds "required phrases"
	Excludes bool   `json:"excludes"` // it holds -excluded words
	// Near says that nothing matched as typed, and near spellings were looked for.
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
	Kernel string `json:"kernel,omitempty"` // of the engine, where it tells
	// Text is what the model was given, after what it wants before a query.
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
	Asked int      `json:"asked"` // for at most that many chunks
	Found int      `json:"found"`
	Took  float64  `json:"took_ms"`
	Best  []LegHit `json:"best"` // the first of those found
}

// LegHit is a chunk in the order of a leg.
type LegHit struct {
	Rank  int     `json:"rank"`
	Chunk string  `json:"chunk"`
	Score float64 `json:"score"`  // raw: BM25, or the cosine
	Share float64 `json:"normal"` // as it enters the blend, in [0, 1]
	// Cut says why it is no candidate: "similarity" (not near enough, and no
	// word matches) or "operators" (a phrase or an exclusion forbids it).
	Cut string `json:"cut,omitempty"`
}

// Blending is how the legs became one ranking.
type Blending struct {
	Fusion        Fusion  `json:"fusion"`
	VectorWeight  float64 `json:"vector_weight"`
	KeywordWeight float64 `json:"keyword_weight"`
	BestBM25      float64 `json:"best_bm25"`      // what BM25 is divided by
	MinSimilarity float64 `json:"min_similarity"` // cosine at or below which words have to match
	Candidates    int     `json:"candidates"`     // chunks
	LookedUp      int     `json:"looked_up"`      // cosines of keyword hits beyond the vector leg
	Imputed       int     `json:"imputed"`        // chunks without a vector, whose part was estimated
	Documents     int     `json:"documents"`
	Best          []Place `json:"best"` // documents before the graph
}

// Place is a document in a ranking.
type Place struct {
	Rank  int     `json:"rank"`
	Path  string  `json:"path"`
	Score float64 `json:"score"`
}

// Graph is what the graph of common use changed.
type Graph struct {
	Context []string `json:"context"` // what the query says is in use
	Limit   float64  `json:"limit"`   // most that a score is changed by
	Looked  int      `json:"looked"`  // documents it was asked about
	Moved   []Move   `json:"moved"`   // those whose score it changed, best first
}

// Move is a document that the graph lifted or lowered.
type Move struct {
	Path   string  `json:"path"`
	Bonus  float64 `json:"bonus"`
	Before int     `json:"before"` // its rank
	After  int     `json:"after"`
}

// Cuts is what was found and is not shown.
type Cuts struct {
	Rounds     int      `json:"rounds"` // how often the legs were asked, each time for more
	Similarity int      `json:"similarity"`
	Operators  int      `json:"operators"`
	Gone       []string `json:"gone"` // documents that left or changed meanwhile
	Duplicates []string `json:"duplicates"`
	Beyond     int      `json:"beyond_limit"` // documents after the last that is shown
}

// Spending is how the token budget was spent.
type Spending struct {
	MaxTokens int       `json:"max_tokens"`
	Parts     []Spent   `json:"parts"`
	Omitted   []Omitted `json:"omitted"`
}

// Spent is the text of one result.
type Spent struct {
	Place  string `json:"place"`
	Tokens int    `json:"tokens"`
	Whole  bool   `json:"whole"` // the section, else its best chunk alone
}

// Step is a stage, in milliseconds since the search began.
type Step struct {
	Stage string  `json:"stage"`
	Start float64 `json:"start_ms"`
	Took  float64 `json:"took_ms"`
}

// WayLimit bounds the candidates that a Way names of each list.
const WayLimit = 100

// Explain searches as Search does and tells the way of it. best is how many
// candidates of each list to name, 1 to WayLimit; 0 means 10. It fails as
// Search does.
func (r *Retriever) Explain(ctx context.Context, q Query, best int) (*Way, error) {
	if best == 0 {
		best = 10
	}
	if best < 1 || best > WayLimit {
		return nil, invalid("candidates", "%d, want 1 to %d", best, WayLimit)
	}
	q.Explain = false // it would be paid for from the budget; the parts of the scores come at the end
	w := &witness{best: best, start: time.Now()}
	w.way = Way{Query: strings.TrimSpace(q.Text), Mode: q.Mode, Stages: []Step{}}
	answer, err := r.Search(observe.With(context.WithValue(ctx, witnessKey{}, w), w), q)
	if err != nil {
		return nil, err
	}
	way := &w.way
	way.Took, way.Answer = ms(time.Since(w.start)), answer
	if way.Mode == "" {
		way.Mode = Hybrid
	}
	if err := r.terms(way); err != nil {
		return nil, err
	}
	r.finish(w, q)
	return way, nil
}

// statistics is what a keyword index may tell beyond its hits.
type statistics interface {
	Stats(query string) (stats []keyword.TermStat, chunks int, err error)
}

// terms fills in what the keyword index looks for.
func (r *Retriever) terms(way *Way) error {
	way.Analysis.Terms = []Term{}
	if s, ok := r.sources.Keyword.(statistics); ok {
		stats, chunks, err := s.Stats(way.Query)
		if err != nil {
			return fmt.Errorf("reading the statistics of the query: %w", err)
		}
		way.Analysis.Chunks = chunks
		for _, t := range stats {
			way.Analysis.Terms = append(way.Analysis.Terms, Term{t.Term, t.DocFreq})
		}
		return nil
	}
	for _, t := range keyword.QueryTerms(way.Query) {
		way.Analysis.Terms = append(way.Analysis.Terms, Term{Term: t})
	}
	return nil
}

// finish fills in what is known at the end.
func (r *Retriever) finish(w *witness, q Query) {
	way := &w.way
	ops := parseOperators(way.Query)
	way.Analysis.Plain, way.Analysis.Phrases, way.Analysis.Excludes, way.Analysis.Near = ops.plain, ops.required, ops.excluded, way.Answer.Fuzzy
	took := map[string]float64{}
	for _, s := range way.Stages {
		took[s.Stage] += s.Took
	}
	for leg, stage := range map[*Leg]observe.Stage{way.Keyword: observe.Keyword, way.Vector: observe.Vectors} {
		if leg != nil {
			leg.Took = took[stage.String()]
		}
	}
	if e := r.sources.Embedder; e != nil && r.sources.Vectors != nil && way.Mode != Keyword {
		d := e.Description()
		way.Embedding = &Embedding{Model: d.ID, Text: topic(ops.plain), Prefix: d.QueryPrefix, Dimension: d.Dimension, Cached: w.cached, Took: took[observe.Embed.String()]}
		way.Embedding.Tokens = append([]int32{}, e.Tokenizer().Encode(d.QueryPrefix+way.Embedding.Text)...)
		if k, ok := e.(interface{ Kernel() string }); ok {
			way.Embedding.Kernel = k.Kernel()
		}
		if w.problem != nil {
			way.Embedding.Problem = w.problem.Error()
		}
	}
	way.Graph.Context, way.Graph.Limit = append([]string{}, q.Context...), r.options.ReweighLimit
	if r.options.Reweigher == nil {
		way.Graph.Limit, way.Graph.Looked = 0, 0
	}
	a := way.Answer
	shown := len(a.Results) + len(a.Omitted)
	for i := range a.Results {
		e := w.scores[a.Results[i].Path]
		a.Results[i].Explain = &e
	}
	way.Cuts.Beyond = max(0, a.TotalCount-shown-len(way.Cuts.Duplicates))
	if q.MaxTokens > 0 {
		way.Budget = &Spending{MaxTokens: min(q.MaxTokens, MaxBudget), Parts: []Spent{}, Omitted: append([]Omitted{}, a.Omitted...)}
		for i := range a.Results { // some that fitted alone may have been taken out again
			if s, ok := w.spent[place(a.Results[i].Path, a.Results[i].Anchor)]; ok {
				way.Budget.Parts = append(way.Budget.Parts, s)
			}
		}
	}
	if way.Graph.Moved == nil {
		way.Graph.Moved = []Move{}
	}
	if way.Blend.Best == nil {
		way.Blend.Best = []Place{}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
