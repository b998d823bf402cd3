package retriever

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cairn/internal/base/observe"
	"cairn/internal/store/docs"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
	"cairn/internal/text/walk"
)

// search is the state of one search.
type search struct {
	*Retriever
	Query
	brief   bool            // an answer as text without MaxTokens in the request
	parsed  query.Query     // of Query.Text
	pending bool            // some chunks have no vector yet
	version int             // of the documents before the legs ran; 0 if unknown
	trace   *tracer         // nil unless the search is explained
	apart   bool            // no text has the phrases, so their words need not be together
	files   *walk.Lookup    // set while page runs; nil without a workspace folder
	marked  *keyword.Marker // of parsed, set by page
	// covered is the largest share of the query's terms that one of the first results
	// contains.
	covered  float64
	covering sync.Mutex
	notes    map[string][]Outdated // the notes that were checked
}

// Search answers a query with a page of documents, each represented by its
// best-matching section. It fails with *InvalidError for an invalid argument, with
// *IndexChangedError for a cursor of an earlier generation, and with the error of a
// store that fails.
func (r *Retriever) Search(ctx context.Context, q Query) (*Answer, error) {
	paged, brief := q.Limit > 0 || q.Cursor != "", q.AsText && q.MaxTokens == 0
	q, err := q.check(r.options.MaxQuery)
	if err != nil {
		return nil, err
	}
	if brief {
		q.MaxTokens = DefaultTokens
	}
	s, meta, counts, err := r.newSearch(ctx, q)
	if err != nil {
		return nil, err
	}
	s.brief = brief
	from, err := decodeCursor(&q, meta.Generation)
	if err != nil {
		return nil, err
	}
	building, unread := false, 0
	if r.sources.Building != nil {
		building, unread = r.sources.Building()
	}
	state := NewIndexState(meta, counts, building, unread)
	if s.trace != nil {
		s.trace.query = s.parsed
	}
	offset := int(from.Offset)
	if s.version, err = r.sources.Documents.Version(); err != nil {
		return nil, fmt.Errorf("reading the state of the index: %w", err)
	}
	for depth := r.options.Depth; ; depth *= 4 {
		ranking, err := s.rank(ctx, depth)
		if err != nil {
			return nil, err
		}
		if ranking.full && len(ranking.Documents) <= offset+q.Limit {
			continue // the page would not be full either
		}
		if err := s.rerank(ctx, ranking); err != nil {
			return nil, err
		}
		timer := observe.Begin(ctx, observe.Page)
		answer, err := s.page(ctx, ranking, offset)
		timer.End(ctx)
		if err != nil {
			return nil, err
		}
		if !answer.HasMore && ranking.full {
			continue
		}
		if q.Paths {
			answer.Paths = pathsOf(ranking.Documents)
		}
		answer.Index = state
		if state.Unindexed > 0 && meta.Generation == 0 {
			answer.Degraded = append(answer.Degraded, "files")
		}
		if answer.HasMore {
			answer.NextCursor = new(encodeToken(&cursor{uint32(offset + q.Limit), meta.Generation, q.identity()}))
		}
		if utf8.RuneCountInString(q.Text) > condensedQuery {
			answer.Searched = s.parsed.Words
		}
		if answer.explainEmpty(); s.apart && len(answer.Results) > 0 {
			answer.Hint = "no text has the quoted words in this order; these results have some of them"
		}
		if strings.Contains(q.Text, ".") && !strings.Contains(q.Text, " ") { // perhaps the path of a file
			skipped, _ := s.sources.Documents.Skipped()
			for _, f := range skipped {
				if f.Path == q.Text && !strings.HasPrefix(f.Reason, "indexed") {
					answer.Hint = f.Path + " is not indexed: " + walk.WithAdvice(f.Reason)
				}
			}
		}
		if offset == 0 && state.State == "ready" {
			if err := answer.weigh(s, ranking); err != nil {
				return nil, err
			}
		}
		if q.AsText {
			if !paged {
				answer.NextCursor = nil
			}
			answer.Folders = slices.DeleteFunc(answer.Folders, func(f Folder) bool { return r.options.Contexts[f.Path] == "" })
		}
		if q.MaxTokens > 0 {
			timer := observe.Begin(ctx, observe.Fit)
			s.fit(answer)
			timer.End(ctx)
		}
		ranking.release()
		return answer, nil
	}
}

// Rank ranks the documents that q finds, best first, without making a page. It ignores
// Limit, Cursor and MaxTokens, and accepts a query of any length.
func (r *Retriever) Rank(ctx context.Context, q Query) (*Ranking, error) {
	mode, err := ParseMode(string(q.Mode))
	if err != nil {
		return nil, err
	}
	q.Mode = mode
	s, _, _, err := r.newSearch(ctx, q)
	if err != nil {
		return nil, err
	}
	ranking, err := s.rank(ctx, r.options.Depth)
	if err != nil {
		return nil, err
	}
	return ranking, s.rerank(ctx, ranking)
}

// Present returns the first limit documents of a ranking as a page, as Search does.
func (r *Retriever) Present(ctx context.Context, q Query, ranking *Ranking, limit int) (*Answer, error) {
	q.Limit = limit
	s := &search{Retriever: r, Query: q, parsed: ranking.query}
	return s.page(ctx, ranking, 0)
}

// rank runs and blends the legs, for at most depth chunks each, groups the chunks into
// documents and adds the bonus of the Reweigher. If no text has the phrases of the query, it
// ranks by their words.
func (s *search) rank(ctx context.Context, depth int) (*Ranking, error) {
	l, err := s.ask(ctx, depth)
	if err == nil {
		err = s.complete(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	timer := observe.Begin(ctx, observe.Blend)
	b := s.blender(l.mode)
	candidates := b.blend(l)
	again := 0 // depth
	switch {
	case s.sources.Legs == nil && l.full && l.depth < deepDepth && lacksDefinition(candidates, strings.TrimSpace(s.Query.Text)):
		again = deepDepth
	case len(candidates) == 0 && len(s.parsed.Phrases) > 0:
		s.parsed.Phrases, s.apart, again = nil, true, l.depth
	}
	if again > 0 {
		release(candidates)
		timer.End(ctx)
		return s.rank(ctx, again)
	}
	if err := s.addNamed(&candidates); err != nil {
		return nil, err
	}
	if err := placeCode(candidates, strings.TrimSpace(s.Query.Text), s.findDeclarations); err != nil {
		return nil, err
	}
	ranking := group(candidates)
	ranking.Mode, ranking.Fuzzy, ranking.full, ranking.query = l.mode, l.fuzzy, l.full, s.parsed
	timer.End(ctx)
	s.trace.blended(&b, l, candidates, ranking)
	release(candidates)
	if l.missing {
		ranking.Degraded = append(ranking.Degraded, "vectors")
	}
	before := s.trace.order(ranking)
	timer = observe.Begin(ctx, observe.Graph)
	s.reweigh(ranking.Documents)
	timer.End(ctx)
	s.trace.reweighed(ranking, before)
	return ranking, s.weighNotes(ctx, ranking.Documents)
}

// reweighed is how many of the best documents are passed to the Reweigher.
const reweighed = 100

// reweigh adds the bounded bonus of the Reweigher to the best documents.
func (s *search) reweigh(documents []RankedDocument) {
	if s.options.Reweigher == nil || len(documents) == 0 {
		return
	}
	documents = documents[:min(reweighed, len(documents))]
	limit := s.options.ReweighLimit
	for i, bonus := range s.options.Reweigher.Bonus(s.Query, pathsOf(documents)) {
		documents[i].Graph = min(max(bonus, -limit), limit)
		documents[i].Score = documents[i].Recompute()
	}
	sortDocuments(documents)
}

// newSearch parses a query, and reads the generation and the counts of the index.
func (r *Retriever) newSearch(ctx context.Context, q Query) (s *search, meta docs.Meta, counts docs.Counts, err error) {
	if meta, err = r.sources.Documents.Meta(); err == nil {
		counts, err = r.sources.Documents.Counts()
	}
	if err != nil {
		return nil, meta, counts, fmt.Errorf("reading the state of the index: %w", err)
	}
	s = &search{Retriever: r, Query: q, pending: counts.Vectors.Chunks > 0, trace: tracerOf(ctx)}
	s.parsed, err = r.parse(q.Text)
	return s, meta, counts, err
}

// explainEmpty sets Reason and Hint of an empty answer.
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
		a.Reason, a.Hint = "empty_workspace", "the workspace holds no documents: the tool status shows which folder it is and which files were skipped"
	case a.Index.State == "partial":
		a.Reason, a.Hint = "indexing", "the index is not complete: call the tool index to finish it, then search again"
	default:
		a.Reason, a.Hint = "no_match", "nothing matches: use other or fewer words, or fewer filters"
	}
}
