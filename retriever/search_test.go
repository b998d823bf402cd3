package retriever

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/keyword"
	"cairn/internal/text/markdown"
	"cairn/internal/text/query"
)

// TestBlend is the hybrid formula on values computed by hand:
// 0.7·clip(cosine) + 0.3·keyword, kept when keyword > 0 or cosine > 0.3.
func TestBlend(t *testing.T) {
	// A chunk "top" with BM25 1 makes the other BM25 values their normalised ones.
	for _, c := range []struct {
		cosine, keyword float64
		want            float64
		kept            bool
	}{
		{.62, .10, .464, true},
		{.31, 0, .217, true},
		{.30, 0, 0, false},
		{-.2, .825, .2475, true},
	} {
		l := legs{keyword: []store.Hit{{Chunk: "top#a.0", Score: 1}}, cosines: []float64{0}}
		if c.keyword > 0 {
			l.keyword = append(l.keyword, store.Hit{Chunk: "x#a.0", Score: c.keyword})
			l.cosines = append(l.cosines, c.cosine)
		} else {
			l.vector = []store.Hit{{Chunk: "x#a.0", Score: c.cosine}}
		}
		b := blender{mode: Hybrid, vectorWeight: .7, keywordWeight: .3, minSimilarity: .3}
		got := -1.0
		for _, k := range b.blend(&l) {
			if k.path == "x" {
				got = k.Score
			}
		}
		if kept := got >= 0; kept != c.kept || kept && math.Abs(got-c.want) > 1e-12 {
			t.Errorf("cosine %g and keyword %g give %g, want %g (kept: %v)", c.cosine, c.keyword, got, c.want, c.kept)
		}
	}
}

// TestBlendRawScores: a BM25 far above 1 must not outweigh cosines, an absent
// leg is 0, and a chunk without a vector is neither 0 nor best.
func TestBlendRawScores(t *testing.T) {
	l := legs{
		keyword: []store.Hit{{Chunk: "k#.0", Score: 40}, {Chunk: "both#.0", Score: 30}, {Chunk: "new#.0", Score: 20}},
		cosines: []float64{.1, .8, math.NaN()},
		vector:  []store.Hit{{Chunk: "both#.0", Score: .8}, {Chunk: "v#.0", Score: .7}},
	}
	b := blender{mode: Hybrid, vectorWeight: .7, keywordWeight: .3, minSimilarity: .3}
	want := map[string]float64{
		"both": .7*.8 + .3*.75,
		"v":    .7 * .7,
		"k":    .7*.1 + .3,
		"new":  .7*(.8*(.45+.45*.5)) + .3*.5,
	}
	for _, c := range b.blend(&l) {
		if math.Abs(c.Score-want[c.path]) > 1e-12 {
			t.Errorf("%s scores %g, want %g", c.path, c.Score, want[c.path])
		}
		if c.Imputed != (c.path == "new") {
			t.Errorf("%s: imputed is %v", c.path, c.Imputed)
		}
		delete(want, c.path)
	}
	if len(want) > 0 {
		t.Errorf("missing %v", want)
	}
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]Mode{"": Hybrid, "hybrid": Hybrid, "keyword": Keyword, "semantic": Semantic} {
		if got, err := ParseMode(in); got != want || err != nil {
			t.Errorf("ParseMode(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	var bad *InvalidError
	if _, err := ParseMode("fuzzy"); !errors.As(err, &bad) || bad.Field != "mode" {
		t.Errorf(`ParseMode("fuzzy") = %v, want an InvalidError about mode`, err)
	}
}

func TestQueryBounds(t *testing.T) {
	f := open(t, map[string]string{"a.md": "# A\n\ntext\n"}, nil)
	for _, c := range []struct {
		field string // "" when it is fine
		q     Query
	}{
		{"", Query{Text: "a"}},
		{"", Query{Text: " " + strings.Repeat("é", MaxQuery) + " "}},
		{"query", Query{Text: strings.Repeat("é", MaxQuery+1)}},
		{"query", Query{}},
		{"query", Query{Text: " \t "}},
		{"query", Query{Text: "a\xff"}},
		{"limit", Query{Text: "a", Limit: -1}},
		{"limit", Query{Text: "a", Limit: 51}},
		{"", Query{Text: "a", Limit: 50}},
		{"mode", Query{Text: "a", Mode: "fuzzy"}},
		{"max_tokens", Query{Text: "a", MaxTokens: -5}},
		{"max_tokens", Query{Text: "a", MaxTokens: 199}},
		{"cursor", Query{Text: "a", Cursor: "!"}},
		{"cursor", Query{Text: "a", Cursor: "MTA="}},
	} {
		_, err := f.Search(context.Background(), c.q)
		var bad *InvalidError
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &bad) || bad.Field != c.field) {
			t.Errorf("Search(%+v) = %v, want an error about %q", c.q, err, c.field)
		}
	}
}

// numbered returns n documents that all match "needle".
func numbered(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("d/%02d.md", i)] = fmt.Sprintf("# Topic %d\n\nneedle and number %d of the heap.\n", i, i)
	}
	return files
}

func TestPagination(t *testing.T) {
	for _, c := range []struct {
		documents int
		limits    []int // of each page
		want      []int // results of each page
	}{
		{25, []int{10, 10, 10}, []int{10, 10, 5}},
		{20, []int{10, 10}, []int{10, 10}},
		{25, []int{5, 20}, []int{5, 20}},
		{0, []int{10}, []int{0}},
	} {
		f := open(t, numbered(c.documents), nil)
		for _, mode := range []Mode{Hybrid, Keyword, Semantic} {
			seen := map[string]bool{}
			cursor := ""
			for page, limit := range c.limits {
				a := f.search(Query{Text: "needle", Mode: mode, Limit: limit, Cursor: cursor})
				last := page == len(c.limits)-1
				if len(a.Results) != c.want[page] || a.TotalCount != c.documents || a.HasMore == last || (a.NextCursor == nil) != last {
					t.Errorf("%d documents, %s, page %d: %d results, total %d, more %v, cursor %v; want %d results, more %v",
						c.documents, mode, page, len(a.Results), a.TotalCount, a.HasMore, a.NextCursor, c.want[page], !last)
				}
				for _, r := range a.Results {
					if seen[r.Path] {
						t.Errorf("%s: %s is on two pages", mode, r.Path)
					}
					seen[r.Path] = true
				}
				if !last {
					if a.NextCursor == nil {
						break
					}
					cursor = *a.NextCursor
				}
			}
		}
	}
}

// TestDeepPages requests pages beyond the first depth of the legs.
func TestDeepPages(t *testing.T) {
	f := open(t, numbered(60), &Options{Depth: 8})
	for _, mode := range []Mode{Hybrid, Keyword, Semantic} {
		var got []string
		for cursor := ""; ; {
			a := f.search(Query{Text: "needle", Mode: mode, Limit: 7, Cursor: cursor})
			got = append(got, paths(a)...)
			if a.NextCursor == nil {
				break
			}
			cursor = *a.NextCursor
		}
		slices.Sort(got)
		if n := len(slices.Compact(slices.Clone(got))); len(got) != 60 || n != 60 {
			t.Errorf("%s: %d results, %d different, want 60", mode, len(got), n)
		}
	}
}

func TestCursorIsBoundToQueryAndIndex(t *testing.T) {
	f := open(t, numbered(9), nil)
	first := f.search(Query{Text: "needle"})
	cursor, number := *first.NextCursor, first.Next()
	if Offset(cursor) != len(first.Results) || Offset(number) != len(first.Results) || Offset("") != 0 {
		t.Errorf("the offsets of %s and %s are %d and %d, want %d", cursor, number, Offset(cursor), Offset(number), len(first.Results))
	}
	if got, want := paths(f.search(Query{Text: "needle", Cursor: number})), paths(f.search(Query{Text: "needle", Cursor: cursor})); !slices.Equal(got, want) {
		t.Errorf("the cursor %s gives %q, want %q", number, got, want)
	}
	var bad *InvalidError
	for _, cursor := range []string{cursor, number, "5", "5.", "-1." + number} {
		if _, err := f.Search(context.Background(), Query{Text: "number", Cursor: cursor}); !errors.As(err, &bad) || bad.Field != "cursor" {
			t.Errorf("the cursor %s of another query gives %v, want an InvalidError", cursor, err)
		}
	}
	f.index(numbered(1), nil)
	var changed *IndexChangedError
	if _, err := f.Search(context.Background(), Query{Text: "needle", Cursor: cursor}); !errors.As(err, &changed) {
		t.Errorf("the cursor of an earlier generation gives %v, want an IndexChangedError", err)
	}
	if _, err := f.Search(context.Background(), Query{Text: "needle", Cursor: number}); !errors.As(err, &bad) {
		t.Errorf("the number %s of an earlier generation gives %v, want an InvalidError", number, err)
	}
}

func TestFilters(t *testing.T) {
	f := open(t, map[string]string{
		"docs/auth.md":  "---\ntitle: One\ntags: [auth, ui]\npriority: high\nassignee: Ann\n---\nneedle in the first\n",
		"docs/other.md": "---\ntitle: Two\ntags: [db]\npriority: low\n---\nneedle in the second\n",
		"plain.md":      "# Three\n\nneedle needle needle\n",
	}, nil)
	for _, c := range []struct {
		filter store.Filter
		want   string
	}{
		{store.Filter{}, "docs/auth.md docs/other.md plain.md"},
		{store.Filter{Tags: []string{"AUTH"}}, "docs/auth.md"},
		{store.Filter{Tags: []string{"auth", "DB"}}, "docs/auth.md docs/other.md"},
		{store.Filter{Priority: "HIGH"}, "docs/auth.md"},
		{store.Filter{Assignee: "ann"}, "docs/auth.md"},
		{store.Filter{Tags: []string{"ui"}, Priority: "low"}, ""},
		{store.Filter{PathPrefix: "docs/"}, "docs/auth.md docs/other.md"},
		{store.Filter{PathPrefix: "/docs/au"}, "docs/auth.md"},
	} {
		for _, mode := range []Mode{Hybrid, Keyword, Semantic} {
			got := paths(f.search(Query{Text: "needle", Mode: mode, Filter: c.filter}))
			slices.Sort(got)
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s %+v finds %v, want %s", mode, c.filter, got, c.want)
			}
		}
	}
}

func TestOperatorsBindTheVectorLeg(t *testing.T) {
	f := open(t, map[string]string{
		"both.md":  "# Cache\n\nred cache eviction policy\n",
		"red.md":   "# Red\n\nred things of all kinds\n",
		"cache.md": "# Cache\n\nthe cache policy is blue\n",
	}, nil)
	for _, c := range []struct {
		query         string
		with, without []string
	}{
		{`cache -red`, []string{"cache.md"}, []string{"both.md", "red.md"}},
		{`red -"cache eviction"`, []string{"red.md"}, []string{"both.md"}},
		{`cache "red cache"`, []string{"both.md"}, []string{"red.md", "cache.md"}},
		{`"cache policy"`, []string{"cache.md"}, []string{"red.md", "both.md"}},
		{`cache red`, []string{"cache.md", "red.md", "both.md"}, nil},
		{`-red`, []string{"red.md", "both.md"}, nil}, // it excludes nothing, as there is nothing else
	} {
		for _, mode := range []Mode{Hybrid, Semantic} {
			got := paths(f.search(Query{Text: c.query, Mode: mode}))
			for _, want := range c.with {
				if !slices.Contains(got, want) {
					t.Errorf("%s %s finds %v, want %s among them", mode, c.query, got, want)
				}
			}
			for _, not := range c.without {
				if slices.Contains(got, not) {
					t.Errorf("%s %s finds %v, want it without %s", mode, c.query, got, not)
				}
			}
		}
	}
}

// TestAbsentPhrase: a phrase that no text has is searched for by its words, which the answer
// says; exclusions and phrases that some text has stay in force.
func TestAbsentPhrase(t *testing.T) {
	f := open(t, map[string]string{
		"clone.md": "# Clone\n\nReturns an object like this one, with changes.\n",
		"merge.md": "# Merge\n\nJoins one object with another object.\n",
	}, nil)
	for _, mode := range []Mode{Keyword, Semantic, Hybrid} {
		a := f.search(Query{Text: `"create an object like this one" -joins`, Mode: mode})
		if len(a.Results) != 1 || a.Results[0].Path != "clone.md" || !strings.Contains(a.Hint, "quoted words") {
			t.Errorf("%s: %+v, hint %q, want clone.md and a hint", mode, a.Results, a.Hint)
		}
		a = f.search(Query{Text: `"object like this"`, Mode: mode})
		if len(a.Results) != 1 || a.Results[0].Path != "clone.md" || strings.Contains(a.Hint, "quoted words") {
			t.Errorf("%s: %+v, hint %q, want only clone.md", mode, a.Results, a.Hint)
		}
	}
}

func TestTypos(t *testing.T) {
	f := open(t, map[string]string{"auth.md": "# Sign in\n\nauthentication of users\n", "b.md": "# Cooking\n\nrecipes of soup\n"}, nil)
	a := f.search(Query{Text: "authentcation", Mode: Keyword})
	if got := paths(a); len(got) != 1 || got[0] != "auth.md" || !a.Fuzzy {
		t.Errorf("a misspelt word finds %v (fuzzy %v), want auth.md by a fuzzy pass", got, a.Fuzzy)
	}
	if a := f.search(Query{Text: "authentication recepies", Mode: Keyword}); a.Fuzzy {
		t.Errorf("the fuzzy pass ran although a word matched: %v", paths(a))
	}
}

// TestTypoAmongWords: a misspelt word counts although another word matches elsewhere. A
// number or a code that no page has stands for no other one.
func TestTypoAmongWords(t *testing.T) {
	f := open(t, map[string]string{
		"rc.md": "# Smart pointers\n\nReference counting of shared values.\n",
		"a.md":  "# Words\n\nCounting the words of a text, counting lines.\n", "b.md": "# Loops\n\nCounting from one to ten.\n",
		"e.md": "# Errors\n\nError C4995.\n",
	}, nil)
	a := f.search(Query{Text: "refrence counting", Mode: Keyword})
	if got := paths(a); len(got) != 3 || got[0] != "rc.md" || a.Fuzzy {
		t.Errorf("refrence counting finds %v (fuzzy %v), want rc.md first", got, a.Fuzzy)
	}
	if got := paths(f.search(Query{Text: "counting C4996", Mode: Keyword})); slices.Contains(got, "e.md") {
		t.Errorf("counting C4996 finds %v, want no page of another code", got)
	}
}

// TestLinksRankBelowContent: a list of links repeats the names of pages in a few words. A
// result shows it only when the rest of its page matches much less.
func TestLinksRankBelowContent(t *testing.T) {
	f := open(t, map[string]string{
		"for.md": "---\ntitle: for statement\n---\n\n## Remarks\n\nExecutes a statement repeatedly until the condition becomes false. Each of the three expressions may be absent.\n\n" +
			"## See also\n\n[for statement, range based](range.md)\\\n[while statement](while.md)\n",
		"people.md": "# Project\n\nA compiler for a small language.\n\n## Contributors\n\n[Ada](https://a.example)\\\n[Grace](https://g.example)\n",
	}, nil)
	for text, want := range map[string]string{"for statement": "for.md#remarks", "Contributors": "people.md#contributors"} {
		a := f.search(Query{Text: text, Mode: Keyword})
		if a.Results[0].Place() != want {
			t.Errorf("%s finds %v, want %s", text, a.Results[0].Place(), want)
		}
	}
}

// TestPrefixes: where few documents hold a word, longer words that begin with it are
// found as well, below those that hold the word itself.
func TestPrefixes(t *testing.T) {
	files := map[string]string{
		"auth.md":       "# Notes\n\n" + strings.Repeat("Some other words about the weather of the day. ", 20) + "The auth is here.\n",
		"docs/guide.md": "# Authentication guide\n\nAuthentication, authenticate, authenticated, authorization and authors.\n",
		"recipes.md":    "# Recipes\n\nFlour and water.\n",
	}
	f := open(t, files, nil)
	for query, want := range map[string][]string{
		"auth": {"auth.md", "docs/guide.md"}, "authen": {"docs/guide.md"}, "AUTH flour": {"recipes.md", "auth.md", "docs/guide.md"}, "au": nil,
		"auth -guide": {"auth.md"},
	} {
		if got := paths(f.search(Query{Text: query, Mode: Keyword})); !slices.Equal(got, want) {
			t.Errorf("keyword search for %q finds %v, want %v", query, got, want)
		}
	}
	if got := paths(f.search(Query{Text: "auth", Mode: Hybrid})); !slices.Contains(got, "docs/guide.md") {
		t.Errorf("hybrid search finds %v", got)
	}
	for i := range fewDocuments {
		files[fmt.Sprintf("more%d.md", i)] = "# More\n\nauth\n"
	}
	if got := paths(open(t, files, nil).search(Query{Text: "auth", Mode: Keyword, Limit: 50})); slices.Contains(got, "docs/guide.md") || len(got) != fewDocuments+1 {
		t.Errorf("with enough documents that hold the word the search finds %v", got)
	}
}

// bonus is a Reweigher with the same bonus for all documents.
type bonus float64

func (b bonus) Bonus(_ Query, paths []string) []float64 {
	return slices.Repeat([]float64{float64(b)}, len(paths))
}

func TestDegraded(t *testing.T) {
	files := numbered(6)
	t.Run("some vectors pending", func(t *testing.T) {
		f := open(t, files, nil, "d/00.md", "d/01.md")
		a := f.search(Query{Text: "needle", Limit: 10})
		if len(a.Results) != 6 || !slices.Equal(a.Degraded, []string{"vectors"}) || a.Mode != Hybrid || a.Index.State != "partial" || a.Index.Pending != 2 {
			t.Errorf("%d results, degraded %v, mode %s, index %+v", len(a.Results), a.Degraded, a.Mode, a.Index)
		}
	})
	t.Run("no vector yet", func(t *testing.T) {
		f := open(t, files, nil, slices.Collect(names(files))...)
		for _, mode := range []Mode{Hybrid, Semantic} {
			a := f.search(Query{Text: "needle", Mode: mode, Limit: 10})
			if len(a.Results) != 6 || !slices.Equal(a.Degraded, []string{"vectors"}) || a.Mode != Keyword || a.Results[0].Score != 1 {
				t.Errorf("%s: %d results, degraded %v, mode %s", mode, len(a.Results), a.Degraded, a.Mode)
			}
		}
	})
	t.Run("vector store fails", func(t *testing.T) {
		f := open(t, files, nil)
		f.vectors.err = errors.New("gone")
		a := f.search(Query{Text: "needle", Limit: 10})
		if len(a.Results) != 6 || !slices.Equal(a.Degraded, []string{"vectors"}) || a.Mode != Keyword {
			t.Errorf("%d results, degraded %v, mode %s", len(a.Results), a.Degraded, a.Mode)
		}
	})
	t.Run("the vectors go away between two questions", func(t *testing.T) {
		f := open(t, files, nil)
		f.vectors.scores = errors.New("gone")
		for _, query := range []string{"needle", "needel"} { // as typed, and as meant
			a := f.search(Query{Text: query, Limit: 10})
			if len(a.Results) == 0 || !slices.Equal(a.Degraded, []string{"vectors"}) || a.Mode != Keyword {
				t.Errorf("%s: %d results, degraded %v, mode %s", query, len(a.Results), a.Degraded, a.Mode)
			}
		}
	})
	t.Run("file changed", func(t *testing.T) {
		f := open(t, files, nil)
		f.write("d/02.md", "# Topic 2\n\nsomething longer than what was there before, so that the size differs\n")
		a := f.search(Query{Text: "needle", Limit: 10})
		for _, r := range a.Results {
			if r.Stale != (r.Path == "d/02.md") {
				t.Errorf("%s: stale is %v", r.Path, r.Stale)
			}
		}
		if !slices.Equal(a.Degraded, []string{"stale"}) {
			t.Errorf("degraded %v, want [stale]", a.Degraded)
		}
	})
}

func TestEmptyAnswersSayWhy(t *testing.T) {
	f := open(t, map[string]string{}, nil)
	if a := f.search(Query{Text: "needle"}); a.Reason != "empty_workspace" || a.Hint == "" {
		t.Errorf("an empty folder gives %q %q", a.Reason, a.Hint)
	}
	f = open(t, map[string]string{"a.md": "# A\n\nwords\n"}, nil)
	if a := f.search(Query{Text: "zzzzqqqq", Mode: Keyword}); a.Reason != "no_match" || a.Hint == "" {
		t.Errorf("no match gives %q %q", a.Reason, a.Hint)
	}
	f.sources.Building = func() (bool, int) { return true, 7 }
	if a := f.search(Query{Text: "zzzzqqqq", Mode: Keyword}); a.Reason != "indexing" || a.Index.State != "building" {
		t.Errorf("while building: %q, state %q", a.Reason, a.Index.State)
	}
}

const page = "# Network policies\n\nA network policy says which pods may talk to each other. The controller of the cluster has to support it, " +
	"otherwise the policy has no effect at all and traffic flows between every pod of the namespace as before.\n\n" +
	"Policies add up: when several of them select a pod, it may do what any one of them allows, and nothing else.\n"

func TestNearDuplicatesCollapse(t *testing.T) {
	f := open(t, map[string]string{
		"v1/policy.md": page,
		"v2/policy.md": strings.Replace(page, "as before", "as **before**", 1),
		"v3/policy.md": page,
		"other.md":     "# Services\n\nA service gives pods of a policy one name.\n",
	}, nil)
	a := f.search(Query{Text: "network policy pods"})
	if len(a.Results) != 2 {
		t.Fatalf("found %v, want one of the policies and other.md", paths(a))
	}
	if got := strings.Join(a.Results[0].Duplicates, " "); strings.Count(got, "policy.md#network-policies") != 2 {
		t.Errorf("duplicates are %q, want the two other versions", got)
	}
	if a.TotalCount != 4 || a.HasMore {
		t.Errorf("total %d, more %v", a.TotalCount, a.HasMore)
	}
	if a := f.search(Query{Text: "network policy pods", Limit: 1}); !a.HasMore {
		t.Error("with limit 1 there is more")
	}
}

func TestResultFields(t *testing.T) {
	text := "---\ntitle: Guide\n---\n# Intro\n\nhello\n\n## Setup\n\nInstall the *needle* with `make`.\n\n### Details\n\nmore\n\n## Usage\n\nrun\n\n# Last\n"
	f := open(t, map[string]string{"g.md": text}, nil)
	r := f.search(Query{Text: "needle make"}).Results[0]
	if r.Path != "g.md" || r.Title != "Guide" || strings.Join(r.Headings, "/") != "Intro/Setup" || r.Anchor != "setup" ||
		strings.Join(r.Anchors, "/") != "Intro/Setup/Details" || r.LineRange != (Lines{8, 14}) || r.Passage != (Lines{8, 10}) ||
		r.Tokens != len(text)/4 || r.SectionTokens < 10 || r.Snippet != "Setup Install the needle with make." && r.Snippet != "Install the needle with make." {
		t.Errorf("result is %+v", r)
	}
	read, err := f.Read(context.Background(), ReadRequest{Path: r.Path + "#" + r.Anchor})
	must(t, err)
	if read.SectionHash[:ShortHash] != r.SectionHash || read.Hash != r.Hash || *read.LineRange != r.LineRange {
		t.Errorf("reading it back gives %+v", read)
	}
}

// Text before the first heading matches by the title. When it is blank, a result
// shows another section, at the same score.
func TestBlankPreambleIsNotShown(t *testing.T) {
	const title = "---\ntitle: Rotate an access token\n---\n"
	f := open(t, map[string]string{
		"blank.md":   title + "\n<!-- Old headings. -->\n<a id=\"old\"></a>\n\n# Steps\n\nFirst you wait.\n\n# Afterwards\n\nTell everybody.\n",
		"matched.md": title + "\n<!-- nothing -->\n\n# Steps\n\nFirst you wait.\n\n# Undo\n\nRotate it back with zebra.\n",
		"text.md":    title + "\nA token lives for a day. It is a hare.\n\n# Steps\n\nGo.\n",
		"alone.md":   title,
	}, nil)
	for _, c := range []struct {
		query, path, anchor, snippet string
	}{
		{"rotate an access token afterwards", "blank.md", "afterwards", "Tell everybody."},
		{"rotate zebra", "matched.md", "undo", "Rotate it back with zebra."},
		{"hare", "text.md", "", "It is a hare."},
		{"rotate an access token", "alone.md", "", ""},
	} {
		a, err := f.Search(t.Context(), Query{Text: c.query, Mode: Keyword, Limit: 10})
		must(t, err)
		i := slices.IndexFunc(a.Results, func(r Result) bool { return r.Path == c.path })
		if i < 0 {
			t.Errorf("%q does not find %s", c.query, c.path)
			continue
		}
		r := a.Results[i]
		if r.Anchor != c.anchor || !strings.Contains(r.Snippet, c.snippet) {
			t.Errorf("%q shows %s#%s with %q, want #%s with %q", c.query, c.path, r.Anchor, r.Snippet, c.anchor, c.snippet)
		}
		for _, m := range r.More {
			if m.Anchor == r.Anchor || m.Anchor == "" {
				t.Errorf("%q, %s: further sections hold %q, want none that is shown or blank", c.query, c.path, m.Anchor)
			}
		}
	}
	// Where it is the only section found, the next one is shown.
	must(t, f.docs.View(func(reader *docs.Reader) error {
		doc, err := reader.Document("blank.md")
		if err != nil {
			return err
		}
		found := &RankedDocument{Path: doc.Path, Sections: []RankedSection{{Anchor: ""}}}
		if n, chunk := shown(doc, found, reader.Text(doc.Path)); doc.Sections[n].Anchor != "steps" || chunk != 0 {
			t.Errorf("a blank preamble found alone shows #%s, chunk %d, want #steps, 0", doc.Sections[n].Anchor, chunk)
		}
		return nil
	}))
}

// A snippet leaves out the heading of its section.
func TestSnippetHeading(t *testing.T) {
	for _, c := range []struct{ query, heading, passage, want string }{
		{"rotate", "Planned rotation", "## Planned rotation\n\nRotate it.\n\nThen wait.\n", "Rotate it. Then wait."},
		{"planned", "Planned rotation", "Planned rotation\n---\n\nRotate it.\n", "Rotate it."},
		{"planned", "Planned `rotation`", "## Planned rotation\n\nRotate it.\n", "Planned rotation Rotate it."},
		{"planned", "Planned rotation", "## Planned rotation\n", "Planned rotation"},
		{"planned rotation of keys", "Planned rotation", "## Planned rotation\n\nOne.\n\nTwo.\n\nThree.\n\nRotation.\n\nA key.\n", "A key."},
		{"planned rotation", "Planned rotation", "## Planned rotation\n\nOne.\n\nTwo.\n\nThree.\n\nRotation.\n", "One. Two. Three."},
		{"rotation", "Steps", "# Title\n\nPlanned rotation.\n", "Title Planned rotation."},
	} {
		if got, _ := snippetOf(keyword.NewMarker(query.Parse(c.query)), c.heading, markdown.PlainText([]byte(c.passage))); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.query, c.passage, got, c.want)
		}
	}
}

func TestJoinComments(t *testing.T) {
	for in, want := range map[string]string{
		"// Open opens\n// a file.\nfunc Open() {\n\t// It\n\t// fails.\n": "// Open opens\n a file.\nfunc Open() {\n\t// It\n fails.\n",
		"#include <a.h>\n#include <b.h>\n":                                 "#include <a.h>\n#include <b.h>\n",
		"# one\n# two\nx = 1\n# three\n":                                   "# one\ntwo\nx = 1\n# three\n",
		"/// a\n// b\n":                                                    "/// a\n// b\n",
		"/**\n * one\n * two\n */\n":                                       "/**\n * one\ntwo\n */\n",
		"*p = 1;\n*q = 2;\n--i;\n--j;\n":                                   "*p = 1;\n*q = 2;\n--i;\n--j;\n",
		"":                                                                 "",
	} {
		if got := joinComments(in); got != want {
			t.Errorf("joinComments(%q) = %q, want %q", in, got, want)
		}
	}
}

// A snippet of a chunk that begins inside a fenced code block keeps the punctuation of
// the code.
func TestSnippetOfLongFence(t *testing.T) {
	var code strings.Builder
	for i := range 60 {
		fmt.Fprintf(&code, "if [ ! -f step%d ] || ! grep -q done%d log; then run | tee out%d; fi\n", i, i, i)
	}
	f := open(t, map[string]string{"a.md": "# Steps\n\n```bash\n" + code.String() + "```\n"}, nil)
	a, err := f.Search(context.Background(), Query{Text: "done41", Mode: Keyword})
	must(t, err)
	want := "if [ ! -f step41 ] || ! grep -q done41 log; then run | tee out41; fi"
	if len(a.Results) != 1 || !strings.Contains(a.Results[0].Snippet, want) {
		t.Errorf("got %+v, want a snippet with %q", a.Results, want)
	}
}
