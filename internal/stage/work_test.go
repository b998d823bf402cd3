package stage

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"cairn/retriever"
)

// TestAnalyze: category and complexity by the rules.
func TestAnalyze(t *testing.T) {
	for _, c := range []struct{ query, category, complexity, search string }{
		{"Who are the SRE team members?", "people", "low", "Who are the SRE team members? site reliability engineering"},
		{"rotate a token", "how_to", "very_low", "rotate a token"},
		{"What is the difference between a card and a task in documents?", "comparison", "high", "What is the difference between a card and a task in documents?"},
		{"backup fails", "troubleshooting", "very_low", "backup fails"},
		{"which setting limits the tokens of an answer here", "configuration", "low", "which setting limits the tokens of an answer here"},
		{"what is a passage and where does it end", "definition", "medium", "what is a passage and where does it end"},
		{"日本語", "general", "very_low", "日本語"},
		{"?!", "general", "very_low", "?!"},
	} {
		in := Analyze(c.query)
		if in.Category != c.category || in.Complexity != c.complexity || in.SearchQuery != c.search {
			t.Errorf("%q: %s, %s, %q, want %s, %s, %q", c.query, in.Category, in.Complexity, in.SearchQuery, c.category, c.complexity, c.search)
		}
	}
	for _, c := range []struct {
		words, marks int
		want         string
	}{{4, 5, "very_low"}, {5, 0, "low"}, {9, 0, "low"}, {9, 1, "medium"}, {19, 1, "medium"}, {19, 2, "high"}, {39, 9, "high"}, {40, 2, "high"}, {40, 3, "very_high"}} {
		if got := complexity(c.words, c.marks); got != c.want {
			t.Errorf("%d words, %d indicators: %s, want %s", c.words, c.marks, got, c.want)
		}
	}
	for _, long := range []string{strings.Repeat("token ", 666), strings.Repeat("x", 4000), strings.Repeat("the ", 900)} {
		if s := Analyze(long).SearchQuery; s == "" || len([]rune(s)) > retriever.MaxQuery {
			t.Errorf("a query of %d characters is searched as %q", len(long), s)
		}
	}
}

// TestModerate: the weights of the specification, each by itself.
func TestModerate(t *testing.T) {
	const fine = "Ann and Bob are the members of the team."
	for _, c := range []struct {
		name, answer string
		citations    []string
		confidence   float64
		approved     bool
	}{
		{"fine", fine, []string{"doc:a.md#b"}, 1, true},
		{"without the prefix", fine, []string{"a.md#b"}, 1, true},
		{"from the web", fine, []string{"https://example.com/x"}, 1, true},
		{"profanity leaves exactly the threshold", "The fucking members are Ann and Bob.", []string{"doc:a.md#b"}, .7, true},
		{"profanity and little said", "Shit!", []string{"doc:a.md#b"}, .5, false},
		{"many URLs", fine + strings.Repeat(" http://x", 6), []string{"doc:a.md#b"}, .8, true},
		{"spam", "CLICK HERE AND BUY NOW!!!!! FREE MONEY FOR EVERYBODY", []string{"doc:a.md#b"}, .6, false},
		{"the same again and again", strings.Repeat("token ", 100), []string{"doc:a.md#b"}, .6, false},
		{"an insult", "The members are Ann and Bob, you idiot.", []string{"doc:a.md#b"}, .5, false},
		{"belittling the reader", "You must be really stupid: Ann and Bob are the members.", []string{"doc:a.md#b"}, .5, false},
		{"a word of the trade", "A dumb terminal shows the members Ann and Bob.", []string{"doc:a.md#b"}, 1, true},
		{"hostile", "You are an idiot, you moron, said Ann.", []string{"doc:a.md#b"}, .5, false},
		{"cites nothing", fine, nil, 1, false},
		{"cites what was not found", fine, []string{"doc:a.md#b", "doc:secret.md"}, 1, false},
		{"cites another site", fine, []string{"https://example.org/"}, 1, false},
		{"empty", "  ", []string{"doc:a.md#b"}, .8, false},
		{"says that it is not there", "It is not in these documents.", nil, 1, true},
		{"says so with a flag alone", "Ist nicht dabei.", nil, 1, false},
		{"another script", "アンとボブがチームのメンバーです。", []string{"doc:a.md#b"}, 1, true},
	} {
		v := Moderate(Draft{Answer: c.answer, Citations: c.citations}, []string{"doc:a.md#b", "https://example.com/x"})
		if v.Confidence != c.confidence || v.Approved != c.approved || !v.Approved && len(v.Problems) == 0 {
			t.Errorf("%s: %+v, want %v, approved %v", c.name, v, c.confidence, c.approved)
		}
	}
	if v := Moderate(Draft{Answer: fine}, nil); !v.Approved {
		t.Errorf("with nothing to cite: %+v", v)
	}
}

// TestNotFound: an answer that the documents do not contain one needs no source and is not
// sent back.
func TestNotFound(t *testing.T) {
	for name, a := range map[string]Answered{
		"in words":      {Draft: Draft{Answer: "It is not in these documents."}},
		"by the flag":   {Draft: Draft{Answer: "Das steht nirgends.", NotFound: true}},
		"flag, no text": {Draft: Draft{NotFound: true}},
	} {
		o := &oracle{says: []func(*Brief) (*Answered, error){func(*Brief) (*Answered, error) { return &a, nil }}}
		s := runAll(t, "", WorkOptions{Library: shelf{}, Reasoner: o})
		if s.Status != Complete || s.Machine.Reinvoked != 0 || !s.Response.NotFound || s.Response.Answer == "" || len(s.Response.Sources) != 0 {
			t.Errorf("%s: the task is %s, sent back %d times, %+v", name, s.Status, s.Machine.Reinvoked, s.Response)
		}
	}
}

// TestConfidence: the confidence follows from the lookup and the sources.
func TestConfidence(t *testing.T) {
	found := says("Ann and Bob are members.", "doc:team.md#members")
	foreign := says("Bananas are yellow.", "doc:team.md#members")
	missing := func(*Brief) (*Answered, error) {
		return &Answered{Draft: Draft{Answer: "It is not in these documents."}}, nil
	}
	sure := .9
	certain := func(*Brief) (*Answered, error) {
		return &Answered{Draft: Draft{Answer: "It is not in these documents.", NotFound: true}, Confidence: &sure}, nil
	}
	for _, c := range []struct {
		name, template string
		answerable     float64
		says           func(*Brief) (*Answered, error)
		low, high      float64
		notFound       bool
	}{
		{"found without reasoning", "simple_lookup", .97, nil, .97, .97, false},
		{"not there, without reasoning", "simple_lookup", .04, nil, .96, .96, true},
		{"supported", "", .97, found, .6, .8, false},
		{"supported, but nothing seems to be there", "", .04, found, .04, .04, false},
		{"not found, and nothing seems to be there", "", .04, missing, .96, .96, true},
		{"not found, although it seems to be there", "", .97, missing, .02, .04, true},
		{"surely not found, although it seems to be there", "", .97, certain, .02, .04, true},
		{"unsupported", "", .97, foreign, 0, .2, false},
		{"unsupported and not moderated", "quick_answer", .97, foreign, 0, .2, false},
	} {
		o := &oracle{}
		for range 3 {
			o.says = append(o.says, c.says)
		}
		s := runAll(t, c.template, WorkOptions{Library: shelf{answerable: c.answerable}, Reasoner: o})
		if s.Status != Complete {
			t.Errorf("%s: the task is %s, %v", c.name, s.Status, *s.Error)
			continue
		}
		if r := s.Response; r.Confidence < c.low-1e-9 || r.Confidence > c.high+1e-9 || r.NotFound != c.notFound {
			t.Errorf("%s: confidence %v, not found %v, want %v to %v, %v", c.name, r.Confidence, r.NotFound, c.low, c.high, c.notFound)
		}
	}
}

// TestAbsence: which answers without a source say that there is none.
func TestAbsence(t *testing.T) {
	for answer, want := range map[string]bool{
		"It is not in these documents.":                                  true,
		"This isn't explicitly stated in the passages.":                  true,
		"The documents do not say who founded the company.":              true,
		"They don't mention it.":                                         true,
		"There is no information about this.":                            true,
		"No section of the handbook covers Mongolia.":                    true,
		"I could not find the answer.":                                   true,
		"Not found":                                                      true,
		"Do not give the token to anybody.":                              false,
		"There is no way to undo it.":                                    false,
		"The file is not encrypted.":                                     false,
		"Bananas are yellow.":                                            false,
		"It is not there. " + strings.Repeat("Bananas are yellow. ", 20): false,
		"The old token is deleted after the new one works everywhere.":   false,
		"Nothing happens.":                                               false,
	} {
		if got := (&Draft{Answer: answer}).absent(); got != want {
			t.Errorf("%q: %v, want %v", answer, got, want)
		}
	}
	if (&Draft{Answer: "It is not here.", Citations: []string{"doc:a.md"}}).absent() {
		t.Error("an answer with a source counts as one that has none")
	}
}

// TestExecutorConfidence: values computed by hand.
func TestExecutorConfidence(t *testing.T) {
	for _, c := range []struct {
		answer     string
		citations  int
		relevances []float64
		want       float64
	}{
		{"Ann.", 0, nil, .5},
		{"Ann.", 1, []float64{.5}, .7},
		{"Ann.", 2, []float64{1, .5}, .85},
		{"Ann.", 9, []float64{1}, 1},
		{"Perhaps Ann, maybe Bob.", 1, []float64{.5}, .6},
		{"maybe maybe maybe maybe maybe maybe", 0, nil, .3},
	} {
		got := executorConfidence(Draft{Answer: c.answer, Citations: make([]string, c.citations)}, c.relevances)
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%q with %d citations of %v: %v, want %v", c.answer, c.citations, c.relevances, got, c.want)
		}
	}
}

// shelf is a library of one section. answerable is the estimate of its searches, 0 for none.
type shelf struct {
	err        error
	answerable float64
}

func (s shelf) Search(_ context.Context, q retriever.Query) (*retriever.Answer, error) {
	if s.err != nil {
		return nil, s.err
	}
	a := &retriever.Answer{Mode: retriever.Hybrid, Degraded: []string{}, Results: []retriever.Result{
		{Path: "team.md", Anchor: "members", Headings: []string{"Team", "Members"}, Score: .5, Snippet: "Ann and Bob"},
	}}
	if s.answerable > 0 {
		a.Answerable = &s.answerable
	}
	if q.MaxTokens > 0 {
		a.Results[0].Content = "Ann and Bob"
	}
	return a, nil
}

func (s shelf) ReadAll(_ context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	out := &retriever.Readings{}
	for _, p := range r.Paths {
		path, anchor, _ := strings.Cut(p, "#")
		out.Documents = append(out.Documents, retriever.Reading{Path: path, Anchor: &anchor, Headings: []string{"Team", "Members"}, Content: "Ann and Bob"})
	}
	return out, nil
}

// oracle returns the given answers in turn.
type oracle struct {
	says []func(*Brief) (*Answered, error)
}

func (o *oracle) Answer(_ context.Context, b *Brief) (*Answered, error) {
	if len(o.says) == 0 {
		return nil, errors.New("nothing left to say")
	}
	next := o.says[0]
	o.says = o.says[1:]
	return next(b)
}

func says(answer string, citations ...string) func(*Brief) (*Answered, error) {
	return func(*Brief) (*Answered, error) {
		return &Answered{Draft: Draft{Answer: answer, Citations: citations}, By: "oracle"}, nil
	}
}

// TestWorks runs all stages. Moderation sends back the first answer, and the brief
// of the second attempt has the reasons.
func TestWorks(t *testing.T) {
	var problems []string
	o := &oracle{says: []func(*Brief) (*Answered, error){
		says("Ann, Bob and Eve are members.", "doc:other.md"),
		func(b *Brief) (*Answered, error) {
			problems = b.Problems
			if len(b.Passages) != 1 || b.Passages[0] != (Passage{"doc:team.md#members", "Team > Members", "Ann and Bob"}) {
				t.Errorf("passages %+v", b.Passages)
			}
			return says("Ann and Bob are members.", "team.md#members", "doc:team.md#members")(b)
		},
	}}
	s := runAll(t, "", WorkOptions{Library: shelf{}, Reasoner: o})
	if s.Status != Complete || s.Machine.Reinvoked != 1 {
		t.Fatalf("the task is %s, sent back %d times, %v", s.Status, s.Machine.Reinvoked, s.Error)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "doc:other.md") {
		t.Errorf("the second brief has the problems %q", problems)
	}
	// .5 + .1 for one citation + .2·.5
	if r := s.Response; r.Answer != "Ann and Bob are members." || len(r.Sources) != 1 || r.Sources[0].Path != "team.md" || r.Sources[0].Anchor != "members" || math.Abs(r.Confidence-.7) > 1e-9 {
		t.Errorf("the response is %+v", r)
	}
	s = runAll(t, "simple_lookup", WorkOptions{Library: shelf{}})
	if s.Status != Complete || s.Response.Answer != "Team > Members (team.md#members): Ann and Bob" || s.Response.Confidence != .5 {
		t.Errorf("without reasoning the response is %+v", s.Response)
	}
	s = runAll(t, "", WorkOptions{Library: shelf{err: errors.New("disk on fire")}})
	if s.Status != Failed || !strings.Contains(*s.Error, "disk on fire") {
		t.Errorf("with a broken library the task is %s, %v", s.Status, s.Error)
	}
	s = runAll(t, "quick_answer", WorkOptions{Library: shelf{}, Reasoner: &oracle{says: []func(*Brief) (*Answered, error){says("", "doc:team.md#members"), says(" ")}}})
	if s.Status != Failed || !strings.Contains(*s.Error, "answer: missing or blank") {
		t.Errorf("with empty answers the task is %s, %v", s.Status, s.Error)
	}
}

// runAll steps a task to its end without engine or store.
func runAll(t *testing.T, template string, o WorkOptions) *State {
	t.Helper()
	s := fresh(t, template, Rules{})
	works := Works(o)
	for n := 1; !s.Status.Final(); n++ {
		e := word("claim", s, n)
		if s.Status != Waiting {
			e = word("ok", s, n)
			r, err := works[s.Current](t.Context(), s)
			if e.Result = r; err != nil {
				e.Kind, e.Reason = Failure, err.Error()
			}
		}
		next, _, err := Step(s, e)
		if err != nil {
			t.Fatalf("%s at %s: %v", e.Kind, s.Current, err)
		}
		s = next
	}
	return s
}

// TestWebResults: results of a web search are bounded and checked.
func TestWebResults(t *testing.T) {
	for name, w := range map[string]WebResults{
		"too many": {Results: make([]WebResult, 21)}, "a script": {Results: []WebResult{{URL: "javascript:alert(1)"}}}, "a long URL": {Results: []WebResult{{URL: "https://" + strings.Repeat("x", 2000)}}},
	} {
		if _, err := w.Result(); !errors.Is(err, Is(CodeParameter)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := WebResults{Results: []WebResult{{URL: "https://example.com", Text: strings.Repeat("a", 1<<20)}}}
	if r, err := w.Result(); err != nil || len(r.Output) > 10<<10 {
		t.Errorf("a long text becomes %d bytes, %v", len(r.Output), err)
	}
}

// analyst answers with an intent, or fails.
type analyst struct{ intent *Intent }

func (a analyst) Intent(context.Context, string) (*Intent, error) {
	if a.intent == nil {
		return nil, errors.New("no answer")
	}
	return a.intent, nil
}

// TestIntentOfAnalyst: what an analyst finds replaces the rules as far as it is valid.
func TestIntentOfAnalyst(t *testing.T) {
	rules := Analyze("Who is on call?")
	good := rules
	good.Category, good.Keywords, good.Expansions, good.By = "status", []string{"call duty"}, []string{"pager rota"}, "m"
	good.SearchQuery = "Who is on call? pager rota"
	partly := rules
	partly.By = "m"
	for name, c := range map[string]struct {
		analyst Analyst
		want    Intent
	}{
		"none":    {nil, rules},
		"failing": {analyst{}, rules},
		"good":    {analyst{&Intent{Category: "status", Keywords: []string{" call  duty"}, Expansions: []string{"pager rota", `-"x"`}, By: "m"}}, good},
		"invalid": {analyst{&Intent{Category: "gossip", Keywords: []string{""}, SearchQuery: "ignore the question", By: "m"}}, partly},
	} {
		s := &State{Task: Task{Query: "Who is on call?"}}
		r, err := WorkOptions{Analyst: c.analyst}.analyze(t.Context(), s)
		var got Intent
		if err != nil || json.Unmarshal(r.Output, &got) != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}
