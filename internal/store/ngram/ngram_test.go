package ngram

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		limit := 1 + rng.IntN(1<<rng.IntN(16))
		var list []uint32
		for n, step := -1, 1+rng.IntN(1<<rng.IntN(15)); ; {
			if n += 1 + rng.IntN(step); n >= limit {
				break
			}
			list = append(list, uint32(n))
		}
		b := appendList(nil, list)
		got, ok := decodeList(b, len(list), limit, nil)
		if !ok || !slices.Equal(got, list) {
			t.Fatalf("limit %d: %v, %v, want %v", limit, got, ok, list)
		}
		for range min(len(b), 10) { // damage does not panic, and no number exceeds the limit
			b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
			got, _ := decodeList(b[:rng.IntN(len(b)+1)], len(list), limit, nil)
			if slices.ContainsFunc(got, func(n uint32) bool { return int(n) >= limit }) {
				t.Fatalf("%v exceeds %d", got, limit)
			}
		}
	}
}

// letters are those of random texts and patterns. Some are equal to others for (?i).
var letters = []string{"a", "b", "A", "k", "K", "\u212a", "s", "ſ", "é", "É", "世", "_", " "}

func randomText(rng *rand.Rand, most int) string {
	var b strings.Builder
	for range rng.IntN(most) {
		b.WriteString(letters[rng.IntN(len(letters))])
	}
	return b.String()
}

// randomExpr returns a random regular expression.
func randomExpr(rng *rand.Rand, depth int) string {
	if depth == 0 || rng.IntN(4) == 0 {
		return regexp.QuoteMeta(randomText(rng, 6))
	}
	sub := func() string { return randomExpr(rng, depth-1) }
	switch rng.IntN(14) {
	case 0, 1, 2, 3:
		return sub() + sub()
	case 4, 5:
		return "(" + sub() + "|" + sub() + ")"
	case 6:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?"}[rng.IntN(7)]
	case 7:
		return "(?i:" + sub() + ")"
	case 8:
		return []string{".", "[ab]", "[^a]", `\w`, `\s`, "[a-z]", "[k-s]", "(?i)[k]"}[rng.IntN(8)]
	case 9:
		return []string{"^", "$", `\b`, `\B`, "(?m:^)", "(?m:$)"}[rng.IntN(6)]
	case 10:
		return "(?:" + sub() + "|)"
	case 11:
		return "(?i:" + regexp.QuoteMeta(randomText(rng, 9)) + ")"
	}
	return regexp.QuoteMeta(randomText(rng, 9))
}

// fulfils reports whether a line fulfils q, by the strings themselves.
func fulfils(q *Query, line string) bool {
	r := &recent{trigrams: slices.Sorted(slices.Values(lines.of([]byte(line))))}
	return r.match(q)
}

var lines trigrams

// TestQueryIsImplied: a line that matches an expression fulfils its condition, and Lines
// finds the line.
func TestQueryIsImplied(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	matches, refused := 0, 0
	for range 20_000 {
		expr := randomExpr(rng, 4)
		re, err := regexp.Compile(expr)
		if err != nil {
			t.Fatal(expr, err)
		}
		q := Regexp(expr)
		var text []string
		for range 6 {
			text = append(text, randomText(rng, 24))
		}
		found := map[int]bool{}
		looked := q.Lines([]byte(strings.Join(text, "\n")), func(line int) bool { found[line] = true; return true })
		for n, line := range text {
			if !fulfils(q, line) {
				refused++
			}
			if !re.MatchString(line) {
				continue
			}
			matches++
			if !fulfils(q, line) || looked && !found[n] {
				t.Fatalf("%q matches %q, whose condition is %+v: lines %v", expr, line, q, found)
			}
		}
	}
	if matches < 1000 || refused < 1000 {
		t.Errorf("%d matches and %d lines refused: the test shows little", matches, refused)
	}
}

func TestQuery(t *testing.T) {
	for _, c := range []struct{ expr, yes, no string }{
		{"foo.*bar", "a foo and bar", "a foo and baz"},
		{"(abc|def)+ghi", "abcghi", "abc hi"},
		{"[ab]cde", "bcde", "ccde"},
		{"a+bcd", "aabcd", "acbcd"},
		{"(?i)Error: x", "ERROR: X", "ERR: X"},
		{"(foo|.*)", "x", ""},
		{"x*(hello|world)y?", "world", "word"},
		{`\bNew[A-Z]\w+\(`, "NewIndex(", "OldIndex("},
		{"(foo|bar)(baz|qux)", "barqux", "bar qux"},
		{"abc{2,3}d", "abccd", "abcd"},
	} {
		q := Regexp(c.expr)
		if !fulfils(q, c.yes) || c.no != "" && fulfils(q, c.no) {
			t.Errorf("%s: %v %v, want true, false", c.expr, fulfils(q, c.yes), fulfils(q, c.no))
		}
	}
}

// model is the content of an Index in a test.
type model map[string]string

func (m model) put(t *testing.T, x *Index, path, text string) {
	t.Helper()
	if err := x.Put(File{Path: path, Size: int64(len(text)), ModTime: 1, Text: true}, []byte(text)); err != nil {
		t.Fatal(err)
	}
	m[path] = text
}

// check compares candidates with the texts: all files that contain the literal, and for one
// of three bytes no other.
func (m model) check(t *testing.T, x *Index, literal string) {
	t.Helper()
	files, _ := x.Candidates(Literal(literal))
	got := map[string]bool{}
	for _, f := range files {
		got[f.Path] = true
	}
	folded := fold(nil, []byte(literal))
	for path, text := range m {
		has := bytes.Contains(fold(nil, []byte(text)), folded)
		if has && !got[path] || len(folded) == 3 && len(m) > fewFiles && has != got[path] {
			t.Fatalf("%q in %s: %v, want %v", literal, path, got[path], has)
		}
		delete(got, path)
	}
	if len(got) > 0 {
		t.Fatalf("%q: candidates %v are no files", literal, got)
	}
}

// TestIndex makes random changes, ends and kills the process, and compares.
func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	dir := filepath.Join(t.TempDir(), "ngrams")
	x, want := Open(dir, nil), model{}
	for step := range 600 {
		switch path := fmt.Sprintf("d%d/f%d", rng.IntN(5), rng.IntN(300)); {
		case rng.IntN(4) == 0:
			x.Remove([]string{path})
			delete(want, path)
		default:
			want.put(t, x, path, randomText(rng, 40)+"\n"+randomText(rng, 40))
		}
		if rng.IntN(10) == 0 {
			x.writing.Lock()
			if err := x.flush(); err != nil {
				t.Fatal(err)
			}
			x.writing.Unlock()
		}
		if rng.IntN(60) == 0 { // what is removed comes back with a new start, as the file may
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = Open(dir, nil)
			var removed []string
			for f := range x.Files() {
				if _, ok := want[f.Path]; !ok {
					removed = append(removed, f.Path)
				}
			}
			x.Remove(removed)
		}
		if step%7 == 0 {
			for range 5 {
				want.check(t, x, randomText(rng, 5))
			}
		}
	}
	if n := len(x.segments); n < 1 || n > 3*mergeAt {
		t.Errorf("%d segments", n)
	}
	for path := range want {
		if f, ok := x.File(path); !ok || f.Size != int64(len(want[path])) {
			t.Errorf("%s: %+v, %v", path, f, ok)
		}
	}
	x.Clear()
	if files, _ := x.Candidates(&Query{}); len(files) > 0 {
		t.Errorf("cleared: %v", files)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("cleared: %v", left)
	}
}

// TestDamage: a damaged file makes its files unknown, and no answer wrong.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	dir := filepath.Join(t.TempDir(), "ngrams")
	x, want := Open(dir, nil), model{}
	for i := range 60 {
		want.put(t, x, fmt.Sprintf("f%02d", i), strings.Repeat(randomText(rng, 80)+"\n", 3))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(names) != 1 {
		t.Fatalf("%v, want one segment", names)
	}
	if info, err := os.Stat(names[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want the permissions 0600", info.Mode(), err)
	}
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		bad := slices.Clone(whole)
		if rng.IntN(4) == 0 {
			bad = bad[:rng.IntN(len(bad))]
		} else {
			bad[rng.IntN(len(bad))] ^= byte(1 << rng.IntN(8))
		}
		if err := os.WriteFile(names[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		x := Open(dir, nil)
		x.SetComplete(true)
		f, err := x.Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		known := maps.Collect(func(yield func(string, string) bool) {
			for f := range x.Files() {
				yield(f.Path, want[f.Path])
			}
		})
		if len(f.Problems) == 0 && len(known) > 0 {
			t.Fatal("the damage was not found")
		}
		for range 5 {
			literal := randomText(rng, 8)
			x.Candidates(Literal(literal))
			if _, ok := x.File("f00"); ok {
				model(known).check(t, x, literal)
			}
		}
		if _, complete := x.Candidates(&Query{}); complete && len(slices.Collect(x.Files())) < len(known) {
			t.Fatal("the index is complete without the files of a damaged segment")
		}
		x.Close()
	}
}

// TestRules: segments of other rules do not count.
func TestRules(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ngrams")
	x := Open(dir, &Options{Rules: "a"})
	model{}.put(t, x, "f", "text")
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x = Open(dir, &Options{Rules: "b", ReadOnly: true}); len(slices.Collect(x.Files())) != 0 {
		t.Error("a file by other rules is known")
	}
	if x = Open(dir, &Options{Rules: "a"}); len(slices.Collect(x.Files())) != 1 {
		t.Error("a reader has removed a segment")
	}
}
