package retriever

import (
	"math"
	"testing"

	"cairn/graphrank"
)

// TestCoUsage: in.md was read before a.md twice and after it once, and once
// before b.md. Both are neighbours, so Relatedness is 1. The edges in.md->a.md and
// in.md->b.md, both sequences seen less than three times, weigh the same, so both
// have the best rank from in.md but for what returns through a.md.
func TestCoUsage(t *testing.T) {
	var g graphrank.Graph
	for _, e := range [][2]string{{"doc:in.md", "doc:a.md"}, {"doc:in.md", "doc:a.md"}, {"doc:a.md", "doc:in.md"}, {"doc:in.md", "doc:b.md"}, {"fs:read", "doc:c.md"}} {
		g.Observe(e[0], e[1], graphrank.Sequence)
	}
	paths := []string{"a.md", "b.md", "c.md", "in.md"}
	for name, c := range map[string]struct {
		inUse []string
		want  []float64
	}{
		"a document":      {[]string{"in.md"}, []float64{.08, .08, 0, 0}},
		"a section of it": {[]string{"in.md#head"}, []float64{.08, .08, 0, 0}},
		"its id":          {[]string{"doc:in.md"}, []float64{.08, .08, 0, 0}},
		"a tool":          {[]string{"fs:read"}, []float64{0, 0, .05, 0}},
		"two documents":   {[]string{"in.md", "a.md"}, []float64{0, .0875, 0, 0}},
		"never seen":      {[]string{"new.md", "no:tool"}, nil},
		"half never seen": {[]string{"new.md", "fs:read"}, []float64{0, 0, .05, 0}},
	} {
		got := CoUsage{}.bonus(&g, c.inUse, paths)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}
