package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/stage/support"
	"cairn/retriever"
)

// hitPrefix is the prefix of the ids of hits. The ids are valid arguments of read_doc.
const hitPrefix = "doc:"

// Library searches and reads passages. *workspace.Workspace implements it.
type Library interface {
	Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error)
	ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error)
}

// Reasoner answers briefs, for example with a language model.
type Reasoner interface {
	Answer(ctx context.Context, b *Brief) (*Answered, error)
}

// Judge checks a draft in addition to the rules. Confidence is in [0, 1].
type Judge interface {
	Judge(ctx context.Context, b *Brief, d Draft) (confidence float64, problem string, err error)
}

// Analyst finds the intent of a query, for example with a language model. Words, Complexity
// and SearchQuery of the Intent are those of the rules.
type Analyst interface {
	Intent(ctx context.Context, query string) (*Intent, error)
}

// WebSearcher searches beyond the documents.
type WebSearcher interface {
	SearchWeb(ctx context.Context, query string) (*WebResults, error)
}

// Answered is the answer of a Reasoner.
type Answered struct {
	Draft
	// Confidence is in [0, 1]. If it is nil, Result sets it by executorConfidence or, if
	// the answer was not found, by the answerability of the lookup.
	Confidence     *float64 `json:"confidence,omitempty"`
	NeedsWebSearch bool     `json:"needs_web_search,omitempty"`
	By             string   `json:"by,omitempty"` // the author, such as the model's name
}

// WorkOptions holds the dependencies of the stages. Works omits a stage without its Reasoner
// or WebSearcher.
type WorkOptions struct {
	Library  Library
	Reasoner Reasoner
	Judge    Judge   // optional
	Analyst  Analyst // optional, replaces the rules of intent_analysis
	Web      WebSearcher
	// Encoder compares answers with their sources. If it is nil, only words are compared.
	Encoder support.Encoder
}

// Works returns the functions of the stages whose dependencies o contains.
func Works(o WorkOptions) map[Stage]Work {
	w := map[Stage]Work{
		IntentAnalysis: o.analyze, EmbeddingLookup: o.lookup, ResponsePackaging: o.packageResponse, Moderation: o.moderate,
	}
	if o.Reasoner != nil {
		w[ExecutorReasoning] = o.reason
	}
	if o.Web != nil {
		w[WebSearch] = func(ctx context.Context, s *State) (Result, error) {
			found, err := o.Web.SearchWeb(ctx, s.Query)
			if err != nil {
				return Result{}, err
			}
			return found.Result()
		}
	}
	return w
}

// analyze finds the intent of a query with the Analyst or, after an error, by the rules alone.
func (o WorkOptions) analyze(ctx context.Context, s *State) (Result, error) {
	in := Analyze(s.Query)
	if o.Analyst != nil {
		found, err := o.Analyst.Intent(ctx, s.Query)
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if err == nil {
			in.improve(s.Query, found)
		}
	}
	return output(in, Result{})
}

// Hit is a section that embedding_lookup found.
type Hit struct {
	ID       string          `json:"id"` // as in vector_hits
	Path     string          `json:"path"`
	Anchor   string          `json:"anchor"`
	Title    string          `json:"title"`
	Headings []string        `json:"headings"`
	Lines    retriever.Lines `json:"line_range"`
	Score    float64         `json:"score"`   // in [0, 1]
	Snippet  string          `json:"snippet"` // empty for a further section of a document

	content string
}

// Lookup is the output of embedding_lookup.
type Lookup struct {
	Query    string   `json:"query"`
	Mode     string   `json:"mode"`
	Hits     []Hit    `json:"hits"`
	Degraded []string `json:"degraded"`
	Reason   string   `json:"reason,omitempty"` // why there are no hits
	// Answerable is the estimated probability that the documents contain an answer.
	// Unlikely reports that it is low.
	Answerable *float64 `json:"answerable,omitempty"`
	Unlikely   bool     `json:"unlikely,omitempty"`
}

// lookupHits is the number of hits whose passages fit into a brief of DefaultBudget.
const lookupHits = 15

func (o WorkOptions) lookup(ctx context.Context, s *State) (Result, error) {
	var in Intent
	if !fromContext(s, IntentAnalysis, &in) || in.SearchQuery == "" {
		in = Analyze(s.Query)
	}
	a, err := o.Library.Search(ctx, retriever.Query{Text: in.SearchQuery, Mode: retriever.Hybrid, Limit: lookupHits})
	if err != nil {
		return Result{}, fmt.Errorf("searching: %w", err)
	}
	out := Lookup{Query: in.SearchQuery, Mode: string(a.Mode), Degraded: a.Degraded, Reason: a.Reason, Hits: []Hit{}, Answerable: a.Answerable, Unlikely: a.Unlikely()}
	if a.Reason == "not_indexed" {
		return Result{}, errors.New("this folder has no index yet; run `cairn index`, or call the index tool")
	}
	var further []Hit // sections that a brief may also hold
	for i := range a.Results {
		hits := hitsOf(&a.Results[i])
		out.Hits, further = append(out.Hits, hits[0]), append(further, hits[1:]...)
	}
	out.Hits = append(out.Hits, further...)
	ids := make([]string, len(out.Hits))
	for i, h := range out.Hits {
		ids[i] = h.ID
	}
	return output(out, Result{Hits: ids})
}

// hitsOf returns the section that a result is about, and the further ones of its document.
func hitsOf(r *retriever.Result) []Hit {
	hits := []Hit{{ID: hitPrefix + r.Place(), Path: r.Path, Anchor: r.Anchor, Title: r.Title, Headings: r.Headings,
		Lines: r.LineRange, Score: r.Score, Snippet: clip(r.Snippet, 600), content: r.Content}}
	for i := range r.More {
		m := &r.More[i]
		trail := slices.DeleteFunc([]string{r.Title, m.Heading}, func(h string) bool { return h == "" })
		hits = append(hits, Hit{ID: hitPrefix + r.PlaceOf(m), Path: r.Path, Anchor: m.Anchor, Title: r.Title, Headings: trail,
			Lines: m.LineRange, Score: m.Score, content: m.Content})
	}
	return hits
}

func (o WorkOptions) reason(ctx context.Context, s *State) (Result, error) {
	b, err := NewBrief(ctx, s, o.Library, 0)
	if err != nil {
		return Result{}, err
	}
	a, err := o.Reasoner.Answer(ctx, b)
	if err != nil {
		return Result{}, err
	}
	return a.Result(s)
}

// Result returns the answer as a result of executor_reasoning.
func (a *Answered) Result(s *State) (Result, error) {
	switch {
	case len(a.Answer) > maxAnswerText:
		return Result{}, refuse(CodeParameter, "answer: %d bytes, want at most %d", len(a.Answer), maxAnswerText)
	case len(a.Citations) > maxCitations:
		return Result{}, refuse(CodeParameter, "citations: %d, want at most %d", len(a.Citations), maxCitations)
	case strings.TrimSpace(a.Answer) == "" && !a.NeedsWebSearch && !a.NotFound:
		return Result{}, refuse(CodeParameter, "answer: missing or blank")
	}
	// Moderation and packaging expect citations in the form of hits.
	d := *a
	d.Answer = validText(a.Answer)
	if d.NotFound && strings.TrimSpace(d.Answer) == "" {
		d.Answer = absenceText
	}
	d.Citations = []string{}
	for _, c := range a.Citations {
		if c = citation(validText(clip(c, 2000))); !slices.Contains(d.Citations, c) {
			d.Citations = append(d.Citations, c)
		}
	}
	d.NotFound = d.absent()
	var found Lookup
	fromContext(s, EmbeddingLookup, &found)
	switch {
	case d.Confidence != nil:
	case d.NotFound && found.Answerable != nil:
		d.Confidence = new(1 - *found.Answerable)
	default:
		var relevances []float64
		for _, h := range found.Hits {
			if slices.Contains(d.Citations, h.ID) {
				relevances = append(relevances, h.Score)
			}
		}
		d.Confidence = new(executorConfidence(d.Draft, relevances))
	}
	return output(d, Result{Confidence: d.Confidence, NeedsWebSearch: d.NeedsWebSearch})
}

// WebResult is one result of web_search.
type WebResult struct {
	URL   string `json:"url"`
	Title string `json:"title,omitempty"`
	Text  string `json:"text"`
}

// WebResults are the output of web_search.
type WebResults struct {
	Results []WebResult `json:"results"`
	Skipped string      `json:"skipped,omitempty"` // why web_search was skipped
}

// The bounds of the results of web_search.
const (
	maxWebResults = 20
	maxWebText    = 8 << 10 // bytes each
)

// Result returns w as a result of web_search.
func (w *WebResults) Result() (Result, error) {
	if len(w.Results) > maxWebResults {
		return Result{}, refuse(CodeParameter, "results: %d, want at most %d", len(w.Results), maxWebResults)
	}
	clean := WebResults{Results: []WebResult{}}
	for i, r := range w.Results {
		if !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") || len(r.URL) > 2000 {
			return Result{}, refuse(CodeParameter, "results[%d].url: want http:// or https://", i)
		}
		clean.Results = append(clean.Results, WebResult{URL: validText(r.URL), Title: clip(r.Title, 300), Text: clip(r.Text, maxWebText)})
	}
	return output(clean, Result{})
}

func (o WorkOptions) moderate(ctx context.Context, s *State) (Result, error) {
	var d Draft
	if !fromContext(s, ExecutorReasoning, &d) {
		return Result{}, errors.New("there is no answer to moderate")
	}
	allowed := slices.Clone(s.VectorHits)
	var web WebResults
	fromContext(s, WebSearch, &web)
	for _, r := range web.Results {
		allowed = append(allowed, r.URL)
	}
	v := Moderate(d, allowed)
	if v.Approved && len(d.Citations) > 0 && !d.NotFound {
		r, err := checkSupport(ctx, s, d, o)
		if err != nil {
			return Result{}, err
		}
		v.supported(r, s.Machine.Reinvoked)
	}
	if o.Judge != nil && v.Approved {
		if err := judge(ctx, s, d, o, &v); err != nil {
			return Result{}, err
		}
	}
	return output(v, Result{Confidence: &v.Confidence, Blocked: v.Blocked, Problem: strings.Join(v.Problems, "; ")})
}

// judge adds the opinion of a language model to a verdict.
func judge(ctx context.Context, s *State, d Draft, o WorkOptions, v *Verdict) error {
	b, err := NewBrief(ctx, s, o.Library, 0)
	if err != nil {
		return err
	}
	c, problem, err := o.Judge.Judge(ctx, b, d)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // the other checks are sufficient
		v.Flags = append(v.Flags, "judge_failed")
		return nil
	}
	if c < v.Confidence {
		v.Confidence = c
		v.Flags = append(v.Flags, "judge")
	}
	if v.Approved = v.Confidence >= threshold; !v.Approved && problem != "" {
		v.Problems = append(v.Problems, clip(problem, maxDetail))
	}
	return nil
}

// output sets the output of r to the JSON of v.
func output(v any, r Result) (Result, error) {
	text, err := Encode(v)
	if err != nil {
		return Result{}, err
	}
	r.Output = text
	return r, nil
}

// fromContext decodes the output of a stage into v. It returns false if there is none. Output
// that cannot be decoded was written by another version and counts as absent.
func fromContext(s *State, from Stage, v any) bool {
	text, ok := s.Context[from]
	return ok && json.Unmarshal(text, v) == nil
}
