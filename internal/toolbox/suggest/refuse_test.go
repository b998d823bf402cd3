package suggest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/store/keyword"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
	"cairn/models"
)

// scaled is an embedder that states its MinSimilarity.
type scaled struct{ testutil.HashEmbedder }

func (s *scaled) Description() models.Description {
	d := s.HashEmbedder.Description()
	d.MinSimilarity = .3
	return d
}

// TestNoToolFits: no tool is an answer, for the intent and for a part of it.
func TestNoToolFits(t *testing.T) {
	k, err := keyword.Memory()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	x := toolsearch.New(k, toolsearch.Options{Embedder: &scaled{}, Reader: testutil.Tagger})
	if err := x.Sync(t.Context(), office(t), nil); err != nil {
		t.Fatal(err)
	}
	s := suggest(t, x, Request{Intent: "bake chocolate cake"})
	if len(s.Tasks) > 0 || s.Confidence != 0 || !slices.Equal(s.Unmatched, []string{"bake chocolate cake"}) {
		t.Errorf("tools %v, confidence %v, unmatched %q", toolsOf(s), s.Confidence, s.Unmatched)
	}
	s = suggest(t, x, Request{Intent: "fetch a web page and then bake chocolate cake"})
	if got := toolsOf(s); !slices.Equal(got, []string{"web:fetch_page"}) || !slices.Equal(s.Unmatched, []string{"bake chocolate cake"}) {
		t.Errorf("tools %v, unmatched %q", got, s.Unmatched)
	}
}

// TestNamedServer: of tools that fit alike, the one whose server the intent names is chosen,
// and the kind of a value says what a part requests.
func TestNamedServer(t *testing.T) {
	x := index(t, []catalog.Tool{
		described(t, "slack:send: text:string", "Send a message to a channel"),
		described(t, "discord:send: text:string", "Send a message to a channel"),
		described(t, "browser:open: url:string", "Open a web page"),
	})
	for intent, want := range map[string]string{
		"send a message on Discord": "discord:send", "send a message on Slack": "slack:send", "go to https://example.com": "browser:open",
	} {
		if got := toolsOf(suggest(t, x, Request{Intent: intent})); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %v, want %s", intent, got, want)
		}
	}
}

// TestSameServer: a part that names no server prefers the server of the parts before and after it.
func TestSameServer(t *testing.T) {
	servers := []string{"alpha", "gamma", "zeta"}
	for _, server := range servers {
		tools := []catalog.Tool{described(t, server+":list_pages: ", "List the pages")}
		for _, any := range servers {
			tools = append(tools, described(t, any+":delete_note: title:string", "Delete a note"))
		}
		want := []string{server + ":list_pages", server + ":delete_note"}
		x := index(t, tools)
		if got := toolsOf(suggest(t, x, Request{Intent: "list the pages, then delete a note"})); !slices.Equal(got, want) {
			t.Errorf("tools %v, want %v", got, want)
		}
		slices.Reverse(want)
		if got := toolsOf(suggest(t, x, Request{Intent: "delete a note, then list the pages"})); !slices.Equal(got, want) {
			t.Errorf("tools %v, want %v", got, want)
		}
	}
}

// TestVerbsDoNotShareATool: a tool that is only second best for the part of another verb does
// not serve it if the next tool fits nearly as well.
func TestVerbsDoNotShareATool(t *testing.T) {
	c := &partChoice{parts: make([]toolsearch.Part, 2), requests: make([]toolsearch.Actions, 2), verbs: []string{"scan", "print"},
		named: make([][]string, 2), candidates: make([]toolsearch.Candidate, 2), usage: []float64{.5, .45}, inputs: make([]float64, 2), weights: choiceWeights, tools: make([]catalog.Tool, 2), purposes: make([]toolsearch.Purpose, 2),
		read: func(int, []int) []float64 { return nil }}
	if best := c.best(); best[0].candidate != 0 || best[1].candidate != 1 {
		t.Errorf("picks %v", best)
	}
	c.verbs[1] = "scan"
	if best := c.best(); best[1].candidate != 0 {
		t.Errorf("of one verb: picks %v", best)
	}
}

// TestChoices: the features of the tools for each part, in the order of ChoiceFeatures.
func TestChoices(t *testing.T) {
	x := index(t, []catalog.Tool{described(t, "alpha:list_pages: ", "List the pages"), described(t, "alpha:delete_note: title:string", "Delete a note")})
	choices, err := Choices(t.Context(), x, "list the pages, then delete a note")
	if err != nil || len(choices) != 2 {
		t.Fatalf("%d choices, %v, want one for each part", len(choices), err)
	}
	for n, c := range choices {
		list, remove := slices.Index(c.Tools, "alpha:list_pages"), slices.Index(c.Tools, "alpha:delete_note")
		if len(c.Tools) != 2 || len(c.Features[list]) != len(ChoiceFeatures) {
			t.Fatalf("part %d: %+v", n, c)
		}
		action := slices.Index(ChoiceFeatures, "action")
		if (c.Features[list][action] > c.Features[remove][action]) != (n == 0) {
			t.Errorf("part %d: actions %v and %v", n, c.Features[list], c.Features[remove])
		}
	}
	if choices, err := Choices(t.Context(), x, ""); err != nil || choices != nil {
		t.Errorf("the empty intent has choices %v, %v", choices, err)
	}
}

// reading is an embedder that also reads pairs. The logit of a tool is that of the longest of the
// words in its text.
type reading struct {
	testutil.HashEmbedder
	models.Reader // tags words
	logits        map[string]float64
	asked         []string
	pairs         []string
}

func (r *reading) Rerank(_ context.Context, query string, texts []string) ([]float64, error) {
	r.asked = append(r.asked, query)
	for _, text := range texts {
		r.pairs = append(r.pairs, query+"\n"+text)
	}
	if r.logits == nil {
		return nil, errors.New("no memory")
	}
	list := make([]float64, len(texts))
	for i, text := range texts {
		longest := 0
		for word, logit := range r.logits {
			if strings.Contains(text, word) && len(word) > longest {
				list[i], longest = logit, len(word)
			}
		}
	}
	return list, nil
}

// TestReads: the reader reads the third tool only if it can still be the best.
func TestReads(t *testing.T) {
	weights := make([]float64, len(ChoiceFeatures))
	weights[len(weights)-1] = .1
	for _, test := range []struct {
		logits []float64
		reads  int
		want   int
	}{
		{[]float64{mostLogit - 1, 0, mostLogit}, 2, 0}, {[]float64{1, mostLogit - .5, mostLogit}, 2, 1}, {[]float64{0, 0, mostLogit}, 3, 2}, {[]float64{-3, -4, -9}, 3, 0},
	} {
		reads := 0
		c := &partChoice{parts: make([]toolsearch.Part, 1), requests: make([]toolsearch.Actions, 1), verbs: make([]string, 1), named: make([][]string, 1),
			candidates: make([]toolsearch.Candidate, 3), tools: make([]catalog.Tool, 3), purposes: make([]toolsearch.Purpose, 3), usage: []float64{1, .9, .8}, inputs: make([]float64, 3), weights: weights,
			read: func(_ int, candidates []int) (list []float64) {
				for _, i := range candidates {
					list = append(list, test.logits[i])
				}
				reads += len(candidates)
				return list
			}}
		if best := c.best(); best[0].candidate != test.want || best[0].logit != test.logits[test.want] || reads != test.reads {
			t.Errorf("logits %v: candidate %d with %v after %d reads, want %d after %d", test.logits, best[0].candidate, best[0].logit, reads, test.want, test.reads)
		}
	}
}

// TestPairs: the reader decides between tools that fit alike, and refuses a tool. It reads a
// part with the whole intent and each pair once, and its error changes nothing.
func TestPairs(t *testing.T) {
	tools := []catalog.Tool{described(t, "desk:post_note: text:string", "Send a note to a colleague"), described(t, "desk:file_note: text:string", "Send a note to a colleague")}
	plan := func(intent string, logits map[string]float64) (*Suggestion, *reading) {
		k, err := keyword.Memory()
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		tagger, err := testutil.Tagger()
		if err != nil {
			t.Fatal(err)
		}
		r := &reading{Reader: tagger, logits: logits}
		x := toolsearch.New(k, toolsearch.Options{Embedder: r, Reader: func() (models.Reader, error) { return r, nil }})
		if err := x.Sync(t.Context(), tools, nil); err != nil {
			t.Fatal(err)
		}
		return suggest(t, x, Request{Intent: intent}), r
	}
	const intent = "send a note to a colleague"
	for _, word := range []string{"post note", "file note"} {
		s, _ := plan(intent, map[string]float64{"note": -1, word: 9})
		if got, want := toolsOf(s), []string{"desk:" + strings.ReplaceAll(word, " ", "_")}; !slices.Equal(got, want) {
			t.Errorf("%s has the larger logit: %v", word, got)
		}
	}
	if s, _ := plan(intent, map[string]float64{"note": -20}); len(s.Tasks) > 0 || !slices.Equal(s.Unmatched, []string{intent}) {
		t.Errorf("with small logits: tools %v, unmatched %q", toolsOf(s), s.Unmatched)
	}
	if s, _ := plan(intent, nil); len(s.Tasks) != 1 {
		t.Errorf("after an error of the model: tools %v", toolsOf(s))
	}
	_, r := plan("send a note to a colleague, then file the note", map[string]float64{"note": 1})
	if !slices.ContainsFunc(r.asked, func(q string) bool {
		return strings.HasPrefix(q, intent+" | ") && strings.HasSuffix(q, "file the note")
	}) {
		t.Errorf("requests %q, want a part and the whole", r.asked)
	}
	if slices.Sort(r.pairs); len(slices.Compact(slices.Clone(r.pairs))) < len(r.pairs) {
		t.Errorf("a pair is read twice: %q", r.pairs)
	}
}
