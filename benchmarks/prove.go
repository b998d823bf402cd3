package benchmarks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"cairn/internal/folder/config"
	"cairn/retriever"
)

// ProveOptions configures Prove. DocsOptions needs Config, Embedder and Budget.
type ProveOptions struct {
	DocsOptions
	Selection config.Selection
	// Questions is a file of questions; see ownQueries. Without it they are derived from
	// the folder: at most Sample of each kind (0 means 60), chosen with Seed.
	Questions string
	Sample    int
	Seed      uint64
	// Tokens is the budget of every answer; 0 means 4,000.
	Tokens int
}

// Proof compares searches of a folder with other ways of finding the same texts.
type Proof struct {
	Folder    string         `json:"folder"`
	Documents int            `json:"documents"`
	Questions map[string]int `json:"questions"` // by kind
	Tokens    int            `json:"tokens"`    // budget of an answer
	// Vectors is the share of the chunks that have a vector.
	Vectors float64       `json:"vectors"`
	Seconds float64       `json:"seconds"`
	Systems []ProofSystem `json:"systems"` // cairn first
	Rivals  []Duel        `json:"rivals"`
	Lost    []LostAnswer  `json:"lost"` // the worst first, at most shownLost
	// LostCount is the number of questions for which a rival needs fewer tokens than cairn.
	LostCount int    `json:"lost_count"`
	Verdict   string `json:"verdict"` // gain, no gain or cannot tell, and why

	queries []provedQuery
	names   []string    // of the systems
	answers [][][]piece // by system and question
}

// ProofSystem holds the means of one system over all questions, with 95 % confidence
// intervals. First and Five are the shares for which the first document, or one of the first
// five, is right. InView is the share for which the answer includes the right text, Read the
// tokens up to its beginning. Without it, Read is the budget.
type ProofSystem struct {
	System string                `json:"system"`
	First  float64               `json:"first"`
	Five   float64               `json:"five"`
	InView float64               `json:"in_view"`
	Read   float64               `json:"read"`
	CI     map[string][2]float64 `json:"ci95"`
}

// Duel compares cairn with one rival by the tokens up to the right text.
type Duel struct {
	Rival  string     `json:"rival"`
	Better int        `json:"better"` // questions for which cairn saves tokens worth counting
	Worse  int        `json:"worse"`
	Equal  int        `json:"equal"`
	P      float64    `json:"p"`     // of Saved: see flipSigns
	Saved  float64    `json:"saved"` // mean of the tokens that cairn saves
	CI     [2]float64 `json:"ci95"`  // of Saved
}

// LostAnswer is a question for which a rival needs fewer tokens than cairn. A number of
// tokens is 0 if the text is not in the answer.
type LostAnswer struct {
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Want  string `json:"want"`
	Read  int    `json:"read"`
	Rival string `json:"rival"`
	Needs int    `json:"rival_read"`
}

// provedQuery is a question with the lines that answer it; none mean whole documents.
type provedQuery struct {
	RunQuery
	kind string
	gold []piece
}

// outcome is the answer of one system to one question.
type outcome struct {
	rank   int // of the first right document; 0 if there is none
	read   float64
	inView bool
}

const (
	defaultProofTokens = 4000
	shownLost          = 10
	// vectorsLimit bounds the time for vectors that the folder's own index lacks.
	vectorsLimit = 20 * time.Second
	// A gain needs a p-value below significant against every rival, and a verdict
	// minVerdict questions. A difference of little of the budget does not count.
	significant = .01
	minVerdict  = 30
	little      = .02
)

// Prove compares hybrid searches of a folder with matching lines as of ripgrep, with whole
// files in the order of matching words, and with searches by words alone. No judgements are
// needed: see knownItem. Prove copies the documents to a temporary folder.
func Prove(ctx context.Context, o ProveOptions) (*Proof, error) {
	start := time.Now()
	o.Sample, o.Tokens, o.VectorsLimit = cmp.Or(o.Sample, defaultSample), cmp.Or(o.Tokens, defaultProofTokens), cmp.Or(o.VectorsLimit, vectorsLimit)
	pages, err := readFolder(ctx, o.Selection, &o.Config, o.Config.Walk())
	if err != nil {
		return nil, err
	}
	var queries []provedQuery
	if o.Questions != "" {
		own, err := ownQueries(o.Questions, pages)
		if err != nil {
			return nil, err
		}
		for _, q := range own {
			queries = append(queries, provedQuery{RunQuery: q, kind: "own"})
		}
	} else if queries, err = knownItems(ctx, pages, o.Selection.Root, &o); err != nil {
		return nil, err
	}
	p, err := prove(ctx, &beirSet{documents: documentsOf(pages)}, queries, &o)
	if err != nil {
		return nil, err
	}
	p.Folder, p.Seconds = o.Selection.Root, time.Since(start).Seconds()
	return p, nil
}

// prove asks the questions about a set.
func prove(ctx context.Context, set *beirSet, queries []provedQuery, o *ProveOptions) (*Proof, error) {
	dir, err := os.MkdirTemp(o.Work, "cairn-prove-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o.Budgets = []int{o.Tokens}
	w, err := openBench(ctx, dir, set, &o.DocsOptions, nil)
	if err != nil {
		return nil, err
	}
	defer w.close()
	p := &Proof{Documents: len(set.documents), Questions: map[string]int{}, Tokens: o.Tokens, queries: queries}
	counts, err := w.stores.Docs.Counts()
	if err != nil {
		return nil, err
	}
	p.Vectors = 1 - float64(counts.Vectors.Chunks)/float64(max(1, counts.Chunks))
	m := &measurement{bench: w, set: set}
	files := newFileReader(m)
	answer := func(mode retriever.Mode) func(context.Context, *RunQuery, []string, int) ([]piece, error) {
		return func(ctx context.Context, q *RunQuery, _ []string, budget int) ([]piece, error) {
			return m.readAnswer(ctx, q, mode, budget)
		}
	}
	readers := []reader{
		{cairnReader, answer(retriever.Hybrid)}, {"ripgrep -C 2", files.grep},
		{"whole files", func(ctx context.Context, q *RunQuery, _ []string, budget int) ([]piece, error) {
			var ids []string // of the documents with the words of the question, as grep orders them
			for _, file := range files.files(files.words(q.Text)) {
				ids = append(ids, files.lower[file.at].id)
			}
			return files.whole(ctx, q, ids, budget)
		}},
		{"words alone", answer(retriever.Keyword)},
	}
	p.answers = make([][][]piece, len(readers))
	for n := range queries {
		q := &queries[n]
		p.Questions[q.kind]++
		if len(q.Sections) > 0 {
			if q.gold, err = w.goldLines(&q.RunQuery); err != nil {
				return nil, err
			}
		}
		show(o.Progress, "questions", n, len(queries))
		for i, r := range readers {
			pieces, err := r.read(ctx, &q.RunQuery, nil, o.Tokens)
			if err != nil {
				return nil, fmt.Errorf("question %q: %w", q.Text, err)
			}
			p.answers[i] = append(p.answers[i], pieces)
		}
	}
	for _, r := range readers {
		p.names = append(p.names, r.name)
	}
	p.conclude()
	return p, nil
}

// judge returns the outcome of an answer. Text of a piece counts up to the first right line;
// if whole documents are right, the whole piece.
func (q *provedQuery) judge(pieces []piece, budget int) outcome {
	out, read := outcome{read: float64(budget)}, 0.0
	var seen []string
	for _, p := range pieces {
		if !slices.Contains(seen, p.document) {
			seen = append(seen, p.document)
		}
		if q.Relevant[p.document] > 0 {
			out.rank = cmp.Or(out.rank, len(seen))
			if p.overlaps(q.gold) {
				until := p.to
				for _, g := range q.gold {
					if g.document == p.document && g.to >= p.from {
						until = min(until, max(g.from, p.from))
					}
				}
				out.inView = true
				out.read = min(out.read, read+float64(p.answer)*float64(until-p.from+1)/float64(max(1, p.to-p.from+1)))
				return out
			}
		}
		read += float64(p.answer)
	}
	return out
}

// means returns the means of the outcomes of a system.
func means(name string, outcomes []outcome) ProofSystem {
	s := ProofSystem{System: name, CI: map[string][2]float64{}}
	values := make([][]float64, len(outcomes))
	for i, o := range outcomes {
		share := func(yes bool) float64 {
			if yes {
				return 1
			}
			return 0
		}
		values[i] = []float64{share(o.rank == 1), share(o.rank >= 1 && o.rank <= 5), share(o.inView), o.read}
		for k, f := range []*float64{&s.First, &s.Five, &s.InView, &s.Read} {
			*f += values[i][k] / float64(len(outcomes))
		}
	}
	bounds := bootstrap(values, 4)
	for k, metric := range []string{"first", "five", "in_view", "read"} {
		s.CI[metric] = bounds[k]
	}
	return s
}

// duel compares the outcomes of cairn and a rival.
func duel(rival string, ours, theirs []outcome, budget int) Duel {
	d := Duel{Rival: rival}
	saved, differences := make([][]float64, len(ours)), make([]float64, len(ours))
	for i := range ours {
		s := theirs[i].read - ours[i].read
		saved[i], differences[i] = []float64{s}, s
		d.Saved += s / float64(len(ours))
		switch {
		case s > little*float64(budget):
			d.Better++
		case s < -little*float64(budget):
			d.Worse++
		default:
			d.Equal++
		}
	}
	d.P, d.CI = flipSigns([][]float64{differences}, randomRounds, 1)[0], bootstrap(saved, 1)[0]
	return d
}

// conclude sets what follows from the answers.
func (p *Proof) conclude() {
	outcomes := make([][]outcome, len(p.answers))
	p.Systems, p.Rivals, p.Lost = nil, nil, nil
	for i := range p.answers {
		for n, pieces := range p.answers[i] {
			outcomes[i] = append(outcomes[i], p.queries[n].judge(pieces, p.Tokens))
		}
		p.Systems = append(p.Systems, means(p.names[i], outcomes[i]))
		if i > 0 {
			p.Rivals = append(p.Rivals, duel(p.names[i], outcomes[0], outcomes[i], p.Tokens))
		}
	}
	for n, q := range p.queries {
		ours, best := outcomes[0][n], 1
		for i := range outcomes[1:] {
			if outcomes[i+1][n].read < outcomes[best][n].read {
				best = i + 1
			}
		}
		theirs := outcomes[best][n]
		if ours.read-theirs.read <= little*float64(p.Tokens) {
			continue
		}
		want := strings.Join(slices.Sorted(maps.Keys(q.Relevant)), " or ")
		if len(q.gold) > 0 {
			want = fmt.Sprintf("%s:%d-%d", q.gold[0].document, q.gold[0].from, q.gold[0].to)
		}
		p.Lost = append(p.Lost, LostAnswer{q.kind, q.Text, want, ours.tokens(), p.names[best], theirs.tokens()})
	}
	p.LostCount = len(p.Lost)
	slices.SortStableFunc(p.Lost, func(a, b LostAnswer) int {
		return cmp.Compare(cmp.Or(b.Read, p.Tokens)-b.Needs, cmp.Or(a.Read, p.Tokens)-a.Needs)
	})
	p.Lost = p.Lost[:min(shownLost, len(p.Lost))]
	p.Verdict = p.verdict()
}

// verdict returns the verdict in one line. A gain is one over every rival, so that no
// correction for several tests is needed (Berger, Technometrics 1982).
func (p *Proof) verdict() string {
	if len(p.queries) < minVerdict {
		return fmt.Sprintf("cannot tell: %d questions are too few; collect your own with `cairn bench ask`, and name them with --queries.", len(p.queries))
	}
	var open []string
	for _, d := range p.Rivals {
		switch {
		case d.P < significant && d.Saved > 0:
		case d.CI[1] < little*float64(p.Tokens) || d.P < significant:
			return fmt.Sprintf("no gain: over %s, cairn saves %.0f tokens (95 %%: %.0f to %.0f).", d.Rival, d.Saved, d.CI[0], d.CI[1])
		default:
			open = append(open, d.Rival)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("cannot tell: the difference from %s can be chance.", strings.Join(open, " and from "))
	}
	s := &p.Systems[0]
	return fmt.Sprintf("gain: cairn shows the right text after fewer tokens than every rival, for %.0f of 100 questions and after %.0f tokens on average.", 100*s.InView, s.Read)
}

// tokens returns the tokens up to the right text, 0 if it is not in view.
func (o outcome) tokens() int {
	if !o.inView {
		return 0
	}
	return max(1, int(math.Round(o.read)))
}

// String returns the proof as one page.
func (p *Proof) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d documents, vectors for %.0f %% of the chunks, %.1f s\nQuestions:", p.Folder, p.Documents, 100*p.Vectors, p.Seconds)
	for _, kind := range slices.Sorted(maps.Keys(p.Questions)) {
		fmt.Fprintf(&b, " %d of kind %s;", p.Questions[kind], kind)
	}
	fmt.Fprintf(&b, " answers of %d tokens\n\n%-14s %6s %6s %8s %13s %7s %14s", p.Tokens, "", "first", "five", "in view", "95 %", "tokens", "95 %")
	for _, s := range p.Systems {
		v, r := s.CI["in_view"], s.CI["read"]
		fmt.Fprintf(&b, "\n%-14s %6.3f %6.3f %8.3f %6.3f-%.3f %7.0f %8.0f-%.0f", s.System, s.First, s.Five, s.InView, v[0], v[1], s.Read, r[0], r[1])
	}
	fmt.Fprintf(&b, "\n\n%-18s %7s %7s %7s %8s %7s %16s", "cairn against", "better", "worse", "equal", "p", "saved", "95 %")
	for _, d := range p.Rivals {
		fmt.Fprintf(&b, "\n%-18s %7d %7d %7d %8.4f %7.0f %8.0f to %.0f", d.Rival, d.Better, d.Worse, d.Equal, d.P, d.Saved, d.CI[0], d.CI[1])
	}
	fmt.Fprintf(&b, "\n\nLost: a rival needs fewer tokens for %d of %d questions", p.LostCount, len(p.queries))
	for _, l := range p.Lost {
		ours := "not in view"
		if l.Read > 0 {
			ours = fmt.Sprint(l.Read, " tokens")
		}
		fmt.Fprintf(&b, "\n  %s: %s\n    %s: %s, %s %d", l.Kind, l.Text, l.Want, ours, l.Rival, l.Needs)
	}
	return b.String() + "\n\nVerdict: " + p.Verdict
}
