package toolsearch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"cairn/graphrank"
)

// ErrNoQuery is returned for a query without text. The contract defines its text.
var ErrNoQuery = errors.New("Missing required parameter: 'query'")

// DefaultLimit and MaxLimit are the default and the largest number of results.
const (
	DefaultLimit = 10
	MaxLimit     = 50
)

// maxRelated bounds the related tools in each direction.
const maxRelated = 2

// relatedScore is the fixed score of a related tool.
const relatedScore = 0.8

// Query is the argument of Search.
type Query struct {
	Text string
	// Limit is the number of results, 1 to MaxLimit; 0 means DefaultLimit.
	Limit int
	// ContextTools lists the IDs of tools in use, which are not results. Unknown IDs are
	// ignored.
	ContextTools []string
	// IncludeRelated adds the tools often used before and after each result.
	IncludeRelated bool
	// Explain adds every component of each score.
	Explain bool
}

// Answer is the result of Search, in the format of search_tools.
type Answer struct {
	Tools   []Found `json:"tools"`
	Meta    Meta    `json:"meta"`
	Message string  `json:"message,omitempty"`
	// Degraded lists what is missing or incomplete: "vectors", or "owner", which package
	// toolbox adds if the owner of the folder does not answer.
	Degraded []string `json:"degraded,omitempty"`
	// Remembered holds the past intents that voted, if Query.Explain is set.
	Remembered []Neighbour `json:"remembered,omitempty"`
}

// Found is one tool of an answer.
type Found struct {
	ID            string          `json:"tool_id"`
	Server        string          `json:"server_id"`
	Description   string          `json:"description"`
	InputSchema   json.RawMessage `json:"input_schema"`
	SemanticScore float64         `json:"semantic_score"` // score of the hybrid search, in [0, 1]
	GraphScore    float64         `json:"graph_score"`    // relatedness to the context, in [0, 1]
	FinalScore    float64         `json:"final_score"`    // blend of both by alpha
	// Score ranks the tools: the final score with PageRank and the memory of intents.
	Score   float64    `json:"score"`
	Related []Related  `json:"related_tools"`
	Explain *Candidate `json:"explain,omitempty"`
}

// Related is a tool used before or after another.
type Related struct {
	ID       string  `json:"tool_id"`
	Relation string  `json:"relation"` // often_before or often_after
	Score    float64 `json:"score"`
}

// Meta describes the search.
type Meta struct {
	Query     string  `json:"query"`
	Alpha     float64 `json:"alpha"`
	EdgeCount int     `json:"edge_count"`
}

// Search returns the tools that match a query, best first: they have a word of the query, a
// vector nearer than the model's MinSimilarity, or a score by past use. An answer without
// tools has a message.
func (x *Index) Search(ctx context.Context, q Query) (*Answer, error) {
	if strings.TrimSpace(q.Text) == "" {
		return nil, ErrNoQuery
	}
	if q.Limit < 0 || q.Limit > MaxLimit {
		return nil, fmt.Errorf("limit %d, want 1 to %d", q.Limit, MaxLimit)
	}
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	r, err := x.Rank(ctx, q.Text, Terms{Context: q.ContextTools})
	if err != nil {
		return nil, err
	}
	a := &Answer{Tools: []Found{}, Meta: Meta{Query: q.Text, Alpha: r.Alpha}, Degraded: r.Degraded}
	if u := x.options.Usage; u != nil {
		a.Meta.EdgeCount = u.EdgeCount()
	}
	if q.Explain {
		a.Remembered = r.Neighbours
	}
	least := r.model.NearEnough()
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if len(a.Tools) == q.Limit {
			break
		}
		if !c.matches(least) {
			continue
		}
		t, ok := x.Tool(c.ID)
		if !ok {
			continue // the catalogue has changed since the ranking
		}
		f := Found{ID: t.ID, Server: t.Server, Description: t.Description, InputSchema: t.Input, SemanticScore: c.Hybrid,
			GraphScore: c.Graph, FinalScore: c.Final, Score: c.Score, Related: []Related{}}
		if q.IncludeRelated && x.options.Usage != nil {
			f.Related = x.options.Usage.related(t.ID)
		}
		if q.Explain {
			f.Explain = c
		}
		a.Tools = append(a.Tools, f)
	}
	if len(a.Tools) == 0 {
		a.Message = fmt.Sprintf("No tool of %d fits the query: say in other words what the tool should do", x.Len())
		if x.Len() == 0 {
			a.Message = "The catalogue is empty: import tools first, with `cairn tools import`"
		}
	}
	return a, nil
}

// matches reports whether a leg or past use supports the tool. A vector leg needs a cosine
// above least.
func (c *Candidate) matches(least float64) bool {
	fits := func(l *Leg) bool { return l.BM25 > 0 || max(l.NameCosine, l.TextCosine) > least }
	return fits(&c.Whole) || fits(c.Fit()) || c.Graph > 0 || c.Injected > 0 || c.Memory > 0
}

// EdgeCount returns the number of edges of the co-usage graph.
func (u *Usage) EdgeCount() int {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.graph.EdgeCount()
}

// related returns the tools of the heaviest edges into and out of a tool.
func (u *Usage) related(id string) []Related {
	u.mu.RLock()
	defer u.mu.RUnlock()
	list := []Related{}
	for _, e := range heaviest(u.graph.In(id)) {
		list = append(list, Related{e.From, "often_before", relatedScore})
	}
	for _, e := range heaviest(u.graph.Out(id)) {
		list = append(list, Related{e.To, "often_after", relatedScore})
	}
	return list
}

// heaviest returns the maxRelated edges with the largest weights. Ties go to the larger count.
func heaviest(edges iter.Seq[graphrank.Edge]) []graphrank.Edge {
	list := slices.SortedStableFunc(edges, func(a, b graphrank.Edge) int {
		return cmp.Or(cmp.Compare(b.Weight(), a.Weight()), cmp.Compare(b.Count, a.Count))
	})
	return list[:min(len(list), maxRelated)]
}
