package stage

import (
	"slices"
	"testing"
)

func TestReadAnswer(t *testing.T) {
	b := &Brief{Passages: []Passage{{ID: "doc:a.md#x"}, {ID: "doc:b.md"}}}
	for _, c := range []struct {
		text      string
		cite      []string
		answer    string
		citations []string // nil for an error
	}{
		{" Ann does [2], says doc:a.md#x. ", nil, "Ann does [2], says doc:a.md#x.", []string{"doc:b.md", "doc:a.md#x"}},
		{"Ann does.", []string{"doc:b.md"}, "Ann does.", []string{"doc:b.md"}},
		{`{"answer":"Ann does","citations":["doc:a.md#x"]}`, []string{"doc:b.md"}, "Ann does", []string{"doc:b.md", "doc:a.md#x"}},
		{`{"answer":"Ann does","citations":[2,"1","[2]",3]}`, nil, "Ann does", []string{"doc:b.md", "doc:a.md#x", "doc:b.md", "3"}},
		{`{"answer":"Ann does"}`, []string{"doc:b.md"}, "Ann does", []string{"doc:b.md"}},
		{"Ann does [3].", nil, "", nil},
		{`{"reply":"Ann does"}`, nil, "", nil},
	} {
		a, err := b.ReadAnswer(c.text, Answered{Draft: Draft{Citations: c.cite}})
		if (err != nil) != (c.citations == nil) {
			t.Errorf("%s: %v", c.text, err)
		} else if err == nil && (a.Answer != c.answer || !slices.Equal(a.Citations, c.citations)) {
			t.Errorf("%s with --cite %q: %q citing %q, want %q citing %q", c.text, c.cite, a.Answer, a.Citations, c.answer, c.citations)
		}
	}
}
