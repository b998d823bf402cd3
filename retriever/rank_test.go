package retriever

import (
	"math"
	"testing"
)

// TestGroup scores documents by hand: the mean of the best chunk's components
// and the best components.
func TestGroup(t *testing.T) {
	at := func(chunk, path, anchor string, number int, vector, keyword float64) candidate {
		c := candidate{chunk: chunk, path: path, anchor: anchor, number: number}
		c.VectorWeight, c.KeywordWeight = .7, .3
		c.Vector, c.Keyword, c.ChunkVector, c.ChunkKeyword = vector, keyword, vector, keyword
		c.Score = .7*vector + .3*keyword
		return c
	}
	got := group([]candidate{
		at("one#a.0", "one", "a", 0, .6, .5),
		at("two#a.0", "two", "a", 0, .7, .1), // .52, the best chunk of two
		at("two#a.1", "two", "a", 1, .1, .2),
		at("two#b.0", "two", "b", 0, .2, .9), // .41
		at("tie#a.0", "tie", "a", 0, .6, .5),
	}).Documents
	for i, want := range []struct {
		path            string
		score           float64
		sections        int
		vector, keyword float64
	}{
		{"two", .7*.7 + .3*.5, 2, .7, .5},
		{"one", .57, 1, .6, .5},
		{"tie", .57, 1, .6, .5},
	} {
		d := got[i]
		if d.Path != want.path || math.Abs(d.Score-want.score) > 1e-12 || len(d.Sections) != want.sections ||
			math.Abs(d.Vector-want.vector) > 1e-12 || math.Abs(d.Keyword-want.keyword) > 1e-12 {
			t.Errorf("place %d: %+v, want %+v", i+1, d, want)
		}
	}
	if s := got[0].Sections; s[0].Anchor != "a" || s[0].Chunk != 0 || s[1].Anchor != "b" {
		t.Errorf("sections of two: %+v", s)
	}
}
