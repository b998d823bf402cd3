package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/retriever"

	"github.com/google/go-cmp/cmp"
)

func TestMark(t *testing.T) {
	s := style{width: 80, colour: true}
	for _, c := range []struct{ query, line, want string }{
		{"rotate the token", "Rotating a Token, tokens", match + "Rotating" + reset + " a " + match + "Token" + reset + ", " + match + "tokens" + reset},
		{"retry", "see retry_after_seconds", "see " + match + "retry_after_seconds" + reset},
		{"walrus", "no such word", "no such word"},
		{"", "anything", "anything"},
	} {
		if got := newMarker(c.query).mark(s, c.line); got != c.want {
			t.Errorf("mark(%q) for %q = %q, want %q", c.line, c.query, got, c.want)
		}
	}
	if got := newMarker("token").mark(style{width: 80}, "a token"); got != "a token" {
		t.Errorf("without colour: %q, want the line as it is", got)
	}
}

func TestWrapCutPick(t *testing.T) {
	if diff := cmp.Diff([]string{"one two", "three", "fourteen-runes", "five"}, wrap("one  two three fourteen-runes five ", 8)); diff != "" {
		t.Errorf("wrap (-want +got):\n%s", diff)
	}
	if got := cut("a\x1b[31m\tb\u202ec", 80); got != "a[31m bc" {
		t.Errorf("cut leaves %q, want no control characters", got)
	}
	if got := cut("日本語のテキスト", 4); got != "日本語…" {
		t.Errorf("cut = %q, want four runes", got)
	}
	lines := []string{"first", "second", "a token here", "fourth", "more tokens"}
	if diff := cmp.Diff([]string{"first", "a token here", "more tokens"}, newMarker("token").pick(lines, 3)); diff != "" {
		t.Errorf("pick (-want +got):\n%s", diff)
	}
}

func TestResultKeepsItsWidth(t *testing.T) {
	r := &retriever.Result{
		Path: "docs/auth.md", Anchor: "login", Headings: []string{"Auth", strings.Repeat("long heading ", 20)}, Score: .5,
		LineRange: retriever.Lines{Start: 3, End: 9}, Snippet: strings.Repeat("a token and more ", 30), Duplicates: []string{strings.Repeat("copy/", 60)},
	}
	for _, width := range []int{minWidth, defaultWidth, maxWidth} {
		var b strings.Builder
		style{width: width}.result(&b, 1, r, newMarker("token"))
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
	}
	r.Path = strings.Repeat("folder/", 20) + "auth.md"
	var b strings.Builder
	style{width: minWidth}.result(&b, 1, r, newMarker("token"))
	if !strings.Contains(b.String(), r.Path+"#login\n") {
		t.Errorf("a long place is cut:\n%s", &b)
	}
}

func TestNotes(t *testing.T) {
	next := "abc"
	for _, c := range []struct {
		answer retriever.Answer
		want   string
	}{
		{retriever.Answer{Reason: "no_match", Hint: "use other words"}, "nothing found: no match|use other words"},
		{retriever.Answer{Results: make([]retriever.Result, 1)}, ""},
		{retriever.Answer{Results: make([]retriever.Result, 1), Fuzzy: true, Degraded: []string{"vectors"}, Index: retriever.IndexState{Embedded: 3, Pending: 1}},
			"nothing matched the words as typed; these match near spellings|1 of 4 pieces have no vector yet and were found by keyword only; `cairn index` makes the rest"},
		{retriever.Answer{Results: make([]retriever.Result, 1), TotalCount: 7, HasMore: true, NextCursor: &next}, "7 documents in all; next page: --cursor abc"},
	} {
		if got := strings.Join(notes(&c.answer), "|"); got != c.want {
			t.Errorf("notes(%+v) = %q, want %q", c.answer, got, c.want)
		}
	}
}
