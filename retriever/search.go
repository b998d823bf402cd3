package retriever

import (
	"context"
	"fmt"

	"cairn/internal/observe"
	"cairn/internal/store/docs"
)

// Search answers one query with a page of documents, each represented by the
// section of it that matches best. It fails with *InvalidError for an argument
// out of range, *IndexChangedError for a cursor of an earlier state, and
// otherwise only when the stores do.
func (r *Retriever) Search(ctx context.Context, q Query) (*Answer, error) {
	q, err := q.check(r.options.MaxQuery)
	if err != nil {
		return nil, err
	}
	meta, counts, err := r.state()
	if err != nil {
		return nil, err
	}
	var from cursor
	if q.Cursor != "" {
		if from, err = decodeCursor(q.Cursor); err != nil {
			return nil, err
		}
		if from.generation != meta.Generation {
			return nil, &IndexChangedError{Have: from.generation, Want: meta.Generation}
		}
		if from.query != q.identity() {
			return nil, invalid("cursor", "it belongs to another query")
		}
	}
	building := r.sources.Building != nil && r.sources.Building()
	state := NewIndexState(meta, counts, building)

	depth := r.options.Depth
	for {
		ranking, err := r.rank(ctx, q, depth, state.Pending > 0)
		if err != nil {
			return nil, err
		}
		timer := observe.Begin(ctx, observe.Page)
		answer, enough, err := r.page(ctx, q, ranking, from.offset)
		timer.End(ctx)
		if err != nil {
			return nil, err
		}
		if !enough && ranking.full {
			depth *= 4
			continue
		}
		answer.Index = state
		if answer.HasMore {
			next := cursor{from.offset + q.Limit, meta.Generation, q.identity()}.encode()
			answer.NextCursor = &next
		}
		answer.explainEmpty()
		if q.MaxTokens > 0 {
			timer := observe.Begin(ctx, observe.Fit)
			r.fit(answer, q, witnessOf(ctx))
			timer.End(ctx)
		}
		return answer, nil
	}
}

// Rank returns the documents that q finds, best first, from the first depth
// chunks of each leg (0 means the default): a search without its page. Limit,
// Cursor and MaxTokens are not looked at, nor is the length of the query.
func (r *Retriever) Rank(ctx context.Context, q Query, depth int) (*Ranking, error) {
	mode, err := ParseMode(string(q.Mode))
	if err != nil {
		return nil, err
	}
	q.Mode = mode
	_, counts, err := r.state()
	if err != nil {
		return nil, err
	}
	if depth <= 0 {
		depth = r.options.Depth
	}
	return r.rank(ctx, q, depth, counts.Vectors.Chunks > 0)
}

// Present returns the first limit documents of a ranking as Search does.
func (r *Retriever) Present(ctx context.Context, q Query, ranking *Ranking, limit int) (*Answer, error) {
	q.Limit = limit
	answer, _, err := r.page(ctx, q, ranking, 0)
	return answer, err
}

func (r *Retriever) rank(ctx context.Context, q Query, depth int, pending bool) (*Ranking, error) {
	f, err := r.find(ctx, q, depth, pending)
	if err != nil {
		return nil, err
	}
	b := blender{mode: f.mode, fusion: r.options.Fusion, vectorWeight: r.options.VectorWeight, keywordWeight: r.options.KeywordWeight}
	if r.sources.Embedder != nil {
		b.minSimilarity = r.sources.Embedder.Description().MinSimilarity
	}
	timer := observe.Begin(ctx, observe.Blend)
	candidates := b.blend(f.legs)
	ranking := &Ranking{Documents: group(candidates), Mode: f.mode, Fuzzy: f.fuzzy, full: f.full}
	timer.End(ctx)
	seen := witnessOf(ctx)
	seen.blended(&b, &f, candidates, ranking)
	before := seen.order(ranking)
	if f.missing {
		ranking.Degraded = append(ranking.Degraded, "vectors")
	}
	timer = observe.Begin(ctx, observe.Graph)
	r.reweigh(q, ranking.Documents)
	timer.End(ctx)
	seen.reweighed(ranking, before)
	if q.Explain && f.mode != Keyword {
		if plain := parseOperators(q.Text).plain; topic(plain) != plain {
			for i := range ranking.Documents {
				ranking.Documents[i].Embedded = topic(plain)
			}
		}
	}
	return ranking, nil
}

// reweighed is how many of the best documents the Reweigher is asked about.
const reweighed = 100

// reweigh adds the bounded bonus of the Reweigher to the best documents.
func (r *Retriever) reweigh(q Query, documents []RankedDocument) {
	if r.options.Reweigher == nil || len(documents) == 0 {
		return
	}
	documents = documents[:min(reweighed, len(documents))]
	paths := make([]string, len(documents))
	for i := range documents {
		paths[i] = documents[i].Path
	}
	limit := r.options.ReweighLimit
	for i, bonus := range r.options.Reweigher.Bonus(q, paths) {
		bonus = min(max(bonus, -limit), limit)
		documents[i].Graph = bonus
		documents[i].Score = documents[i].Recompute()
	}
	sortDocuments(documents)
}

// state reads what is known of the index.
func (r *Retriever) state() (docs.Meta, docs.Counts, error) {
	meta, err := r.sources.Documents.Meta()
	if err != nil {
		return meta, docs.Counts{}, fmt.Errorf("reading the state of the index: %w", err)
	}
	counts, err := r.sources.Documents.Counts()
	if err != nil {
		return meta, counts, fmt.Errorf("reading the state of the index: %w", err)
	}
	return meta, counts, nil
}

// explainEmpty says why there are no results and what to do.
func (a *Answer) explainEmpty() {
	if len(a.Results) > 0 {
		return
	}
	switch {
	case a.Index.State == "missing":
		a.Reason, a.Hint = "not_indexed", "the folder has not been indexed yet: call the tool index, then search again"
	case a.Index.State == "building":
		a.Reason, a.Hint = "indexing", "the folder is being indexed: search again soon, the tool status shows the progress"
	case a.Index.Files == 0:
		a.Reason, a.Hint = "empty_workspace", "the workspace holds no documents: the tool status says which folder it is and which files were skipped"
	case a.Index.State == "partial":
		a.Reason, a.Hint = "indexing", "the index is not complete: call the tool index to finish it, then search again"
	default:
		a.Reason, a.Hint = "no_match", "nothing matches: use other or fewer words, or fewer filters"
	}
}
