package keyword

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/text/query"
)

func TestAnalyze(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string // terms, separated by spaces
	}{
		{"", ""},
		{"the", ""},
		{"The cats are running", "cat run"},
		{"readContext", "read context readcontext"},
		{"HTTPServer APIs", "http server httpserver api"},
		{"v1.2.3", "v1 2 3 v1.2.3 1.2.3 1.2"},
		{"state-of-the-art", "state art stateoftheart"},
		{"C++ and c#", "c++ c#"},
		{"--dry-run", "dri run --dry-run dryrun"},
		{"検索エ", "検 検索 索 索エ エ"},
		{"猫", "猫"},
		{"Straße ﬁne", "strass fine"},
		{"don't user's", "dont user"},
		{"\xff\xfe broken \xc3", "broken"},
	} {
		if got := strings.Join(Analyze(c.in), " "); got != c.want {
			t.Errorf("Analyze(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestQueryTerms(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{" \t", ""},
		{`""`, ""},
		{"login login", "login"},
		{"to be", "to be"},
		{"the login", "login"},
		{`"session token" -cookie`, "session token cooki -cookie"}, // a flag, as long as the index decides otherwise
		{`session -"http only"`, "session"},
		{`-"http only"`, "http onli"}, // nothing else is asked for
	} {
		got := QueryTerms(query.Parse(c.in))
		if strings.Join(got, " ") != c.want {
			t.Errorf("QueryTerms(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestNewQuery(t *testing.T) {
	for _, c := range []struct {
		in                       string
		words                    string
		phrases, excluded, flags int
	}{
		{"x y", "x y", 0, 0, 0},
		{`"session token" expiry`, "session token expiri", 1, 0, 0},
		{`add "x y" to every line of a file`, "add x y everi line file", 0, 0, 0}, // a sentence cites
		{`jaguar -car`, "jaguar", 0, 0, 1},
		{`jaguar -"sports car"`, "jaguar", 0, 1, 0},
		{`-car`, "car", 0, 0, 0},
		{`tar -x --list 5 -3`, "tar x -x list --list 5 3", 0, 0, 0},
		{`well-known x-y`, "well known wellknown x y xy", 0, 0, 0},
		{`"open`, "open", 0, 0, 0},
		{`- -- ---`, "", 0, 0, 0},
		{`"" "-"`, "", 0, 0, 0},
	} {
		q := NewQuery(query.Parse(c.in))
		var words []string
		for _, w := range q.terms {
			words = append(words, w.term)
		}
		if got := strings.Join(words, " "); got != c.words || len(q.phrases) != c.phrases ||
			len(q.excluded) != c.excluded || len(q.dashed) != c.flags {
			t.Errorf("query %q = %q, %d phrases, %d excluded, %d flags, want %q, %d, %d, %d",
				c.in, got, len(q.phrases), len(q.excluded), len(q.dashed), c.words, c.phrases, c.excluded, c.flags)
		}
	}
}

// checkQuery checks what holds of any input.
func checkQuery(t *testing.T, s string) {
	q := NewQuery(query.Parse(s))
	seen := make(map[string]bool)
	for _, w := range q.terms {
		if w.term == "" || len(w.term) > maxTermBytes || !utf8.ValidString(w.term) {
			t.Fatalf("query %q has the term %q", s, w.term)
		}
		if seen[w.term] || w.count <= 0 {
			t.Fatalf("query %q has %q twice or for nothing (%v)", s, w.term, w.count)
		}
		seen[w.term] = true
	}
	for _, p := range slices.Concat(q.phrases, q.excluded) {
		if len(p) == 0 || !slices.IsSortedFunc(p, func(a, b token) int { return a.pos - b.pos }) {
			t.Fatalf("query %q has the phrase %v", s, p)
		}
	}
	if len(q.terms) == 0 && (len(q.excluded) > 0 || len(q.dashed) > 0) {
		t.Fatalf("query %q excludes and asks for nothing", s)
	}
}

func FuzzNewQuery(f *testing.F) {
	for _, s := range []string{"", `a "b c" -d -"e f" --g -h`, "C++ c# .NET v1.2.3", "検索エンジン", "x_y__z::w'’s", "\xff-\"“”", "᾿"} {
		f.Add(s)
	}
	f.Fuzz(checkQuery)
}

// TestNewQueryRandom parses random sequences of what the parser looks at.
func TestNewQueryRandom(t *testing.T) {
	pieces := []string{"-", "--", `"`, "“", "”", " ", "\t", "a", "B", "cd", "the", "1", ".", "_", "'", "’", "::", ":", "+", "++", "#",
		"検", "索", "ー", "é", "e\u0301", "\xff", "ß", "\u200b", "/", "Ab", "ABc", "\u0130", "ﬁ", "가", "᾿", "\u0301"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b strings.Builder
		for range r.IntN(16) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		checkQuery(t, b.String())
	}
}
