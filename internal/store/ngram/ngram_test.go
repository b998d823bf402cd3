package ngram

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
	return q.match(recorder.filter([]byte(line)))
}

var recorder Recorder

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
	r := recorder.Record(File{Path: path, Size: int64(len(text)), ModTime: 1, Text: true}, []byte(text))
	if err := x.Update([]Record{r}, nil); err != nil {
		t.Fatal(err)
	}
	m[path] = text
}

// files returns the recorded files, and whether they can match.
func files(x *Index, q *Query) map[string]bool {
	found := map[string]bool{}
	x.Files(q, func(f *File, can bool) { found[f.Path] = can })
	return found
}

// check compares candidates with the texts: all files that contain the literal, and few
// others.
func (m model) check(t *testing.T, x *Index, literal string) (others int) {
	t.Helper()
	got, folded := files(x, Literal(literal)), fold(nil, []byte(literal))
	for path, text := range m {
		can, ok := got[path]
		if has := bytes.Contains(fold(nil, []byte(text)), folded); !ok || has && !can {
			t.Fatalf("%q in %s: %v, %v, want %v", literal, path, can, ok, has)
		} else if can && !has && len(folded) == 3 {
			others++
		}
		delete(got, path)
	}
	if len(got) > 0 {
		t.Fatalf("%q: candidates %v are no files", literal, got)
	}
	return others
}

// TestIndex makes random changes, ends the process, and compares.
func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	file := filepath.Join(t.TempDir(), "ngrams")
	x, want := Open(file, nil), model{}
	tests, others := 0, 0
	for step := range 200 {
		switch path := fmt.Sprintf("d%d/f%d", rng.IntN(5), rng.IntN(30)); {
		case rng.IntN(4) == 0:
			if err := x.Update(nil, []string{path}); err != nil {
				t.Fatal(err)
			}
			delete(want, path)
		default:
			want.put(t, x, path, randomText(rng, 40)+"\n"+randomText(rng, 40))
		}
		if rng.IntN(60) == 0 {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = Open(file, nil)
		}
		if step%7 == 0 {
			for range 5 {
				tests += len(want)
				others += want.check(t, x, randomText(rng, 5))
			}
		}
	}
	if others > tests/10 {
		t.Errorf("%d of %d files can match and do not", others, tests)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want the permissions 0600", info.Mode(), err)
	}
	x.Clear()
	if found := files(x, &Query{}); len(found) > 0 {
		t.Errorf("cleared: %v", found)
	}
}

// TestDamage: a damaged file makes its files unknown, and no answer wrong.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	file := filepath.Join(t.TempDir(), "ngrams")
	x, want := Open(file, nil), model{}
	for i := range 60 {
		want.put(t, x, fmt.Sprintf("f%02d", i), strings.Repeat(randomText(rng, 80)+"\n", 3))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for range 200 {
		bad := slices.Clone(whole)
		if rng.IntN(4) == 0 {
			bad = bad[:rng.IntN(len(bad))]
		} else {
			at := rng.IntN(len(bad))
			for bad[at] == 0 { // most of the file is not used yet
				at = rng.IntN(len(bad))
			}
			bad[at] ^= byte(1 << rng.IntN(8))
		}
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		x := Open(file, nil)
		switch known := files(x, &Query{}); {
		case len(known) > 0:
			want.check(t, x, randomText(rng, 8))
		default:
			lost++
			again := model{}
			again.put(t, x, "again", "text")
			again.check(t, x, "text")
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if lost < 20 || lost > 180 {
		t.Errorf("the records were lost in %d of 200 cases: the test shows little", lost)
	}
}

// TestRules: records of other rules do not count.
func TestRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ngrams")
	x := Open(file, &Options{Rules: "a"})
	model{}.put(t, x, "f", "text")
	for _, rules := range []string{"a", "b", "a"} {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		x = Open(file, &Options{Rules: rules})
		if n := len(files(x, &Query{})); n == 1 != (rules == "a") {
			t.Errorf("%s: %d files", rules, n)
		}
		if rules == "b" {
			break
		}
	}
}
