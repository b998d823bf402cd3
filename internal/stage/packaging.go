package stage

import (
	"context"
	"fmt"
	"strings"
)

// packaging is what the stages before response_packaging have put out, and the response
// that becomes of it.
type packaging struct {
	found    Lookup
	web      WebResults
	answer   Answered
	verdict  Verdict
	response Response
}

// packageResponse makes the final message. Its confidence is the least of what the author
// of the answer, moderation, the sources and the lookup say.
func packageResponse(ctx context.Context, s *State, o WorkOptions) (Result, error) {
	p := &packaging{verdict: Verdict{Confidence: 1}, response: Response{Sources: []Source{}, Confidence: 1}}
	p.lookup(s)
	if fromContext(s, ExecutorReasoning, &p.answer) {
		p.reasoned()
	} else {
		p.extract()
	}
	if s.Machine.Reinvoked > 0 {
		p.how("sent back by moderation %d times", s.Machine.Reinvoked)
	}
	if err := p.check(ctx, s, o); err != nil {
		return Result{}, err
	}
	return Result{Response: &p.response, Confidence: &p.response.Confidence}, nil
}

func (p *packaging) how(format string, args ...any) {
	p.response.How = append(p.response.How, fmt.Sprintf(format, args...))
}

// limit lowers the confidence to at most c.
func (p *packaging) limit(c float64) { p.response.Confidence = min(p.response.Confidence, c) }

func (p *packaging) lookup(s *State) {
	var in Intent
	if fromContext(s, IntentAnalysis, &in) {
		p.how("intent: %s, complexity %s", in.Category, in.Complexity)
	}
	if fromContext(s, EmbeddingLookup, &p.found) {
		p.how("lookup: %d sections, %s", len(p.found.Hits), p.found.Mode)
		if a := p.found.Answerable; a != nil {
			p.how("the documents have an answer with probability %.2f", *a)
		}
	}
	switch {
	case !fromContext(s, WebSearch, &p.web):
	case p.web.Skipped != "":
		p.how("web search: skipped, %s", p.web.Skipped)
	default:
		p.how("web search: %d results", len(p.web.Results))
	}
}

// reasoned takes the answer of executor_reasoning.
func (p *packaging) reasoned() {
	a, r := &p.answer, &p.response
	if a.Confidence != nil {
		p.limit(*a.Confidence)
	}
	by := a.By
	if by == "" {
		by = "the calling agent"
	}
	p.how("answered by %s, confidence %.2f, %d citations", by, r.Confidence, len(a.Citations))
	r.Answer, r.NotFound = a.Answer, a.NotFound
	fromWeb := false
	for _, c := range a.Citations {
		for _, h := range p.found.Hits {
			if h.ID == c {
				r.Sources = append(r.Sources, h.source())
			}
		}
		for _, w := range p.web.Results {
			if w.URL == c {
				r.Sources, fromWeb = append(r.Sources, Source{ID: w.URL, Title: w.Title}), true
			}
		}
	}
	// What the documents lack says nothing about an answer from the web.
	if p.found.Answerable != nil && !a.NotFound && !fromWeb {
		p.limit(*p.found.Answerable)
	}
}

func (h *Hit) source() Source {
	return Source{ID: h.ID, Path: h.Path, Anchor: h.Anchor, Title: strings.Join(h.Headings, " > ")}
}

// extracted bounds the sections that make up an answer without reasoning.
const extracted = 3

// extract answers with the sections found. When they hardly have an answer, it says so
// and names them as the nearest ones.
func (p *packaging) extract() {
	p.how("no reasoning in the plan: the sections found, in their own words")
	r := &p.response
	hits := p.found.Hits[:min(extracted, len(p.found.Hits))]
	if len(hits) == 0 {
		r.Answer, r.NotFound = "Nothing was found about this.", true
	}
	var b strings.Builder
	if p.found.Unlikely && len(hits) > 0 {
		r.NotFound = true
		b.WriteString("Not found: these documents do not seem to have an answer. The nearest sections:\n")
	}
	for _, h := range hits {
		fmt.Fprintf(&b, "%s (%s): %s\n", strings.Join(h.Headings, " > "), strings.TrimPrefix(h.ID, hitPrefix), strings.Join(strings.Fields(h.Snippet), " "))
		r.Sources = append(r.Sources, h.source())
		r.Answer = strings.TrimSuffix(b.String(), "\n")
	}
	switch {
	case p.found.Answerable != nil && r.NotFound:
		p.limit(1 - *p.found.Answerable)
	case p.found.Answerable != nil:
		p.limit(*p.found.Answerable)
	case len(hits) > 0: // an index that is not complete
		p.limit(hits[0].Score)
	default:
		p.limit(.5) // nothing is known
	}
}

// check takes the verdict of moderation. An answer that was not moderated is compared with
// its sources here.
func (p *packaging) check(ctx context.Context, s *State, o WorkOptions) error {
	if fromContext(s, Moderation, &p.verdict) {
		p.how("moderation: confidence %.2f", p.verdict.Confidence)
		p.limit(p.verdict.Confidence)
	} else if len(p.answer.Citations) > 0 && !p.answer.NotFound {
		var err error
		if p.verdict.Support, err = checkSupport(ctx, s, p.answer.Draft, o); err != nil {
			return err
		}
	}
	if r := p.verdict.Support; r != nil {
		p.response.Support = r
		p.how("support: %.2f, %d of %d sentences", r.Support, len(r.Sentences)-len(r.Unsupported()), len(r.Sentences))
		p.limit(r.Support)
	}
	return nil
}
