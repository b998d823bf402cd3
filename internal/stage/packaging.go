package stage

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// packaging holds the outputs of the stages before response_packaging and the response made
// from them.
type packaging struct {
	found    Lookup
	web      WebResults
	answer   Answered
	verdict  Verdict
	response Response
}

// packageResponse returns the final message. Its confidence is the minimum of the
// confidences of the answer, the moderation, the comparison with the sources and the lookup.
func (o WorkOptions) packageResponse(ctx context.Context, s *State) (Result, error) {
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

// reasoned responds with the answer of executor_reasoning.
func (p *packaging) reasoned() {
	a, r := &p.answer, &p.response
	if a.Confidence != nil {
		p.limit(*a.Confidence)
	}
	by := cmp.Or(a.By, "the calling agent")
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
	// Answerable does not apply to an answer from the web.
	switch {
	case p.found.Answerable == nil || fromWeb:
	case a.NotFound:
		p.limit(1 - *p.found.Answerable)
	default:
		p.limit(*p.found.Answerable)
	}
}

func (h *Hit) source() Source {
	return Source{ID: h.ID, Path: h.Path, Anchor: h.Anchor, Title: strings.Join(h.Headings, " > ")}
}

// extracted is the maximum number of sections in an answer without reasoning.
const extracted = 3

// extract responds with the sections found. If they are unlikely to contain an answer, the
// response says so and lists them as the nearest sections.
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
	case len(hits) > 0: // the index is incomplete
		p.limit(hits[0].Score)
	default:
		p.limit(.5) // nothing is known
	}
}

// check applies the verdict of moderation. If the plan has no moderation, it compares the
// answer with its sources.
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
