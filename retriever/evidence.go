package retriever

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"cairn/internal/store/keyword"
)

// calibratedModel is the model to whose cosines the estimate of Answerable was fitted.
// With another model only the words count.
const calibratedModel = "all-MiniLM-L6-v2"

// coveredDocuments is the number of results whose words count as evidence.
const coveredDocuments = 5

// unlikely is the probability below which an answer states that nothing relevant was found,
// and unsure the one below which it states that no section surely answers the query. See
// benchmarks/answerable.md.
const (
	unlikely = .1
	unsure   = .6
)

// Unlikely reports whether the documents probably do not answer the query.
func (a *Answer) Unlikely() bool { return a.Answerable != nil && *a.Answerable < unlikely }

// weigh sets Answerable, after page, from the nearest cosine, the largest share of the
// query's terms in a passage of the first documents, and the number of passages. In a large
// index even a question without an answer has a near passage. The logistic regressions were
// fitted to the questions of eight folders, each run on all eight: see
// benchmarks/answerable.md.
func (a *Answer) weigh(s *search, ranking *Ranking) error {
	z := -4.6 + 11.3*s.covered
	if e := s.sources.Embedder; ranking.Mode != Keyword && !s.pending && e != nil && e.Description().Name == calibratedModel {
		nearest := 0.0
		for i := range ranking.Documents {
			nearest = max(nearest, ranking.Documents[i].BestVector)
		}
		z = -6.5 + 17.9*nearest + 3.9*s.covered - .41*math.Log(float64(1+a.Index.Embedded))
	}
	p := math.Round(100/(1+math.Exp(-z))) / 100
	p = min(max(p, .01), .99)
	a.Answerable = &p
	if p >= unsure || a.Hint != "" || len(a.Results) == 0 {
		return nil
	}
	a.Hint = "related, but no section surely answers this"
	if a.Unlikely() {
		a.Hint = "nothing here answers this: say that it is not in these documents, or use other words"
	}
	var err error
	if a.UnknownWords, err = s.unknown(); len(a.UnknownWords) > 0 {
		a.Hint += fmt.Sprintf("; not in any document: %s", strings.Join(a.UnknownWords, ", "))
	}
	return err
}

// unknown returns the words of the query that occur in no document.
func (s *search) unknown() ([]string, error) {
	stats, chunks, err := s.statistics(s.parsed)
	if err != nil || chunks == 0 {
		return nil, err
	}
	absent := map[string]bool{}
	for _, t := range stats {
		absent[t.Term] = t.Chunks == 0
	}
	var words []string
	for _, w := range strings.FieldsFunc(s.parsed.Words, betweenWords) {
		terms := keyword.Analyze(w)
		if len(terms) > 0 && !slices.ContainsFunc(terms, func(t string) bool { return !absent[t] }) && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words, nil
}

// cover updates covered with a result: the terms found in its passage and in its headings.
func (s *search) cover(d *foundDocument, found map[string]bool) {
	maps.Copy(found, s.marked.In(strings.Join(d.doc.Sections[d.section].Trail, "\n")+"\n"+d.doc.Title))
	s.covering.Lock()
	defer s.covering.Unlock()
	s.covered = max(s.covered, float64(len(found))/float64(max(1, s.marked.Len())))
}
