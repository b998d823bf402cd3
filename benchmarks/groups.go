package benchmarks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// GroupReport holds the figures of one group of queries, such as those of a kind.
type GroupReport struct {
	By      string `json:"by"` // kind, file or folder
	Group   string `json:"group"`
	Queries int    `json:"queries"`
	Metrics
	Sections *SectionMetrics `json:"sections,omitempty"`
}

// WorstQuery is a query with a bad answer, and the reason.
type WorstQuery struct {
	ID     string   `json:"id"`
	Text   string   `json:"text"`
	Want   []string `json:"want"`
	Rank   int      `json:"rank"` // of the first relevant document; 0 if it was not found
	First  string   `json:"first,omitempty"`
	Reason string   `json:"reason"`
}

// worstQueries bounds the result of worst.
const worstQueries = 20

// groups returns the figures of every group, the kinds first; nil for a run without groups.
func (r *Run) groups() []GroupReport {
	type key struct{ by, group string }
	runs := map[key]*Run{}
	for _, q := range r.Queries {
		for by, group := range q.Groups {
			k := key{by, group}
			if runs[k] == nil {
				runs[k] = &Run{}
			}
			runs[k].Queries = append(runs[k].Queries, q)
		}
	}
	order := map[string]int{"kind": 0, "file": 1, "folder": 2}
	keys := slices.SortedFunc(maps.Keys(runs), func(a, b key) int {
		return cmp.Or(order[a.by]-order[b.by], strings.Compare(a.group, b.group))
	})
	var out []GroupReport
	for _, k := range keys {
		out = append(out, GroupReport{k.by, k.group, len(runs[k].Queries), runs[k].Metrics(), runs[k].sections()})
	}
	return out
}

// worst returns the queries whose relevant document ranks lowest.
func (r *Run) worst() []WorstQuery {
	var out []WorstQuery
	for i := range r.Queries {
		q := &r.Queries[i]
		if q.Best != nil && q.Best.Rank == 1 && (len(q.Sections) == 0 || q.sectionHit(1) == 1) {
			continue
		}
		w := WorstQuery{ID: q.ID, Text: q.Text, Want: q.Sections, Reason: q.reason()}
		if len(w.Want) == 0 {
			w.Want = slices.Sorted(maps.Keys(q.Relevant))
		}
		if q.Best != nil {
			w.Rank = q.Best.Rank
		}
		if len(q.Found) > 0 {
			w.First = q.Found[0]
		} else if q.First != nil {
			w.First = q.First.ID
		}
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b WorstQuery) int {
		lost := func(w WorstQuery) int { return cmp.Or(w.Rank, runDepth+1) }
		return lost(b) - lost(a)
	})
	return out[:min(worstQueries, len(out))]
}

// reason explains why another document or section ranks before the relevant one.
func (q *RunQuery) reason() string {
	switch {
	case q.First == nil:
		return "nothing was found"
	case q.Best == nil:
		return "the search does not return the document"
	case q.Best.Rank == 1:
		return "the right document, by another section of it"
	case q.First.Keyword+q.First.Vector == 0:
		return "another document has the higher score"
	case q.Best.Keyword == 0 && q.First.Keyword > 0:
		return "no word of the query is in the document"
	}
	words, meaning := q.First.Keyword-q.Best.Keyword, q.First.Vector-q.Best.Vector
	switch {
	case words >= 2*meaning:
		return fmt.Sprintf("the first has more of the words (%+.3f; meaning %+.3f)", words, meaning)
	case meaning >= 2*words:
		return fmt.Sprintf("the first is nearer in meaning (%+.3f; words %+.3f)", meaning, words)
	}
	return fmt.Sprintf("the first has more of the words (%+.3f) and is nearer in meaning (%+.3f)", words, meaning)
}

// writeGroups writes the tables of groups and of the worst queries.
func writeGroups(b *strings.Builder, groups []GroupReport, worst []WorstQuery) {
	by := ""
	for _, g := range groups {
		if g.By != by {
			by = g.By
			fmt.Fprintf(b, "\n\n%-28s %7s %8s %8s %8s %8s %10s %10s", "by "+by, "queries", "hit@1", "hit@5", "mrr", "ndcg@10", "section@1", "section@3")
		}
		fmt.Fprintf(b, "\n%-28.28s %7d %8.4f %8.4f %8.4f %8.4f", g.Group, g.Queries, g.Hit1, g.Hit5, g.MRR, g.NDCG10)
		if g.Sections != nil {
			fmt.Fprintf(b, " %10.4f %10.4f", g.Sections.Hit1, g.Sections.Hit3)
		}
	}
	if len(worst) > 0 {
		fmt.Fprintf(b, "\n\nThe worst %d:", len(worst))
	}
	for _, w := range worst {
		rank := "not found"
		if w.Rank > 0 {
			rank = fmt.Sprint("rank ", w.Rank)
		}
		fmt.Fprintf(b, "\n%-9s  %s\n           wanted %s, first %s: %s", rank, w.Text, strings.Join(w.Want, " or "), cmp.Or(w.First, "none"), w.Reason)
	}
}
