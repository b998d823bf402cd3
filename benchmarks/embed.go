package benchmarks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"cairn/internal/store/flat"
	"cairn/models"
)

// embedQueries is how often Embed embeds embedQuery, which has 13 word pieces in BERT's
// uncased vocabulary, including the two special tokens.
const (
	embedQueries = 200
	embedQuery   = "how does the server decide which pod runs first every day"
)

// EmbedResult is the result of Embed.
type EmbedResult struct {
	Texts  int `json:"texts"`
	Tokens int `json:"tokens"` // word pieces after truncation, including special tokens
	// TextsPerSecond and TokensPerSecond come from the fastest round.
	TextsPerSecond  float64 `json:"texts_per_second"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	QueryTokens     int     `json:"query_tokens"`
	QueryP50        float64 `json:"query_p50_ms"`
	QueryP90        float64 `json:"query_p90_ms"`
	// Threads and Kernel are reported by the embedder, 0 and "" if it does not report them.
	Threads int    `json:"threads"`
	Kernel  string `json:"kernel"`
}

// Embed measures how many documents e embeds per second, with all texts in one call, and the
// time for one query. After a warm-up with 64 texts, it embeds all texts in each round and
// reports the fastest round.
func Embed(ctx context.Context, e models.Embedder, texts []string, rounds int) (EmbedResult, error) {
	if len(texts) == 0 {
		return EmbedResult{}, errors.New("measuring an embedder: no texts")
	}
	tok, err := e.Tokenizer()
	if err != nil {
		return EmbedResult{}, fmt.Errorf("measuring an embedder: %w", err)
	}
	r := EmbedResult{Texts: len(texts), QueryTokens: len(tok.Encode(embedQuery))}
	for _, t := range texts {
		r.Tokens += len(tok.Encode(t))
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
	for range rounds {
		start := time.Now()
		if _, err := e.EmbedDocuments(ctx, texts); err != nil {
			return EmbedResult{}, err
		}
		s := time.Since(start).Seconds()
		r.TextsPerSecond = max(r.TextsPerSecond, float64(len(texts))/s)
		r.TokensPerSecond = max(r.TokensPerSecond, float64(r.Tokens)/s)
	}
	times := make([]float64, embedQueries)
	for i := range times {
		start := time.Now()
		if _, err := e.EmbedQuery(ctx, embedQuery); err != nil {
			return EmbedResult{}, err
		}
		times[i] = time.Since(start).Seconds() * 1e3
	}
	r.QueryP50, r.QueryP90 = Percentile(times, 50), Percentile(times, 90)
	return r, nil
}

// ReadTexts reads a file with one JSON string per line. It skips blank lines.
func ReadTexts(file string) ([]string, error) {
	var texts []string
	err := readLines(file, func(line []byte) error {
		var text string
		if err := json.Unmarshal(line, &text); err != nil {
			return fmt.Errorf("want a JSON string: %w", err)
		}
		texts = append(texts, text)
		return nil
	})
	return texts, err
}

// cache holds the embeddings of a model for several runs. One run at a time uses it.
type cache struct {
	*flat.Store
	lock *flock.Flock
}

// openCache opens the cache of a model in folder. It fails if another run has the cache open.
// It replaces a cache that is damaged or of another format.
func openCache(folder string, d models.Description) (*cache, error) {
	dir := filepath.Join(folder, url.PathEscape(d.ID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c := &cache{lock: flock.New(filepath.Join(dir, "lock"))}
	if locked, err := c.lock.TryLock(); err != nil {
		return nil, err
	} else if !locked {
		return nil, errors.Join(fmt.Errorf("another run has the cache %s open: wait for it, or name another folder with --cache", folder), c.lock.Close())
	}
	var err error
	if c.Store, err = flat.OpenOrReplace(dir, d.Dimension, d.ID, &flat.Options{MaxCached: 4 << 20}); err != nil {
		return nil, errors.Join(err, c.lock.Close())
	}
	return c, nil
}

// Close closes the cache.
func (c *cache) Close() error { return errors.Join(c.Store.Close(), c.lock.Close()) }
