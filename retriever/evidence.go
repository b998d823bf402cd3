package retriever

import (
	"math"
	"strings"
)

// calibratedModel is the model whose cosines the estimate of evidence was fitted to. Of
// another model only the words count.
const calibratedModel = "all-MiniLM-L6-v2"

// coveredDocuments are the first documents of a ranking whose words are evidence.
const coveredDocuments = 5

// unlikely is the estimate below which an answer says that nothing relevant was found.
const unlikely = .1

// Unlikely reports whether the documents hardly have what the query asks for.
func (a *Answer) Unlikely() bool { return a.Answerable != nil && *a.Answerable < unlikely }

// weigh sets Answerable, after page, from the nearest cosine and the share of the query's terms in the
// passage of one of the first documents. The logistic regressions were fitted to questions
// of eight folders, asked of their own and of the other folders alike. The folder's scores
// for questions that it cannot answer were tried as evidence as well, and add
// nothing.
func (a *Answer) weigh(s *search, ranking *Ranking) {
	z := -4.6 + 11.3*s.covered
	if e := s.sources.Embedder; ranking.Mode != Keyword && !s.pending && e != nil && e.Description().Name == calibratedModel {
		nearest := 0.0
		for i := range ranking.Documents {
			nearest = max(nearest, ranking.Documents[i].BestVector)
		}
		z = -9.8 + 18.5*nearest + 3.75*s.covered
	}
	p := math.Round(100/(1+math.Exp(-z))) / 100
	p = min(max(p, .01), .99)
	a.Answerable = &p
	if a.Unlikely() && a.Hint == "" {
		a.Hint = "nothing here seems to answer this: say that it is not in these documents, or use other words"
	}
}

// share returns the share of the query's terms that the passage of d or its headings have.
func (t *terms) share(d *foundDocument) float64 {
	section := &d.doc.Sections[d.section]
	chunk := section.Chunks[d.chunk]
	text := strings.Join(section.Trail, "\n") + "\n" + d.doc.Title + "\n" + string(d.text[chunk.Start:chunk.End])
	return float64(len(t.in(text))) / float64(max(1, len(t.all)))
}
