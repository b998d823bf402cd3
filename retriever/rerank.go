package retriever

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"cairn/internal/base/observe"
	"cairn/internal/store/docs"
	"cairn/internal/text/markdown"
)

// A re-ranker reads the best passage of each of the first rerankedDocuments documents,
// then further passages of the best documents, at most rerankedPassages in all.
const (
	rerankedDocuments = 20
	rerankedPassages  = 30
	furtherPassages   = 2 // of a document
)

// DefaultRerankBudget is the time limit of a re-ranker in one search. On two cores, a
// model of MiniLM's size reads 30 passages of 170 tokens in this time.
const DefaultRerankBudget = 400 * time.Millisecond

// rerankable is a passage for the re-ranker.
type rerankable struct {
	document, section int // indices into the ranking and the document's sections
	text              string
}

// rerankWeight is the share of the re-ranker in the score of a document or section. With
// ms-marco-MiniLM-L-12-v2 it changes nDCG@10 by +.005 on average over eight sets, and by
// -.007 at worst; the logits alone lower it by .030 (benchmarks/quality.md).
const rerankWeight = 0.1

// rerank blends the scores of the best documents, and of the sections within them, with the
// re-ranker's: the best score times the logistic function of the logit. Documents that the
// re-ranker does not read in time keep their scores.
func (s *search) rerank(ctx context.Context, ranking *Ranking) error {
	documents := ranking.Documents[:min(rerankedDocuments, len(ranking.Documents))]
	if s.options.Reranker == nil || len(documents) < 2 {
		return nil
	}
	reranker, err := s.options.Reranker()
	if err != nil {
		return err
	}
	defer observe.Begin(ctx, observe.Rerank).End(ctx)
	passages, err := s.passages(documents)
	if err != nil {
		return err
	}
	texts := make([]string, len(passages))
	for i := range passages {
		texts[i] = passages[i].text
	}
	budget, cancel := context.WithTimeout(ctx, s.options.RerankBudget)
	defer cancel()
	logits, err := reranker.Rerank(budget, s.parsed.Words, texts)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("re-ranking: %w", err)
	}
	if len(logits) < len(passages) {
		ranking.Degraded = append(ranking.Degraded, "rerank")
	}
	before := s.trace.order(ranking)
	applyLogits(documents, passages[:len(logits)], logits)
	sortDocuments(documents)
	s.trace.reranked(ranking, before, len(passages), len(logits), s.options.RerankBudget)
	return nil
}

// passages returns the passages for the re-ranker: the best passage of each document,
// then further passages.
func (s *search) passages(documents []RankedDocument) (passages []rerankable, err error) {
	err = s.sources.Documents.View(func(reader *docs.Reader) error {
		if err := reader.Prefetch(pathsOf(documents)); err != nil {
			return fmt.Errorf("reading the documents to re-rank: %w", err)
		}
		var further []rerankable
		for i := range documents {
			d, err := readFound(reader, &documents[i], s.version)
			if err != nil {
				return err
			}
			if d == nil {
				continue // page leaves it out, too
			}
			shown := slices.IndexFunc(documents[i].Sections, func(r RankedSection) bool { return r.Anchor == d.doc.Sections[d.section].Anchor })
			if shown < 0 {
				continue // every section found is blank
			}
			passages = append(passages, d.rerankable(i, shown))
			for n := range documents[i].Sections[:min(1+furtherPassages, len(documents[i].Sections))] {
				if n != shown && len(further) < rerankedPassages {
					further = append(further, d.rerankable(i, n))
				}
			}
		}
		further = slices.DeleteFunc(further, func(p rerankable) bool { return p.text == "" })
		passages = append(passages, further[:max(0, min(len(further), rerankedPassages-len(passages)))]...)
		return nil
	})
	return passages, err
}

// rerankable returns the best chunk of a ranked section under its headings. The text is
// empty if the document no longer has the section.
func (d *foundDocument) rerankable(document, section int) rerankable {
	p := rerankable{document: document, section: section}
	ranked := &d.ranked.Sections[section]
	m := sectionOf(d.doc, ranked)
	if m < 0 || blankPreamble(d.doc, m, d.text) {
		return p
	}
	s := &d.doc.Sections[m]
	c := s.Chunks[ranked.Chunk]
	head := s.Trail
	if len(head) == 0 || head[0] != d.doc.Title {
		head = slices.Concat([]string{d.doc.Title}, head)
	}
	p.text = strings.Join(head, "\n") + "\n" + markdown.Plain(d.doc.Path, c.Fence, d.text[c.Start:c.End])
	return p
}

// applyLogits blends the scores of documents and sections with the logits of their passages.
func applyLogits(documents []RankedDocument, passages []rerankable, logits []float64) {
	if len(logits) < 2 {
		return
	}
	best := make([]float64, len(documents))
	for i := range best {
		best[i] = math.Inf(-1)
	}
	for i, p := range passages {
		best[p.document] = max(best[p.document], logits[i])
	}
	top := documents[0].Score
	blend := func(score, logit float64) float64 {
		return score + rerankWeight*(top/(1+math.Exp(-logit))-score)
	}
	for i, p := range passages {
		s := &documents[p.document].Sections[p.section]
		s.Score, s.reranked = blend(s.Score, logits[i]), true
	}
	for i := range documents {
		d := &documents[i]
		if math.IsInf(best[i], -1) {
			continue
		}
		d.Logit, d.Rerank = &best[i], blend(d.Score, best[i])-d.Score
		d.Score = d.Recompute()
		slices.SortStableFunc(d.Sections, func(a, b RankedSection) int {
			switch {
			case a.reranked == b.reranked:
				return cmp.Compare(b.Score, a.Score)
			case a.reranked:
				return -1
			}
			return 1
		})
		least := math.Inf(1) // sections that were not read stay below those that were
		for j := range d.Sections {
			if d.Sections[j].reranked {
				least = d.Sections[j].Score
			}
			d.Sections[j].Score = min(d.Sections[j].Score, least)
		}
	}
}
