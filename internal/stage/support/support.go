// Package support estimates whether the text that an answer cites supports the sentences
// of the answer. It compares embeddings, words, numbers, names and negations, and uses no
// language model. It does not reason: a sentence that the text implies but does not state
// counts as unsupported.
package support

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"

	"cairn/internal/text/markdown"
)

// Encoder turns texts into unit vectors; a models.Embedder is one.
type Encoder interface {
	EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error)
}

// Source is a text that an answer cites.
type Source struct {
	Heading string // of the text; its words count as part of every sentence
	Text    string // Markdown or plain text
}

// Sentence is a sentence of an answer.
type Sentence struct {
	Text string `json:"text"`
	// Support is the estimated probability that the sources state the sentence.
	Support   float64 `json:"support"`
	Supported bool    `json:"supported"` // Support is at least threshold
	// Problems describes contradictions, such as "the number 7 is not in the text".
	Problems []string `json:"problems,omitempty"`
}

// Report is the result of Check.
type Report struct {
	// Sentences are the checked sentences. Sentences without content words are omitted.
	Sentences []Sentence `json:"sentences"`
	// Support is the mean support of the sentences, 0 if there are none.
	Support float64 `json:"support"`
}

// Unsupported returns the sentences that are not supported.
func (r *Report) Unsupported() []Sentence {
	return slices.DeleteFunc(slices.Clone(r.Sentences), func(s Sentence) bool { return s.Supported })
}

// threshold is the minimum support of a supported sentence.
const threshold = .5

// The bounds of a check.
const (
	maxChecked = 40  // sentences of an answer
	maxUnits   = 240 // units of the sources that are embedded
	perClaim   = 8   // windows of the sources that are embedded for a sentence
)

// Check compares each sentence of the answer to a question with the sources. It ignores
// the words of the question. If e is nil, it compares words but not embeddings.
func Check(ctx context.Context, e Encoder, question, answer string, sources []Source) (*Report, error) {
	claims, t, err := compare(ctx, e, question, answer, sources)
	if err != nil {
		return nil, err
	}
	r := &Report{Sentences: []Sentence{}}
	for _, c := range claims {
		s := c.judge(t)
		r.Sentences = append(r.Sentences, s)
		r.Support += s.Support / float64(len(claims))
	}
	r.Support = round(r.Support)
	return r, nil
}

// citation matches a reference in an answer, such as [1] or [doc:a.md#b].
var citation = regexp.MustCompile(` ?\[(?:\d{1,2}|(?:doc|https?):[^\]\s]+)\]| ?\bdoc:\S+\b`)

// compare returns the claims of an answer, compared with the text of the sources.
func compare(ctx context.Context, e Encoder, question, answer string, sources []Source) ([]*claim, *text, error) {
	asked := termsOf(question)
	var claims []*claim
	for _, s := range sentences(markdown.PlainText([]byte(citation.ReplaceAllString(answer, "")))) {
		if c := newClaim(s, asked); len(c.terms) > 0 && len(claims) < maxChecked {
			claims = append(claims, c)
		}
	}
	t := newText(sources)
	for _, c := range claims {
		c.align(t)
	}
	if e == nil || len(claims) == 0 {
		return claims, t, nil
	}
	return claims, t, embed(ctx, e, claims, t)
}

// embed sets the cosine of each claim to its similarity with the nearest unit of its
// windows.
func embed(ctx context.Context, e Encoder, claims []*claim, t *text) error {
	var texts []string
	at := map[string]int{}
	index := func(s string) int {
		i, ok := at[s]
		if !ok {
			i = len(texts)
			at[s], texts = i, append(texts, s)
		}
		return i
	}
	units := make([][]int, len(claims))
	for i, c := range claims {
		index(c.text)
		for _, w := range c.windows {
			if len(texts) >= maxUnits {
				break
			}
			for _, u := range t.units(w) {
				units[i] = append(units[i], index(u))
			}
		}
	}
	vectors, err := e.EmbedDocuments(ctx, texts)
	if err != nil {
		return fmt.Errorf("embedding the sentences of an answer: %w", err)
	}
	for i, c := range claims {
		c.cosine = 0
		for _, u := range units[i] {
			c.cosine = max(c.cosine, dot(vectors[at[c.text]], vectors[u]))
		}
	}
	return nil
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// weights are the coefficients of a logistic regression on pairs of sentences and texts.
// See benchmarks/support.md and TestFit.
var weights = features{bias: -2.4, cosine: 2.8, near: .5, all: 2.4, number: -6, numberNear: -.8, name: -4.5, negated: -3.8, parity: -1.3}

// features are the inputs of the regression.
type features struct{ bias, cosine, near, all, number, numberNear, name, negated, parity float64 }

func (f *features) list() [9]float64 {
	return [...]float64{f.bias, f.cosine, f.near, f.all, f.number, f.numberNear, f.name, f.negated, f.parity}
}

// probability returns the estimate of the regression.
func (f *features) probability() float64 {
	sum := 0.0
	of := weights.list()
	for i, v := range f.list() {
		sum += of[i] * v
	}
	return round(1 / (1 + math.Exp(-sum)))
}

func round(p float64) float64 { return math.Round(p*1000) / 1000 }
