package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// testKeyword runs the conformance tests of store.Keyword. open returns a new empty index, and
// must close it with t.Cleanup. Scores may differ between indexes, but not the chunks
// found, nor their order if the contract defines it.
func testKeyword(t *testing.T, open func(t *testing.T) store.Keyword) {
	for _, c := range common {
		t.Run(c.name, func(t *testing.T) { c.test(ofKeywords(t, open(t))) })
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Keyword)
	}{
		{"Words", keywordWords}, {"Operators", keywordOperators}, {"Admits", keywordAdmits}, {"Fuzzy", keywordFuzzy}, {"Refused", keywordRefused},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func textEntry(path, body string) store.KeywordEntry {
	return store.KeywordEntry{Chunk: store.ChunkID(path, "x", 0), Path: path, Body: body}
}

// find returns the paths of the hits.
func find(t *testing.T, x store.Keyword, text string, k int, f store.Filter) string {
	t.Helper()
	hits, err := x.Search(background, query.Parse(text), k, f)
	if err != nil {
		t.Fatalf("Search(%q, %d, %+v): %v", text, k, f, err)
	}
	return strings.ReplaceAll(chunks(hits), "#x.0", "")
}

// keywordWords finds chunks by some of their words.
func keywordWords(t *testing.T, x store.Keyword) {
	for _, q := range []string{"word", "", "  ", `"a phrase"`, "-not", "-"} {
		if got := find(t, x, q, 5, store.Filter{}); got != "" {
			t.Errorf("%q in an empty index: %q", q, got)
		}
	}
	update(t, x, []store.KeywordEntry{
		textEntry("c", "token and many other words that have nothing to do with what is asked for here"),
		textEntry("a", "token token token"), textEntry("b", "token and some words"), textEntry("d", "before"), textEntry("e", ""),
	}, nil)
	count(t, x, 5) // a chunk without a word is one too
	update(t, x, []store.KeywordEntry{textEntry("d", "never"), textEntry("d", "after")}, nil)
	for q, want := range map[string]string{"token": "a b c", "": "", "before": "", "never": "", "after": "d"} {
		if got := find(t, x, q, 5, store.Filter{}); got != want {
			t.Errorf("%q: %q, want %q", q, got, want)
		}
	}
}

func keywordOperators(t *testing.T, x store.Keyword) {
	update(t, x, []store.KeywordEntry{
		textEntry("a", "Rotate the access token with rotateToken and --dry-run."),
		textEntry("b", "The token of the gateway gives access."),
		textEntry("c", "find . -name '*.md' prints names of any token"),
	}, nil)
	for q, want := range map[string]string{
		`"access token"`: "a", `"token access"`: "", "token -gateway": "a c", `token -"access token"`: "b c",
		"find -name": "c", "--dry-run": "a", "-token": "a b c", "“access token”": "a",
	} {
		got := strings.Fields(find(t, x, q, 5, store.Filter{}))
		for _, path := range strings.Fields(want) {
			if !strings.Contains(strings.Join(got, " "), path) {
				t.Errorf("%q: %q, want %q", q, got, want)
			}
		}
		if len(got) != len(strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", q, got, want)
		}
	}
}

// keywordAdmits checks operators on chunks that a search for the words may not find.
func keywordAdmits(t *testing.T, x store.Keyword) {
	update(t, x, []store.KeywordEntry{
		textEntry("a", "Rotate the access token with rotateToken and --dry-run."),
		textEntry("b", "The token of the gateway gives access."),
		textEntry("c", "find . -name '*.md' prints names of any token"),
		textEntry("d", "A garden."), textEntry("e", "removed"),
	}, nil)
	update(t, x, nil, []string{"e#x.0"})
	asked := []string{"d#x.0", "a#x.0", "unknown#x.0", "c#x.0", "b#x.0", "e#x.0"}
	for text, want := range map[string]string{
		"token": "d a c b", `"access token"`: "a", "token -gateway": "d a c", `token -"access token"`: "d c b",
		"find -name": "d a c b", `"access token" -rotate`: "", `add "x" to every line of a file`: "d a c b",
	} {
		admits, err := x.Admits(background, query.Parse(text), asked)
		if err != nil || len(admits) != len(asked) {
			t.Fatalf("Admits(%q): %v, %v", text, admits, err)
		}
		var got []string
		for i, ok := range admits {
			if ok {
				got = append(got, strings.TrimSuffix(asked[i], "#x.0"))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("Admits(%q): %q, want %q", text, got, want)
		}
	}
	if admits, err := x.Admits(background, query.Parse("token"), nil); len(admits) != 0 || err != nil {
		t.Errorf("Admits of no chunks: %v, %v", admits, err)
	}
}

// keywordFuzzy searches for misspelt words. Hits are ordered by how near and how common
// the intended words are.
func keywordFuzzy(t *testing.T, x store.Keyword) {
	similar := func(text string, f store.Filter) string {
		t.Helper()
		hits, err := x.Search(background, query.Parse(text).WithFuzzy(), 5, f)
		if err != nil {
			t.Fatalf("fuzzy Search(%q, %+v): %v", text, f, err)
		}
		return strings.ReplaceAll(chunks(hits), "#x.0", "")
	}
	if got := similar("tokne", store.Filter{}); got != "" {
		t.Errorf("nothing is held, and tokne finds %q", got)
	}
	update(t, x, []store.KeywordEntry{
		textEntry("a", "Rotate the access token of the gateway."),
		textEntry("sub/b", "A token, another token, and the keeper of their names."),
		textEntry("c", "The quagga is extinct, 東京都 is not."),
		textEntry("d", "A taken seat."),
	}, nil)
	for q, want := range map[string]string{
		"quaga": "c", "tokne": "sub/b a", "takne": "d", "gatway": "a", "qugga rotated": "a c", "uagga": "", "thier": "", "tw": "", "東京": "c", "": "",
		"token": "sub/b a d", "tokne -gateway": "sub/b", `tokne "another token"`: "sub/b", "seaat": "d",
	} {
		if got := strings.Fields(similar(q, store.Filter{})); strings.Join(got, " ") != want {
			t.Errorf("fuzzy %q: %q, want %q", q, got, want)
		}
		if q != "token" && q != "東京" && !strings.Contains(q, " ") {
			if got := find(t, x, q, 5, store.Filter{}); got != "" {
				t.Errorf("%q as typed finds %q", q, got)
			}
		}
	}
	// A misspelt word counts even when other words match as typed.
	for q, want := range map[string]string{"tokne gateway": "a sub/b", "quaga seat": "d c", "qqqq seat": "d", "tokne -seat": ""} {
		if got := find(t, x, q, 5, store.Filter{}); got != want {
			t.Errorf("%q as typed: %q, want %q", q, got, want)
		}
	}
	if got := similar("tokne", store.Filter{PathPrefix: "sub/"}); got != "sub/b" {
		t.Errorf("tokne below sub/: %q, want sub/b", got)
	}
	update(t, x, []store.KeywordEntry{textEntry("e", "zeppelin")}, []string{"c#x.0"})
	if got := similar("zepelin", store.Filter{}) + similar("quaga", store.Filter{}); got != "e" {
		t.Errorf("after a change zepelin and quaga find %q, want e", got)
	}
	// Of two words the nearer one is meant, although the other is commoner.
	update(t, x, []store.KeywordEntry{textEntry("f", "carpets"), textEntry("g", "carpenter"), textEntry("h", "carpenter")}, nil)
	if got := similar("carpetrs", store.Filter{}); !strings.HasPrefix(got, "f") {
		t.Errorf("carpetrs: %q, want f first", got)
	}
}

func keywordRefused(t *testing.T, x store.Keyword) {
	if err := x.Update(background, []store.KeywordEntry{textEntry("a", "word"), {Body: "no id"}}, nil); err == nil {
		t.Error("an entry without an id was accepted")
	}
	count(t, x, 0)
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := x.Search(ctx, query.Parse("word"), 3, store.Filter{}); len(strings.TrimSpace(fmt.Sprint(err))) > 0 && err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Search: %v, want %v", err, context.Canceled)
	}
}
