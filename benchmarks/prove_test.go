package benchmarks

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/text/markdown"
	"cairn/models/bpe"
)

// proved returns a folder with documents, source code and links, and options for it.
func proved(t *testing.T) (string, ProveOptions) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"access/tokens.md": tokensPage, "garden.md": gardenPage, ".hidden.md": "# Hidden page\n\nNothing.\n",
		"page.html":  "<html><h1>Page of bees</h1><p>Bees fly.</p></html>",
		"index.md":   "# Start\n\nSee [what the gateway does with old ones](access/tokens.md#rotating-a-token) and [Vegetable garden](garden.md).\n",
		"changes.md": "# Changes\n\n- Refuse tokens of clients that left\n",
		"token.go":   "package a\n\n// NewToken makes a token that the gateway accepts until its owner has left the company\n// for good, and stores it.\nfunc NewToken() int {\n\tn := 1\n\tfor i := range 10 {\n\t\tn += i * n\n\t\tn -= i / 3\n\t\tn *= i + 12\n\t\tn %= i + 1234567\n\t\tn ^= i << 4\n\t\tn |= 0xffff0000ffff\n\t\tn &= 0x0000ffffffff\n\t}\n\treturn n\n}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, name), text)
	}
	o := ProveOptions{Selection: config.Selection{Root: root}, Seed: 1, DocsOptions: DocsOptions{Config: config.Default(), Embedder: &testutil.HashEmbedder{}, Budget: &bpe.Counter{}, Work: t.TempDir()}}
	o.Config.Parser.Code = "on"
	return root, o
}

// TestProve: every kind of question is asked, its text is in no page of the run, and the
// folder's files are as they were.
func TestProve(t *testing.T) {
	root, o := proved(t)
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("git %v: %v %s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", "index.md", "page.html")
	git("commit", "-q", "-m", "first")
	git("add", "access/tokens.md", "changes.md")
	git("commit", "-q", "-m", "Refuse tokens of clients that left")
	p, err := Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Documents != 6 || p.Vectors != 1 || len(p.Systems) != 4 || len(p.Rivals) != 3 {
		t.Errorf("%+v", p)
	}
	for _, kind := range kinds {
		if p.Questions[kind] == 0 {
			t.Errorf("no question of kind %s: %v", kind, p.Questions)
		}
	}
	if !strings.HasPrefix(p.Verdict, "cannot tell: ") || !strings.HasSuffix(p.String(), p.Verdict) {
		t.Errorf("%s", p)
	}
	again, err := Prove(t.Context(), o)
	if err != nil || !slices.EqualFunc(p.queries, again.queries, func(a, b provedQuery) bool { return a.Text == b.Text }) {
		t.Errorf("%v: the same seed gives other questions", err)
	}
	text, err := os.ReadFile(filepath.Join(root, "access", "tokens.md"))
	if err != nil || string(text) != tokensPage {
		t.Errorf("the file of the folder is changed: %v", err)
	}
}

// TestKnownItems: no page of the run has the text of a question, in any case or with any
// punctuation, and a link is asked for only if it does not name its page.
func TestKnownItems(t *testing.T) {
	root, o := proved(t)
	pages, err := readFolder(t.Context(), o.Selection, &o.Config, o.Config.Walk())
	if err != nil {
		t.Fatal(err)
	}
	o.Sample = 50
	queries, err := knownItems(t.Context(), pages, root, &o)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queries {
		if q.Text == "Vegetable garden" || len(q.Relevant) == 0 || strings.Contains(q.Text, "in a fence") {
			t.Errorf("asked %+v", q)
		}
		phrase := strings.Join(wordsOf(q.Text), " ")
		for _, d := range documentsOf(pages) {
			if strings.Contains(strings.Join(wordsOf(d.Text), " "), phrase) {
				t.Errorf("%s still has %q", d.ID, q.Text)
			}
		}
		if q.kind == kindSentence && q.Relevant["token.go"] > 0 && (strings.Contains(q.Text, "newtoken") || q.gold[0].from > 3) {
			t.Errorf("asked %q of lines %d to %d", q.Text, q.gold[0].from, q.gold[0].to)
		}
	}
	for _, p := range pages {
		before, after := strings.Count(p.text, "\n"), strings.Count(p.without(), "\n")
		if before != after || markdown.FormatOf(p.path) == nil {
			t.Errorf("%s has %d lines, then %d", p.path, before, after)
		}
	}
}

func TestJudge(t *testing.T) {
	answer := []piece{{"a", 1, 10, 100, 100}, {"b", 1, 100, 1000, 1000}, {"a", 20, 29, 100, 100}}
	for _, c := range []struct {
		relevant string
		gold     []piece
		want     outcome
	}{
		{"a", nil, outcome{1, 100, true}},
		{"a", []piece{{document: "a", from: 24, to: 50}}, outcome{1, 100 + 1000 + 50, true}},
		{"b", []piece{{document: "b", from: 91, to: 95}}, outcome{2, 100 + 910, true}},
		{"b", []piece{{document: "b", from: 101, to: 102}}, outcome{2, 4000, false}},
		{"c", nil, outcome{0, 4000, false}},
	} {
		q := provedQuery{RunQuery: RunQuery{Relevant: Relevance{c.relevant: 1}}, gold: c.gold}
		if got := q.judge(answer, 4000); got != c.want {
			t.Errorf("%s %v: %+v, want %+v", c.relevant, c.gold, got, c.want)
		}
	}
}

// made returns the proof of answers in which cairn and its rivals show the right text of n
// questions after random numbers of tokens with these means.
func made(n int, means ...int) *Proof {
	p := &Proof{Tokens: 4000, answers: make([][][]piece, len(means))}
	r := rand.New(rand.NewPCG(1, 1))
	for i, mean := range means {
		p.names = append(p.names, []string{"cairn", "x", "y", "z"}[i])
		for range n {
			p.answers[i] = append(p.answers[i], []piece{{document: "a", from: 1, to: 1, answer: mean/2 + r.IntN(mean)}})
		}
	}
	for range n {
		p.queries = append(p.queries, provedQuery{RunQuery: RunQuery{Relevant: Relevance{"a": 1}}})
	}
	p.conclude()
	return p
}

func TestVerdict(t *testing.T) {
	for want, p := range map[string]*Proof{
		"gain: cairn shows the right text after fewer":             made(100, 500, 900, 900),
		"no gain: over y, cairn saves -2":                          made(100, 500, 900, 200),
		"no gain: over x, cairn saves ":                            made(1000, 500, 500),
		"cannot tell: the difference from x can be chance":         made(30, 2000, 2200),
		"cannot tell: 29 questions are too few; collect your own ": made(29, 500, 900),
	} {
		if !strings.HasPrefix(p.Verdict, want) {
			t.Errorf("%s, want %s", p.Verdict, want)
		}
	}
}

// TestShuffledLabels: cairn shows the right document first and its rivals last, which is a
// gain; with the right documents of the questions exchanged at random, no run is one.
func TestShuffledLabels(t *testing.T) {
	const questions = minVerdict
	p := &Proof{Tokens: 4000, names: []string{"cairn", "x", "y"}, answers: make([][][]piece, 3)}
	r := rand.New(rand.NewPCG(1, 1))
	for q := range questions {
		right := strconv.Itoa(q)
		p.queries = append(p.queries, provedQuery{RunQuery: RunQuery{Relevant: Relevance{right: 1}}})
		for i := range p.answers {
			pieces := []piece{{document: right, from: 1, to: 1, answer: 300}}
			for range 9 {
				pieces = append(pieces, piece{document: strconv.Itoa(r.IntN(questions)), from: 1, to: 1, answer: 300})
			}
			if i > 0 {
				slices.Reverse(pieces)
			}
			p.answers[i] = append(p.answers[i], pieces)
		}
	}
	if p.conclude(); !strings.HasPrefix(p.Verdict, "gain: ") {
		t.Fatal(p.Verdict)
	}
	for run := range 100 {
		r.Shuffle(questions, func(i, j int) { p.queries[i], p.queries[j] = p.queries[j], p.queries[i] })
		if p.conclude(); strings.HasPrefix(p.Verdict, "gain: ") {
			t.Errorf("run %d: %s", run, p.Verdict)
		}
	}
}
