package benchmarks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"cairn/retriever"
)

// BudgetReport is the result of one way of reading within one token budget.
type BudgetReport struct {
	// System is cairn, which reads the answers of hybrid searches with the text of the
	// hits, or another way of reading: see readers.
	System string `json:"system"`
	// Tokens is the budget.
	Tokens int `json:"tokens"`
	// Recall is the share of queries for which the read text includes text of a relevant
	// section, or of a relevant document if relevant sections are not known.
	Recall float64 `json:"recall"`
	// TokensToFirst is the mean number of tokens up to the end of the first such text. For
	// a query without one it is the budget, or the number of tokens read if that is larger.
	TokensToFirst float64 `json:"tokens_to_first"`
	// Hits is the number of documents of the ranking to compare Recall with. Ceiling is
	// the share of queries with a relevant document among them.
	Hits    int     `json:"hits"`
	Ceiling float64 `json:"ceiling"`
	// Text is the mean number of tokens of the texts, Answer that of the texts with what
	// surrounds them, such as JSON. Results is the mean number of texts.
	Text    float64 `json:"text_tokens"`
	Answer  float64 `json:"answer_tokens"`
	Results float64 `json:"results"`
}

// rankedHits maps budgets to BudgetReport.Hits.
var rankedHits = map[int]int{500: 2, 1000: 5, 2000: 10, 4000: 15}

// piece is a text that a reader reads: lines of a document.
type piece struct {
	document     string
	from, to     int // lines, from 1, both included
	text, answer int // tokens of the text, and of the text with what surrounds it
}

// overlaps reports whether the piece has a line of one of the sections, or whether there are
// no sections.
func (p piece) overlaps(sections []piece) bool {
	for _, s := range sections {
		if s.document == p.document && p.from <= s.to && s.from <= p.to {
			return true
		}
	}
	return len(sections) == 0
}

// goldLines returns the lines of the relevant sections of a query.
func (w *bench) goldLines(q *RunQuery) (lines []piece, err error) {
	for _, place := range q.Sections {
		at := strings.LastIndexByte(place, '#')
		id, anchor := place[:at], place[at+1:]
		d, err := w.stores.Docs.Document(w.paths[id])
		if err != nil {
			return nil, err
		}
		if d == nil {
			return nil, fmt.Errorf("query %s: the index has no document %s", q.ID, id)
		}
		for i := range d.Sections {
			if s := &d.Sections[i]; s.Anchor == anchor {
				lines = append(lines, piece{document: id, from: s.StartLine, to: s.OwnEndLine})
			}
		}
	}
	return lines, nil
}

// cairnReader is the name of the reader that reads cairn's answers.
const cairnReader = "cairn"

// reader is a way of reading for a query within a budget.
type reader struct {
	name string
	read func(ctx context.Context, q *RunQuery, ranking []string, budget int) ([]piece, error)
}

// measureBudgets reads for all queries within each budget.
func (m *measurement) measureBudgets(ctx context.Context) ([]BudgetReport, error) {
	if len(m.o.Budgets) == 0 {
		return nil, nil
	}
	files := newFileReader(m)
	readers := []reader{{cairnReader, func(ctx context.Context, q *RunQuery, _ []string, budget int) ([]piece, error) {
		return m.readAnswer(ctx, q, retriever.Hybrid, budget)
	}}, {"whole files, cairn's order", files.whole}, {"ripgrep -C 2", files.grep}}
	reports := make([]BudgetReport, len(readers)*len(m.o.Budgets))
	for n := range m.set.queries {
		q := &m.set.queries[n]
		show(m.o.Progress, "budget searches", n, len(m.set.queries))
		ranking, err := m.rank(ctx, retriever.Query{Text: q.Text})
		if err != nil {
			return nil, fmt.Errorf("query %s: %w", q.ID, err)
		}
		gold, err := m.goldLines(q)
		if err != nil {
			return nil, err
		}
		for i, r := range readers {
			for j, budget := range m.o.Budgets {
				pieces, err := r.read(ctx, q, ranking, budget)
				if err != nil {
					return nil, fmt.Errorf("query %s: %w", q.ID, err)
				}
				report := &reports[i*len(m.o.Budgets)+j]
				report.System, report.Tokens, report.Hits = r.name, budget, rankedHits[budget]
				report.Ceiling += hit(ranking, q.Relevant, report.Hits)
				report.add(pieces, func(p piece) bool { return q.Relevant[p.document] > 0 && p.overlaps(gold) })
			}
		}
	}
	for i := range reports {
		r := &reports[i]
		for _, f := range []*float64{&r.Recall, &r.TokensToFirst, &r.Ceiling, &r.Text, &r.Answer, &r.Results} {
			*f /= float64(max(1, len(m.set.queries)))
		}
	}
	return reports, nil
}

// rank returns the documents of a ranking, best first.
func (w *bench) rank(ctx context.Context, q retriever.Query) (ids []string, err error) {
	q.Text = strings.TrimSpace(q.Text)
	ranking, err := w.retriever.Rank(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, d := range ranking.Documents[:min(runDepth, len(ranking.Documents))] {
		ids = append(ids, w.ids[d.Path])
	}
	return ids, nil
}

// add adds the texts read for one query.
func (r *BudgetReport) add(pieces []piece, relevant func(piece) bool) {
	read, first := 0, -1
	for _, p := range pieces {
		r.Results++
		r.Text += float64(p.text)
		r.Answer += float64(p.answer)
		if read += p.answer; first < 0 && relevant(p) {
			first = read
		}
	}
	if first < 0 {
		r.TokensToFirst += float64(max(r.Tokens, read))
		return
	}
	r.Recall++
	r.TokensToFirst += float64(first)
}

// readAnswer reads the answer of a search.
func (m *measurement) readAnswer(ctx context.Context, q *RunQuery, mode retriever.Mode, budget int) ([]piece, error) {
	a, err := m.retriever.Search(ctx, retriever.Query{Text: strings.TrimSpace(q.Text), Mode: mode, Limit: m.o.Limit, MaxTokens: budget})
	if err != nil {
		return nil, err
	}
	whole, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	rest := m.o.Budget.CountTokens(string(whole))
	var pieces []piece
	add := func(path, content string, lines retriever.Lines, part any) error {
		text, err := json.Marshal(part)
		p := piece{m.ids[path], lines.Start, lines.End, m.o.Budget.CountTokens(content), m.o.Budget.CountTokens(string(text))}
		rest -= p.answer
		pieces = append(pieces, p)
		return err
	}
	for _, result := range a.Results {
		more := result.More
		result.More = nil
		if err := add(result.Path, result.Content, result.Passage, &result); err != nil {
			return nil, err
		}
		for i := range more {
			if err := add(result.Path, more[i].Content, *more[i].Passage, &more[i]); err != nil {
				return nil, err
			}
		}
	}
	if len(pieces) > 0 { // the fields of the answer itself come first
		pieces[0].answer += max(0, rest)
	}
	return pieces, nil
}
