package indexer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestSplitHalf compares the pieces of random texts with those of a version that searches
// the whole text for white space at every step.
func TestSplitHalf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		var b strings.Builder
		for range rng.IntN(200) {
			b.WriteString([]string{"a", "bb", "é", "日", " ", "\u2003", "\n"}[rng.IntN(4+rng.IntN(4))])
		}
		text := b.String()
		var got, want []span
		var fast func(span, level)
		fast = func(s span, at level) {
			if pieces, next := splitHalf(text, s, at); len(pieces) == 2 {
				fast(pieces[0], next)
				fast(pieces[1], next)
				return
			}
			got = append(got, trimSpace(text, s))
		}
		var slow func(span)
		slow = func(s span) {
			s = trimSpace(text, s)
			mid, best := (s.start+s.end)/2, -1
			for i, r := range text[s.start:s.end] {
				if at := s.start + i; unicode.IsSpace(r) && (best < 0 || max(at-mid, mid-at) < mid-best) {
					best = at
				}
			}
			if best < 0 {
				for best = mid; best > s.start && !utf8.RuneStart(text[best]); best-- {
				}
			}
			if best == s.start && s.start < s.end {
				_, n := utf8.DecodeRuneInString(text[best:s.end])
				best += n
			}
			if trimSpace(text, span{best, s.end}).start >= s.end {
				want = append(want, s)
				return
			}
			slow(span{s.start, best})
			slow(span{best, s.end})
		}
		fast(span{0, len(text)}, halves)
		slow(span{0, len(text)})
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	}
}
