package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/stage/support"
	"cairn/retriever"
)

// checkSupport compares a draft with the sources that it cites.
func checkSupport(ctx context.Context, s *State, d Draft, o WorkOptions) (*support.Report, error) {
	sources, err := cited(ctx, s, d, o.Library)
	if err != nil {
		return nil, err
	}
	r, err := support.Check(ctx, o.Encoder, s.Query, d.Answer, sources)
	if err != nil {
		return nil, fmt.Errorf("comparing the answer with its sources: %w", err)
	}
	return r, nil
}

// cited returns the sources that a draft cites with their current text. For a section that
// was removed, it returns the snippet.
func cited(ctx context.Context, s *State, d Draft, lib Library) ([]support.Source, error) {
	var found Lookup
	var web WebResults
	fromContext(s, EmbeddingLookup, &found)
	fromContext(s, WebSearch, &web)
	var sources []support.Source
	for _, r := range web.Results {
		if slices.Contains(d.Citations, r.URL) {
			sources = append(sources, support.Source{Heading: r.Title, Text: r.Text})
		}
	}
	for _, h := range found.Hits {
		if !slices.Contains(d.Citations, h.ID) {
			continue
		}
		source := support.Source{Heading: strings.Join(h.Headings, " "), Text: h.Snippet}
		read, err := lib.ReadAll(ctx, retriever.ReadRequest{Paths: []string{strings.TrimPrefix(h.ID, hitPrefix)}, MaxTokens: maxCited})
		if err != nil {
			return nil, fmt.Errorf("reading what the answer cites: %w", err)
		}
		if len(read.Documents) > 0 {
			source.Text = read.Documents[0].Content
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// maxCited is the maximum number of tokens of a cited section that are compared.
const maxCited = 8000

// maxUnsupported is the maximum number of unsupported sentences that a verdict lists.
const maxUnsupported = 5

// supported adds the comparison with the sources to a verdict. It blocks an answer without
// any supported sentence until maxReinvocations is reached. After that the answer passes, and
// the response contains the comparison.
func (v *Verdict) supported(r *support.Report, reinvoked int) {
	v.Support = r
	lacks := r.Unsupported()
	if len(lacks) == 0 {
		return
	}
	flag := "partly_unsupported"
	if len(lacks) == len(r.Sentences) {
		flag = "unsupported"
		v.Blocked = v.Blocked || reinvoked < maxReinvocations
		v.Approved = v.Approved && !v.Blocked
	}
	v.Flags = append(v.Flags, flag)
	for _, s := range lacks[:min(len(lacks), maxUnsupported)] {
		v.Problems = append(v.Problems, fmt.Sprintf("the passages cited do not support %q: %s", clip(s.Text, 200), strings.Join(s.Problems, "; ")))
	}
}
