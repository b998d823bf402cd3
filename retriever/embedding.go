package retriever

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"cairn/internal/observe"
)

// queryVector returns the vector of text, nil where no vectors are searched. It
// is shared: the caller must not change it.
func (r *Retriever) queryVector(ctx context.Context, text string) ([]float32, error) {
	if r.sources.Vectors == nil || r.sources.Embedder == nil {
		return nil, nil
	}
	v, ok := r.queries.Get(text)
	observe.Cached(ctx, ok)
	if ok {
		return v, nil
	}
	defer observe.Begin(ctx, observe.Embed).End(ctx)
	v, err := r.sources.Embedder.EmbedQuery(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("embedding the query: %w", err)
	}
	r.queries.Add(text, v)
	return v, nil
}

// failureFrame matches the start of a question about something that did not
// work: "why can't I", "can't", "I am unable to", with the pronouns and articles
// after it.
var failureFrame = regexp.MustCompile(`(?i)^(?:why\s+)?(?:(?:i|we)\s+)?` +
	`(?:can't|cant|cannot|can\s+not|couldn't|couldnt|could\s+not|(?:(?:i'm|we're|am|are)\s+(?:(?:i|we)\s+)?)?(?:unable|not\s+able)\s+to)` +
	`(?:\s+(?:i|we|you|my|our|your|the|an?|some|any))*\s+`)

// embeddingText is the part of a query that is embedded: all but a failureFrame.
// Pages describe how to do a thing, not that it fails, and a sentence encoder
// takes the frame for a part of the meaning. Without it the vector leg rises
// from .25 to .32 nDCG@10 on the 31 such questions of an evaluation set, hybrid
// search from .35 to .38 (benchmarks/quality.md). The keyword leg keeps all
// words. A frame with less than two words after it is kept.
func embeddingText(words string) string {
	// Typographic apostrophes are as common as plain ones.
	plain := strings.ReplaceAll(words, "\u2019", "'")
	rest := plain[len(failureFrame.FindString(plain)):]
	if len(rest) == len(plain) || len(strings.Fields(rest)) < 2 {
		return words
	}
	return rest
}
