package qdrant

import (
	"context"
	"math"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
)

// Keyword is a collection of chunks as a store.KeywordSearcher.
//
// It differs from the index on disk in two respects: the average length of chunks is
// part of the weights, and document frequencies are per shard. Near spellings come from a
// dictionary (see terms), their document frequencies from the engine.
type Keyword struct{ *Chunks }

var _ store.KeywordSearcher = Keyword{}

// Search implements store.KeywordSearcher.
func (x Keyword) Search(ctx context.Context, q query.Query, k int, f store.Filter) ([]store.Hit, error) {
	hits, err := x.SearchLegs(ctx, store.LegsQuery{Query: q, Words: k, Filter: f})
	return hits.Keyword, err
}

// expand resolves a query and replaces misspelt words by near spellings. The dictionary in
// memory tells which words may be misspelt; only for these does expand update it. The
// first search for longer words or near spellings reads the dictionary. Other searches do
// not wait for it, so a misspelt word has no replacement until then.
func (c *Chunks) expand(ctx context.Context, q query.Query) (keyword.Query, error) {
	resolved, err := c.resolve(ctx, q)
	near := q.Fuzzy || q.Prefixes
	if err != nil {
		return resolved, err
	}
	if known := c.terms.known(); !near && (known == nil || !resolved.Misspelt(known)) {
		return resolved, nil
	}
	dictionary, err := c.terms.dictionary(ctx)
	if err != nil || !near && !resolved.Misspelt(dictionary) {
		return resolved, err
	}
	return resolved.Near(dictionary, func(terms []string) (map[string]float64, error) { return c.idfs(ctx, terms) })
}

// resolve analyses a query and determines which of its dashed words are flags, with one
// call for each.
func (c *Chunks) resolve(ctx context.Context, q query.Query) (keyword.Query, error) {
	return keyword.NewQuery(q).Resolve(func(term string) (bool, error) {
		r := c.matching(map[string]float64{term: 1}, store.Filter{})
		r.Limit = pb.PtrOf(uint64(1))
		found, err := c.client.query(ctx, r)
		return err == nil && len(found[0]) > 0, err
	})
}

// Admits implements store.KeywordSearcher.
func (x Keyword) Admits(ctx context.Context, q query.Query, chunks []string) (_ []bool, err error) {
	defer wrap(&err, "checking chunks of %s", x.name)
	resolved, err := x.resolve(ctx, q)
	if err != nil {
		return nil, err
	}
	return lookup(ctx, x.Chunks, chunks, false, func(ids []*pb.PointId, set func(*pb.PointId, bool)) error {
		points, err := x.get(ctx, ids, textFields...)
		for _, p := range points {
			set(p.Id, resolved.Admits(entryOf(p.Payload)))
		}
		return err
	})
}

// termsPerCall is how many terms one call looks up. idfStep is the unit to which inverse
// document frequencies are rounded: larger than the error of float32 scores, smaller than
// the effect of one chunk in ten thousand.
const (
	termsPerCall = 256
	idfStep      = 1e-5
)

// idfs returns the inverse document frequencies by which the engine multiplies the weights
// of terms, without terms that no chunk contains. It divides the score of the best chunk
// for the term alone by the term's weight in that chunk.
func (c *Chunks) idfs(ctx context.Context, terms []string) (map[string]float64, error) {
	idfs := map[string]float64{}
	for some := range slices.Chunk(terms, termsPerCall) {
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
					idfs[some[i]] = max(1, math.Round(float64(p.Score)/weight/idfStep)) * idfStep
				}
			}
		}
	}
	return idfs, nil
}

// weightIn returns the weight of a term in a chunk's sparse vector, or 0.
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
