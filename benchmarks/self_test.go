package benchmarks

import (
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

// TestCopies: a section that was copied and changed answers as well.
func TestCopies(t *testing.T) {
	changed := strings.Replace(gardenPage, "Onions are set in April, earlier under glass", "Onions go out in May", 1)
	var pages []*page
	for name, text := range map[string]string{"a.md": gardenPage, "b.md": changed, "c.md": tokensPage} {
		pages = append(pages, &page{path: name, text: text, parsed: markdown.Parse(name, []byte(text))})
	}
	slices.SortFunc(pages, func(a, b *page) int { return strings.Compare(a.path, b.path) })
	first := &knownItem{page: pages[0], section: &pages[0].parsed.Sections[0]}
	addCopies(pages, []*knownItem{first})
	copies := first.copies
	if len(copies) != 2 || copies[0] != first || copies[1].page.path != "b.md" || copies[1].section.Anchor != "vegetable-garden" {
		t.Errorf("%d copies, want the same section of b.md", len(copies)-1)
	}
}

// TestHidden: a page without its words has the same lines and marks.
func TestHidden(t *testing.T) {
	p := &page{text: "one\n// two. three\nfour. five\n", hidden: [][2]int{{12, 23}, {0, 3}, {18, 20}}}
	if got, want := p.without(), "\n// two. \n. five\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSentences(t *testing.T) {
	text := "# Head\n\nOne is 1.5, e.g.in a.md. Two goes\nover a line! Three\n\n> quoted. text\n\nSee https://x.org. No\n\nLast one"
	var got []string
	for _, e := range sentencesOf(text, 0, len(text), false) {
		got = append(got, text[e[0]:e[1]])
	}
	if want := []string{"One is 1.5, e.g.in a.md.", "Two goes\nover a line!", "Three", "Last one"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
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
