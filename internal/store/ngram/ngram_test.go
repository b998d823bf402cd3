package ngram

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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
	return q.Match(maker.Filter([]byte(line), false))
}

var maker Maker

// TestQueryIsImplied: a line that matches an expression fulfils its condition, and the
// Finder finds the line.
func TestQueryIsImplied(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	matches, refused := 0, 0
	for range 20_000 {
		expr := randomExpr(rng, 4)
		re, err := regexp.Compile(expr)
		if err != nil {
			t.Fatal(expr, err)
		}
		q, finder := Regexp(expr)
		var text []string
		for range 6 {
			text = append(text, randomText(rng, 24))
		}
		found := map[int]bool{}
		all := strings.Join(text, "\n")
		looked := finder.Lines([]byte(all), func(number, start int) bool {
			if found[number-1] = true; start != len(strings.Join(text[:number-1], "\n"))+min(number-1, 1) {
				t.Fatalf("%q: line %d of %q begins at %d", expr, number, all, start)
			}
			return true
		})
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
		q, _ := Regexp(c.expr)
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
		filter := maker.Filter(text, false)
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

// TestParts: a large file is divided at line breaks, and one of its parts has a line.
func TestParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var lines []string
	for size := 0; size < 5*partSize; {
		line := fmt.Sprintf("line%x of %x", rng.Uint64(), rng.Uint64())
		lines, size = append(lines, line), size+len(line)+1
	}
	for name, text := range map[string]string{"lines": strings.Join(lines, "\n"), "one line": strings.Join(lines, " ")} {
		filter := maker.Filter([]byte(text), false)
		for _, line := range lines {
			if !Literal(line).Match(filter) {
				t.Fatalf("%s: %q cannot match", name, line)
			}
		}
	}
	text := strings.Join(lines, "\n")
	filter := maker.Filter([]byte(text), false)
	for n, line := range lines {
		parts := Literal(line).Parts(filter)
		i := slices.IndexFunc(parts, func(p Part) bool { return strings.Contains(text[p.Start:p.End], line) })
		if i < 0 || len(parts) > 2 || strings.Count(text[:parts[i].Start], "\n") != parts[i].Line {
			t.Fatalf("line %d is in one of %+v", n, parts)
		}
	}
	if other := Literal(lines[0] + " " + lines[len(lines)-1]); other.Match(filter) {
		t.Error("a line of the words of two parts can match")
	}
	if !filter.Verbatim() || maker.Filter([]byte("***"), true).Verbatim() || NotText.Verbatim() || Filter("").Verbatim() {
		t.Error("the filters do not tell whether the text is the file")
	}
	for _, damaged := range []Filter{filter[1:], filter[:len(filter)-1], "\x00\x00\x00\x00"} {
		if !Literal("nowhere").Match(damaged) {
			t.Errorf("a damaged filter of %d bytes excludes a file", len(damaged))
		}
	}
}
