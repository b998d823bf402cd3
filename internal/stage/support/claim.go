package support

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store/keyword"
	"cairn/internal/text/fit"
)

// claim is a sentence of an answer and its comparison with a text.
type claim struct {
	sentence // without the terms of the question, if others remain
	numbers  map[string]bool
	names    []string

	windows []int   // the windows of the text that share most terms, best first
	near    float64 // the share of the terms in the best window
	all     float64 // the share of the terms in the whole text
	nearest int     // the sentence of the text that shares most terms, -1 for none
	cosine  float64 // the similarity with the nearest unit
}

func newClaim(s string, asked map[string]bool) *claim {
	c := &claim{sentence: newSentence(s), numbers: numbersOf(s), names: namesOf(s), nearest: -1}
	own := maps.Clone(c.terms)
	maps.DeleteFunc(own, func(t string, _ bool) bool { return asked[t] })
	if len(own) > 0 {
		c.terms = own
		c.names = slices.DeleteFunc(c.names, func(n string) bool { return within(n, asked) })
	}
	return c
}

// share returns the share of the claim's terms that are in terms.
func (c *claim) share(terms map[string]bool) float64 {
	n := 0
	for t := range c.terms {
		if terms[t] {
			n++
		}
	}
	return float64(n) / float64(len(c.terms))
}

// align finds the part of the text that shares most terms with the claim. It estimates the
// cosine from the shared terms; embed replaces the estimate.
func (c *claim) align(t *text) {
	shares := make([]float64, len(t.windows))
	c.windows = make([]int, len(t.windows))
	for i, w := range t.windows {
		shares[i], c.windows[i] = c.share(w.terms), i
	}
	slices.SortStableFunc(c.windows, func(a, b int) int { return cmp.Compare(shares[b], shares[a]) })
	c.windows = c.windows[:min(perClaim, len(c.windows))]
	if len(c.windows) == 0 {
		return
	}
	c.near, c.all = shares[c.windows[0]], c.share(t.terms)
	best := -1.0
	for _, w := range c.windows {
		for i := t.windows[w].from; i < t.windows[w].to; i++ {
			if share := c.share(t.sentences[i].terms); share > best {
				best, c.nearest = share, i
			}
		}
	}
	c.cosine = .3 + .5*c.near
}

// judge estimates the support of the claim.
func (c *claim) judge(t *text) Sentence {
	f, problems := c.features(t)
	s := Sentence{Text: c.text, Support: f.probability(), Problems: problems}
	if s.Supported = s.Support >= threshold; !s.Supported && len(problems) == 0 {
		s.Problems = []string{"the text does not say so"}
	}
	return s
}

// features returns the features of the claim, and descriptions of those that contradict
// it.
func (c *claim) features(t *text) (f features, problems []string) {
	f = features{bias: 1, cosine: c.cosine, near: c.near, all: c.all}
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, n := range slices.Sorted(maps.Keys(c.numbers)) {
		if !t.numbers[n] {
			f.number = 1
			problem("the number %s is not in the text", n)
		} else if !slices.ContainsFunc(c.windows[:min(2, len(c.windows))], func(w int) bool { return t.windows[w].numbers[n] }) {
			f.numberNear = 1
		}
	}
	for _, q := range quantitiesOf(c.text) {
		if other := t.otherUnit(q); other != "" {
			f.number = 1
			problem("the text has %s %s, not %s", q.number, other, q.unit)
		}
	}
	missing := 0
	for _, n := range c.names {
		if !within(n, t.terms) {
			missing++
			problem("%s is not in the text", fit.Cut(n, 100))
		}
	}
	if len(c.names) > 0 {
		f.name = float64(missing) / float64(len(c.names))
	}
	if c.nearest >= 0 {
		nearest := &t.sentences[c.nearest]
		if c.negations%2 != nearest.negations%2 { // two negations cancel each other
			f.parity = 1
		}
		if c.denies(nearest) || nearest.denies(&c.sentence) {
			f.negated = 1
			problem("the text says the opposite: %s", fit.Cut(nearest.text, 200))
		}
	}
	return f, problems
}

// denies reports whether a sentence negates a term that another asserts, or has one of two
// opposites of which the other has the second.
func (s *sentence) denies(other *sentence) bool {
	for t := range s.negated {
		if other.terms[t] && !other.negated[t] {
			return true
		}
	}
	return slices.ContainsFunc(opposites, func(pair [2]string) bool {
		return s.terms[pair[0]] && !s.terms[pair[1]] && other.terms[pair[1]] && !other.terms[pair[0]]
	})
}

// negation matches a word that negates the next content word.
var negation = regexp.MustCompile(`^(?:not?|never|none|nor|neither|nothing|without|cannot|unable|\w+n['’]t)$`)

// negations counts the negations of a text and returns the terms that they negate: the
// next content word of each.
func negations(s string) (n int, negated map[string]bool) {
	negated = map[string]bool{}
	open := false
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("'’-_", r)
	}) {
		if negation.MatchString(w) {
			n++
			open = true
			continue
		}
		if !open || slices.Contains(auxiliary, w) {
			continue
		}
		if terms := keyword.Analyze(w); len(terms) > 0 {
			negated[terms[0]] = true
			open = false
		}
	}
	return n, negated
}

// auxiliary are words that may stand between a negation and the word that it negates.
var auxiliary = strings.Fields("be been being have has had do does did can could will would shall should may might must only just also yet always ever any the a an to")

// namesOf returns the words of a text that look like names. They contain a capital letter,
// except at the start of the text, or inner punctuation such as "_" or ".".
func namesOf(s string) (names []string) {
	for i, w := range strings.Fields(s) {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if utf8.RuneCountInString(w) < 2 || !strings.ContainsFunc(w, unicode.IsLetter) {
			continue
		}
		first, size := utf8.DecodeRuneInString(w)
		inner := w[size:]
		if unicode.IsUpper(first) && i > 0 || strings.ContainsFunc(inner, unicode.IsUpper) || strings.ContainsAny(inner, "_./:=") {
			names = append(names, w)
		}
	}
	return names
}

// within reports whether terms contain every part of a name.
func within(name string, terms map[string]bool) bool {
	parts := keyword.Analyze(name)
	return !slices.ContainsFunc(parts, func(p string) bool { return !terms[p] })
}
