package ngram

import (
	"bytes"
	"math/rand/v2"
	"regexp"
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
	return q.Match(maker.Filter([]byte(line)))
}

var maker Maker

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

// TestFilter: of the texts without a literal, few can have it according to their filters.
func TestFilter(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	tests, others := 0, 0
	for range 300 {
		text := []byte(randomText(rng, 40) + "\n" + randomText(rng, 40))
		filter := maker.Filter(text)
		for range 20 {
			folded := fold(nil, []byte(randomText(rng, 5)))
			q := Literal(string(folded))
			has, can := bytes.Contains(fold(nil, text), folded), q.Match(filter)
			if has && !can {
				t.Fatalf("%q in %q", folded, text)
			}
			if len(folded) == 3 && !has {
				if tests++; can {
					others++
				}
			}
			if !q.Match("") || q.Match(NotText) {
				t.Errorf("%q: an unknown file can match %v, one without text %v", folded, q.Match(""), q.Match(NotText))
			}
		}
	}
	if tests < 500 || others > tests/8 {
		t.Errorf("%d of %d texts can match and do not", others, tests)
	}
}
