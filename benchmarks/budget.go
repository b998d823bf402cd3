package benchmarks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"cairn/retriever"
)

// BudgetReport is what answers hold within one token budget: hybrid searches that ask
// for the text of the hits.
type BudgetReport struct {
	// Tokens is the budget.
	Tokens int `json:"tokens"`
	// Recall is the share of queries for which the answer holds text of a relevant
	// document.
	Recall float64 `json:"recall"`
	// Hits is how many documents of the ranking the recall is to be compared with,
	// Ceiling the share of queries with a relevant document among those.
	Hits    int     `json:"hits"`
	Ceiling float64 `json:"ceiling"`
	// Text is the tokens of text in an answer, Answer those of the whole as JSON,
	// Results its hits with text; means over queries.
	Text    float64 `json:"text_tokens"`
	Answer  float64 `json:"answer_tokens"`
	Results float64 `json:"results"`
}

// rankedHits is how many hits an answer within a budget is compared with.
var rankedHits = map[int]int{500: 2, 1000: 5, 2000: 10, 4000: 15}

// measureBudgets runs all queries within each budget.
func (w *bench) measureBudgets(ctx context.Context, queries []beirQuery, o *DocsOptions) (reports []BudgetReport, err error) {
	firsts := make([][]string, len(queries)) // the ids of the first documents of each ranking
	for i, q := range queries {
		ranking, err := w.retriever.Rank(ctx, retriever.Query{Text: strings.TrimSpace(q.text)}, 0)
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", q.id, err)
		}
		for _, d := range ranking.Documents[:min(15, len(ranking.Documents))] {
			firsts[i] = append(firsts[i], w.ids[d.Path])
		}
	}
	for _, budget := range o.Budgets {
		r := BudgetReport{Tokens: budget, Hits: rankedHits[budget]}
		for i, q := range queries {
			a, err := w.retriever.Search(ctx, retriever.Query{Text: strings.TrimSpace(q.text), Limit: o.Limit, MaxTokens: budget})
			if err != nil {
				return nil, fmt.Errorf("query %s: %w", q.id, err)
			}
			found := false
			for _, result := range a.Results {
				if result.Content != "" {
					r.Results++
					r.Text += float64(o.Budget.CountTokens(result.Content))
					found = found || q.relevant[w.ids[result.Path]] > 0
				}
			}
			text, err := json.Marshal(a)
			if err != nil {
				return nil, err
			}
			r.Answer += float64(o.Budget.CountTokens(string(text)))
			if found {
				r.Recall++
			}
			r.Ceiling += Hit(firsts[i], q.relevant, r.Hits)
		}
		for _, f := range []*float64{&r.Recall, &r.Ceiling, &r.Text, &r.Answer, &r.Results} {
			*f /= float64(max(1, len(queries)))
		}
		reports = append(reports, r)
	}
	return reports, nil
}
