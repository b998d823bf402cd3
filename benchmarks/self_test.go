package benchmarks

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/text/markdown"
)

const tokensPage = `# Access tokens

Every client has a token of its own, which names the client in the log and in the list of sessions.
Tokens are kept in the vault, and the vault is opened by two operators who both have to be present.

` + "```\nNot a sentence of the page, since it is code in a fence and not prose at all.\n```" + `

## Rotating a token

Make the new token first, and give it to the client while the old token is still accepted by the gateway.
The gateway forgets the old token after a week, or at once when somebody with the role of an operator asks it to.
The client needs no restart, because it reads the file again whenever the gateway has refused its token.

- A list entry is no sentence, however long it is and however many words it has.
`

const gardenPage = `# Vegetable garden

Carrots and onions like dry soil, whereas celery and leeks grow in ground that stays wet through July.
Sow the carrots in rows, a hand apart, and cover them with a finger of sand against the flies.
Onions are set in April, earlier under glass, and they are ready when their leaves have turned yellow.

## Watering the beds

Water in the evening, when the sun is low, so that less of it evaporates before the roots have drunk.
The barrel next to the shed holds enough rain for three weeks in a summer that is not unusually hot.
Seedlings get a little every morning until they have four leaves, and after that as much as the others.
`

// TestSelf: the sentences that are asked for are not in the index of the run, but the
// folder's files are as they were.
func TestSelf(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"access/tokens.md": tokensPage, "garden.md": gardenPage, ".hidden.md": "# Hidden page\n\nNothing.\n",
		"page.html": "<html><h1>Page of bees</h1><p>Bees fly.</p></html>"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, name), text)
	}
	o := SelfOptions{Selection: config.Selection{Root: root}, Seed: 1, DocsOptions: DocsOptions{Config: config.Default(), Embedder: &testutil.HashEmbedder{}, Work: t.TempDir()}}
	report, err := Self(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Split != "self" || report.Documents != 3 {
		t.Errorf("%s, %d documents; want self and 3", report.Split, report.Documents)
	}
	kinds := map[string]int{}
	for _, q := range report.Main().Queries {
		kinds[q.Groups["kind"]]++
		if len(q.Sections) != 1 || len(q.Relevant) != 1 || q.Groups["file"] != ".md" && q.Sections[0] != "page.html#page-of-bees" {
			t.Errorf("%+v, want one section of one document", q)
		}
		if q.Groups["kind"] == kindSentence && (strings.Contains(q.Text, "no sentence") || strings.Contains(q.Text, "in a fence")) {
			t.Errorf("%q is no sentence of the prose", q.Text)
		}
	}
	if kinds[kindHeading] != 5 || kinds[kindTypo] != 4 || kinds[kindQuestion] != 5 || kinds[kindSentence] < 2 || kinds[kindParaphrase] < 2 || kinds[kindKeywords] < 2 {
		t.Errorf("%v, want the five headings, as questions, and with typos where a word is long enough and sentences", kinds)
	}
	if report.Groups[0].By != "kind" || len(report.Groups) < 8 || !strings.Contains(report.String(), "by folder") {
		t.Errorf("%s", report)
	}
	again, err := Self(t.Context(), o)
	if err != nil || again.Main().Fingerprint != report.Main().Fingerprint {
		t.Errorf("%v: the same seed gives other data", err)
	}
	text, err := os.ReadFile(filepath.Join(root, "access", "tokens.md"))
	if err != nil || string(text) != tokensPage {
		t.Errorf("the file of the folder is changed: %v", err)
	}
}

func TestVerdict(t *testing.T) {
	folder := func(name string, queries int, hit5 float64) GroupReport {
		return GroupReport{By: "folder", Group: name, Queries: queries, Metrics: Metrics{Hit5: hit5}}
	}
	groups := []GroupReport{{By: "kind", Group: "sentence", Queries: 90, Metrics: Metrics{Hit5: .1}}, folder("guide", 40, .95), folder("old", 20, .7), folder("few", 9, .1)}
	for _, c := range []struct {
		queries int
		hit5    float64
		groups  []GroupReport
		want    string
	}{
		{100, .95, groups, "Good: 95 of 100 queries find their document among the first five results; nothing needs to be done."},
		{100, .92, groups, "Usual: 92 of 100 queries find their document among the first five results; to improve it, give the sections of the worst queries headings in the words of a question, first in the folder old (70 of 100)."},
		{100, .84, groups[:2], "Poor: 84 of 100 queries find their document among the first five results; split long pages, and give sections headings in the words of a question."},
		{29, 1, groups, "No verdict: 100 of 100 queries find their document among the first five results, but 29 queries are too few; collect questions with `cairn bench ask`."},
	} {
		if got := verdict(RunSummary{Queries: c.queries, Metrics: Metrics{Hit5: c.hit5}}, c.groups); got != c.want {
			t.Errorf("%d queries, hit@5 %.2f:\n%s, want\n%s", c.queries, c.hit5, got, c.want)
		}
	}
}

// TestCopies: a section that was copied and changed answers as well, and a sentence that two
// pages have is no item.
func TestCopies(t *testing.T) {
	changed := strings.Replace(gardenPage, "Onions are set in April, earlier under glass", "Onions go out in May", 1)
	var pages []*page
	for name, text := range map[string]string{"a.md": gardenPage, "b.md": changed, "c.md": tokensPage} {
		pages = append(pages, &page{path: name, text: text, parsed: markdown.Parse(name, []byte(text))})
	}
	slices.SortFunc(pages, func(a, b *page) int { return strings.Compare(a.path, b.path) })
	phrases := phrasesOf(pages)
	first := &knownItem{page: pages[0], section: &pages[0].parsed.Sections[0]}
	copies := phrases.copies(first)
	if len(copies) != 2 || copies[0] != first || copies[1].page.path != "b.md" || copies[1].section.Anchor != "vegetable-garden" {
		t.Errorf("%d copies, want the same section of b.md", len(copies)-1)
	}
	for _, item := range countWords(pages).sentences(pages) {
		if strings.Contains(item.text, "Seedlings") {
			t.Errorf("%q occurs twice", item.text)
		}
	}
}

// TestHiddenSentences: a page without its sentence has the same lines.
func TestHiddenSentences(t *testing.T) {
	p := &page{text: "one\ntwo. three\nfour. five\n", hidden: [][2]int{{9, 20}, {0, 3}}}
	if got, want := p.without(), "\ntwo. \n five\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSentences(t *testing.T) {
	text := "# Head\n\nOne is 1.5, e.g.in a.md. Two goes\nover a line! Three\n\n> quoted. text\n\nSee https://x.org. No\n\nLast one"
	var got []string
	for _, e := range sentencesOf(text, 0, len(text)) {
		got = append(got, text[e[0]:e[1]])
	}
	if want := []string{"One is 1.5, e.g.in a.md.", "Two goes\nover a line!", "Three", "Last one"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOtherWords(t *testing.T) {
	w := &wordCounts{in: map[string]int{"rotate": 3, "rotat": 0, "run": 2, "the": 9, "is": 9, "a": 9, "token": 2, "gateway": 1, "old": 2, "refused": 1, "rotated": 0}, sections: 20}
	if got, want := w.paraphrase("The gateway refused, the old token is rotated"), "old token gateway refused"; got != want {
		t.Errorf("paraphrase %q, want %q", got, want)
	}
	if got, want := w.rarest("the old token, the old gateway is refused", 2), "gateway refused"; got != want {
		t.Errorf("rarest words %q, want %q", got, want)
	}
	r := rand.New(rand.NewPCG(1, 1))
	if got := misspell("Rotate a password", r); got == "Rotate a password" || len(got) != len("Rotate a password") || !strings.HasPrefix(got, "Rotate a p") {
		t.Errorf("misspelt %q", got)
	}
	if got := misspell("a b", r); got != "" {
		t.Errorf("misspelt %q", got)
	}
	for heading, want := range map[string]string{
		"Rotating a token":    "how do I rotate a token",
		"Running the gateway": "how do I run the gateway",
		"How to leave":        "how do I leave",
		"Old tokens":          "what does Access say about Old tokens",
		"What is left?":       "what is to know about What is left",
	} {
		item := &knownItem{text: heading, page: &page{path: "a.md"}}
		item.page.parsed = parsedTitle("Access")
		if got := w.question(item); got != want {
			t.Errorf("%s: %q, want %q", heading, got, want)
		}
	}
}

func TestOwnQuestions(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "tokens.md"), tokensPage)
	write(t, filepath.Join(root, "garden.md"), gardenPage)
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "token.go"), "package a\n\n// NewToken makes a token.\nfunc NewToken() {}\n")
	file := filepath.Join(dir, "mine.tsv")
	for _, q := range []Question{{"NewToken", "token.go#NewToken"}, {"how do I get\ta new token", "tokens.md#rotating-a-token"}, {"carrots", "garden.md"}, {"carrots", "garden.md#watering-the-beds"}} {
		if err := q.Append(file); err != nil {
			t.Fatal(err)
		}
	}
	o := SelfOptions{Selection: config.Selection{Root: root}, Questions: file, DocsOptions: DocsOptions{Config: config.Default(), Embedder: &testutil.HashEmbedder{}, Work: t.TempDir()}}
	report, err := Self(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if q := report.Main().Queries; report.Split != "mine" || len(q) != 3 || q[0].First == nil || q[0].First.ID != "token.go" || q[1].Text != "how do I get a new token" || len(q[2].Sections) != 1 {
		t.Errorf("%s: %+v", report.Split, q)
	}
	for text, want := range map[string]string{
		"no place\n":             "mine.tsv:1: want a question",
		"a\tgarten.md\n":         "perhaps garden.md",
		"a\tgarden.md#no-such\n": `no section "no-such"`,
		"# only a comment\n":     "no question",
	} {
		write(t, file, text)
		if _, err := Self(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want an error with %q", text, err, want)
		}
	}
}

// TestReasons names what a relevant document lacked.
func TestReasons(t *testing.T) {
	first := &Evidence{ID: "first", Rank: 1, Vector: .5, Keyword: .3}
	for want, q := range map[string]RunQuery{
		"nothing was found":                      {},
		"the search does not return":             {First: first},
		"by another section":                     {First: first, Best: first},
		"no word of the query":                   {First: first, Best: &Evidence{Rank: 2, Vector: .6}},
		"more of the words (+0.200; meaning":     {First: first, Best: &Evidence{Rank: 2, Vector: .5, Keyword: .1}},
		"nearer in meaning (+0.300; words":       {First: first, Best: &Evidence{Rank: 2, Vector: .2, Keyword: .25}},
		"(+0.100) and is nearer in meaning (+0.": {First: first, Best: &Evidence{Rank: 2, Vector: .4, Keyword: .2}},
	} {
		if got := q.reason(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
	}
}

func parsedTitle(title string) *markdown.Document { return &markdown.Document{Title: title} }
