package fit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cairn/models/bpe"
)

type answer struct {
	Title string   `json:"title"`
	Text  string   `json:"text"`
	Rest  string   `json:"rest,omitempty"`
	Names []string `json:"names"`
	More  int      `json:"more,omitempty"`
}

func budget(tokens int) Budget { return Budget{tokens, (&bpe.Counter{}).CountTokens} }

// parts are the text of a, then its names.
func (a *answer) parts() []Part {
	names := a.Names
	return []Part{
		Lines(&a.Text, func(kept, all int) {
			a.Rest = ""
			if kept < all {
				a.Rest = fmt.Sprintf("from line %d", kept+1)
			}
		}),
		{Units: len(names), Unit: func(i int) any { return names[i] }, Keep: func(n int) { a.Names, a.More = names[:n], len(names)-n }},
	}
}

func TestFit(t *testing.T) {
	text := strings.Repeat("A line of a text that is <not> short & says little.\n", 400)
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("name-%d", i))
	}
	for _, limit := range []int{40, 100, 500, 2000, 5000, 9000, 100_000} {
		a := &answer{Title: "T", Text: text, Names: names}
		if err := budget(limit).Fit(a, a.parts()); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
		if got := budget(limit).cost(a, limit); got > limit {
			t.Errorf("limit %d: the answer has %d tokens", limit, got)
		}
		lines := strings.Count(a.Text, "\n")
		switch whole := a.Text == text && len(a.Names) == len(names); {
		case limit == 100_000 && !whole:
			t.Errorf("limit %d: %d lines and %d names, want all", limit, lines, len(a.Names))
		case !whole && budget(limit).cost(a, limit) < limit-60:
			t.Errorf("limit %d: the answer has %d tokens, want nearly all of them used", limit, budget(limit).cost(a, limit))
		case a.Text != text && a.Rest != fmt.Sprintf("from line %d", strings.Count(a.Text+"\n", "\n")+1) && a.Text != "":
			t.Errorf("limit %d: %d lines, and the rest is %q", limit, lines, a.Rest)
		case a.Text != text && !strings.HasPrefix(text, a.Text):
			t.Errorf("limit %d: the text is no beginning of the whole", limit)
		}
	}
	a := &answer{Title: strings.Repeat("title ", 100), Text: text}
	if _, ok := errors.AsType[*TooSmallError](budget(50).Fit(a, a.parts())); !ok {
		t.Error("a title that does not fit is no error")
	}
}

// TestLongLine: a line that does not fit is omitted as a whole.
func TestLongLine(t *testing.T) {
	a := &answer{Text: "short\n" + strings.Repeat("x", 1<<20)}
	if err := budget(200).Fit(a, a.parts()); err != nil || a.Text != "short" || a.Rest != "from line 2" {
		t.Errorf("%v, text of %d bytes, rest %q", err, len(a.Text), a.Rest)
	}
}

// TestShare: a long text leaves the following texts their share, and uses what they do not
// need.
func TestShare(t *testing.T) {
	long := strings.Repeat("A line of a text that says little.\n", 400)
	a := struct{ Texts [3]string }{[3]string{long, "A short text.\n", long}}
	var parts []Part
	for i := range a.Texts {
		p := Lines(&a.Texts[i], func(int, int) {})
		p.Share = true
		parts = append(parts, p)
	}
	if err := budget(900).Fit(&a, parts); err != nil {
		t.Fatal(err)
	}
	first, second, third := strings.Count(a.Texts[0], "\n"), a.Texts[1], strings.Count(a.Texts[2], "\n")
	if second != "A short text.\n" || third < 25 || first <= third || first+third < 70 {
		t.Errorf("%d lines, %q and %d lines of 900 tokens", first, second, third)
	}
}
