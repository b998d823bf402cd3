package benchmarks

import (
	"context"
	"errors"
	"slices"
	"time"

	"cairn/models"
)

// EmbedOptions are the knobs of Embed. Nil and zero mean the defaults.
type EmbedOptions struct {
	// Rounds is how often all texts are embedded after one warm-up round on
	// 64 of them; the fastest round counts. Default 3.
	Rounds int
	// Query is the query whose latency is measured, by default DefaultQuery.
	Query string
	// Queries is how often it is embedded. Default 200.
	Queries int
}

// DefaultQuery has 13 word pieces in BERT's uncased vocabulary, the two special
// tokens included.
const DefaultQuery = "how does the server decide which pod runs first every day"

// An EmbedResult is what Embed measured.
type EmbedResult struct {
	Texts  int `json:"texts"`
	Tokens int `json:"tokens"` // word pieces after the cut, special tokens included
	// TextsPerSecond and TokensPerSecond come from the fastest round.
	TextsPerSecond  float64 `json:"texts_per_second"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	QueryTokens     int     `json:"query_tokens"`
	QueryP50        float64 `json:"query_p50_ms"`
	QueryP90        float64 `json:"query_p90_ms"`
	// Threads and Kernel are the embedder's own word, 0 and "" if it has none.
	Threads int    `json:"threads"`
	Kernel  string `json:"kernel"`
}

// Embed measures how many documents a second e embeds, all texts in one call,
// and how long one query takes.
func Embed(ctx context.Context, e models.Embedder, texts []string, opts *EmbedOptions) (EmbedResult, error) {
	o := EmbedOptions{Rounds: 3, Query: DefaultQuery, Queries: 200}
	if opts != nil {
		if opts.Rounds > 0 {
			o.Rounds = opts.Rounds
		}
		if opts.Query != "" {
			o.Query = opts.Query
		}
		if opts.Queries > 0 {
			o.Queries = opts.Queries
		}
	}
	if len(texts) == 0 {
		return EmbedResult{}, errors.New("measuring an embedder: no texts")
	}
	r := EmbedResult{Texts: len(texts), QueryTokens: len(e.Tokenizer().Encode(o.Query))}
	for _, t := range texts {
		r.Tokens += len(e.Tokenizer().Encode(t))
	}
	if t, ok := e.(interface{ Threads() int }); ok {
		r.Threads = t.Threads()
	}
	if k, ok := e.(interface{ Kernel() string }); ok {
		r.Kernel = k.Kernel()
	}
	if _, err := e.EmbedDocuments(ctx, texts[:min(64, len(texts))]); err != nil {
		return EmbedResult{}, err
	}
	for range o.Rounds {
		start := time.Now()
		if _, err := e.EmbedDocuments(ctx, texts); err != nil {
			return EmbedResult{}, err
		}
		s := time.Since(start).Seconds()
		r.TextsPerSecond = max(r.TextsPerSecond, float64(len(texts))/s)
		r.TokensPerSecond = max(r.TokensPerSecond, float64(r.Tokens)/s)
	}
	times := make([]time.Duration, o.Queries)
	for i := range times {
		start := time.Now()
		if _, err := e.EmbedQuery(ctx, o.Query); err != nil {
			return EmbedResult{}, err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	r.QueryP50 = times[len(times)/2].Seconds() * 1e3
	r.QueryP90 = times[len(times)*9/10].Seconds() * 1e3
	return r, nil
}
