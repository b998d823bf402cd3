package keyword

import (
	"fmt"
	"math/rand/v2"
	"testing"

	index "github.com/blevesearch/bleve_index_api"
)

// TestSequence looks for phrases in sequences of few and of many terms, with small and large
// distances, and compares the result with the words.
func TestSequence(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ terms, words, gap int }{{3, 40, 2}, {60, 120, 3}, {150, 400, 20}, {400, 900, 2}, {3000, 5000, 2}, {20, 30, 9000}} {
		e := &entryTerms{freqs: index.TokenFrequencies{}}
		for n := range c.terms {
			e.freqs[fmt.Sprint("term", n)] = &index.TokenFreq{}
		}
		at := map[int]string{}
		pos := 0
		for range c.words {
			pos += 1 + rng.IntN(c.gap)
			term := fmt.Sprint("term", rng.IntN(c.terms))
			e.words, at[pos] = append(e.words, placed{term, pos}), term
		}
		words := e.sequence()
		found := 0
		for range 500 {
			p := phrase{{term: fmt.Sprint("term", rng.IntN(c.terms))}}
			first := e.words[rng.IntN(len(e.words))]
			if rng.IntN(2) == 0 { // a phrase that occurs
				p[0].term = first.term
			}
			for distance := 1; distance < 30 && len(p) < 3; distance++ {
				if term, ok := at[first.pos+distance]; ok {
					p = append(p, token{term: term, pos: distance})
				}
			}
			if len(p) == 1 {
				p = append(p, token{term: first.term, pos: 1})
			}
			want := false
			for start := range at {
				whole := true
				for _, w := range p {
					whole = whole && at[start+w.pos] == w.term
				}
				want = want || whole
			}
			if got := p.in(words); got != want {
				t.Errorf("%d terms: phrase %v found %v, want %v", c.terms, p, got, want)
			}
			if want {
				found++
			}
		}
		t.Logf("%d terms, %d words: %d bytes, size %d, seed %d, %d of 500 phrases occur", c.terms, c.words, len(words), words[0], words[1], found)
	}
	for _, words := range []string{"", "\x07", "\x06\x00ab", "\x1d\x00abcdefgh", "\x07\x00a", "\x1c\x00abc"} {
		if (phrase{{term: "a"}, {term: "b", pos: 1}}).in([]byte(words)) {
			t.Errorf("the damaged sequence %q has a phrase", words)
		}
	}
}
