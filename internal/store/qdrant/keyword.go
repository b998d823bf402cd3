package qdrant

import (
	"context"
	"fmt"
	"math"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
)

// Keyword is a collection of chunks as a store.KeywordSearcher.
//
// Two things differ from the index on disk: the average length of chunks is
// inside the weights, and document frequencies are those of a shard. The terms
// near a misspelt word come from a dictionary, see terms; how common each is, the
// engine knows.
type Keyword struct{ *Chunks }

var _ store.KeywordSearcher = Keyword{}

// Search implements store.KeywordSearcher.
func (x Keyword) Search(ctx context.Context, q query.Query, k int, f store.Filter) ([]store.Hit, error) {
	if k <= 0 {
		return nil, ctx.Err()
	}
	hits, err := x.search(ctx, q, k, f)
	if err != nil {
		return nil, fmt.Errorf("searching %s: %w", x.name, err)
	}
	return hits, nil
}

func (x Keyword) search(ctx context.Context, q query.Query, k int, f store.Filter) ([]store.Hit, error) {
	if err := x.Open(ctx); err != nil {
		return nil, err
	}
	question, err := x.question(ctx, q)
	if err != nil {
		return nil, err
	}
	l := x.words(question, k, f)
	if l == nil {
		return nil, ctx.Err()
	}
	found, err := x.client.run(ctx, l)
	if err != nil {
		return nil, err
	}
	return hitsOf(found), nil
}

// question is resolve with the spellings that answer for misspelt words. The dictionary
// in memory says which words may be; it is brought up to date only then. The first search
// for longer words or near spellings reads it: until then, a search does not wait for it,
// and a misspelt word among others that match stays as it is.
func (c *Chunks) question(ctx context.Context, q query.Query) (keyword.Query, error) {
	question, err := c.resolve(ctx, q)
	near := q.Fuzzy || q.Prefixes
	if err != nil {
		return question, err
	}
	if known := c.terms.known(); !near && (known == nil || !question.Misspelt(known)) {
		return question, nil
	}
	dictionary, err := c.terms.dictionary(ctx)
	if err != nil || !near && !question.Misspelt(dictionary) {
		return question, err
	}
	return question.Near(dictionary, func(terms []string) (map[string]float64, error) { return c.rarities(ctx, terms) })
}

// resolve analyses a query and finds out which of its dashed words are flags:
// those that the store holds with their dash. That takes a call for each.
func (c *Chunks) resolve(ctx context.Context, q query.Query) (keyword.Query, error) {
	return keyword.NewQuery(q).Resolve(func(term string) (bool, error) {
		l := newLeg(c.matching(map[string]float64{term: 1}, store.Filter{}), 1, "")
		l.cut = true
		found, err := c.client.run(ctx, l)
		return len(found) > 0, err
	})
}

// Admits implements store.KeywordSearcher.
func (x Keyword) Admits(ctx context.Context, q query.Query, chunks []string) ([]bool, error) {
	held := make(map[string]bool, len(chunks))
	resolved, err := x.resolve(ctx, q)
	if err == nil {
		err = x.each(ctx, chunks, func(ids []*pb.PointId) error {
			points, err := x.client.points(ctx, &pb.GetPoints{CollectionName: x.name, Ids: ids, WithPayload: pb.NewWithPayloadInclude(textFields...)})
			for _, p := range points {
				e := entryOf(p.Payload)
				held[e.Chunk] = resolved.Admits(e)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("checking chunks of %s: %w", x.name, err)
	}
	admits := make([]bool, len(chunks))
	for i, c := range chunks {
		admits[i] = held[c]
	}
	return admits, nil
}

// askTerms is how many terms are looked up in one request, and idfStep what their
// rarities are rounded to: more than float32 scores leave uncertain, and less than
// one chunk more or less makes of ten thousand.
const (
	askTerms = 256
	idfStep  = 1e-5
)

// rarities returns the inverse document frequencies by which the engine
// multiplies the weights of terms, for those that some chunk holds: the score of
// the best chunk for the term alone by its weight there.
func (c *Chunks) rarities(ctx context.Context, terms []string) (map[string]float64, error) {
	held := map[string]float64{}
	for some := range slices.Chunk(terms, askTerms) {
		var requests []*pb.QueryPoints
		for _, term := range some {
			r := c.matching(map[string]float64{term: 1}, store.Filter{})
			r.Limit, r.WithVectors = pb.PtrOf(uint64(1)), pb.NewWithVectorsInclude(wordsVector)
			requests = append(requests, r)
		}
		found, err := c.client.query(ctx, requests...)
		if err != nil {
			return nil, err
		}
		for i, points := range found {
			for _, p := range points {
				if weight := weightIn(p.GetVectors(), termIndex(some[i])); weight > 0 && p.Score > 0 {
					held[some[i]] = max(1, math.Round(float64(p.Score)/weight/idfStep)) * idfStep
				}
			}
		}
	}
	return held, nil
}

// weightIn returns the weight of a term in a chunk's sparse vector, 0 if it has none.
func weightIn(vectors *pb.VectorsOutput, index uint32) float64 {
	words := vectors.GetVectors().GetVectors()[wordsVector].GetSparseVector()
	indices, values := words.GetIndices(), words.GetValues()
	if i := slices.Index(indices, index); i >= 0 && i < len(values) {
		return float64(values[i])
	}
	return 0
}

// Count returns the number of chunks.
func (x Keyword) Count() (int, error) { return x.countPoints(nil) }
