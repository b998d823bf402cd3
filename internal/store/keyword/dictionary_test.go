package keyword

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// misspellings are words of few letters, so that many are near each other.
func misspellings(r *rand.Rand, n int) []string {
	letters := []rune("aeéßt-")
	all := map[string]bool{}
	for len(all) < n {
		w := make([]rune, 2+r.IntN(7))
		for i := range w {
			w[i] = letters[r.IntN(len(letters))]
		}
		all[string(w)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// edits is the number of insertions, deletions, substitutions and transpositions
// of neighbours between two words, by the table of Damerau and Levenshtein in
// which no letter is changed twice.
func edits(a, b []rune) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
			default:
				same := 1
				if a[i-1] == b[j-1] {
					same = 0
				}
				d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+same)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d[i][j] = min(d[i][j], d[i-2][j-2]+1)
				}
			}
		}
	}
	return d[len(a)][len(b)]
}

// TestDictionaryNear compares with every word there is.
func TestDictionaryNear(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := misspellings(r, 3000)
	d := NewDictionary(strings.Join(words, "\n"))
	found := 0
	for _, term := range append(misspellings(r, 80), words[:20]...) {
		want := map[string]int{}
		n, first := utf8.RuneCountInString(term), []rune(term)[0]
		for _, w := range words {
			limit := 2
			if n <= 5 {
				limit = 1
			}
			if e := edits([]rune(term), []rune(w)); n >= 3 && e > 0 && e <= limit && []rune(w)[0] == first {
				want[w] = e
			}
		}
		near, err := neighbours(d, queryTerm{term: term})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, s := range near {
			if !query.IsStopWord(s.term) {
				got[s.term] = s.edits
			}
		}
		found--
		if want[term] = 0; !maps.Equal(got, want) {
			t.Errorf("near %q: %v, want %v", term, got, want)
		}
		found += len(got)
	}
	if found < 500 {
		t.Errorf("%d words are near others, too few to tell", found)
	}
}

func TestDictionaryHoldsWhatCanBeMeant(t *testing.T) {
	d := NewDictionary("their\nx\n京\n京都\nok\nüber\n--dry-run")
	if want := (Dictionary{"o": "ok\n", "ü": "über\n", "-": "--dry-run\n"}); !cmp.Equal(d, want) {
		t.Errorf("the dictionary has %v, want %v", d, want)
	}
	if !d.HasAll([]string{"ok", "their"}) || d.HasAll([]string{"ok", "okay"}) {
		t.Error("HasAll: want true for ok and their, which is ignored, false for okay")
	}
	if near, err := neighbours(d, queryTerm{term: "thier"}); err != nil || len(near) != 2 || near[0].term != "their" || near[0].idf != stopIDF {
		t.Errorf("near thier: %v, %v, want their with the rarity of a stop word", near, err)
	}
}

// TestDictionaryBoundsWhatIsLookedUp has more similar terms than are looked up.
func TestDictionaryBoundsWhatIsLookedUp(t *testing.T) {
	var terms []string
	for i := range 2 * maxSpellings {
		terms = append(terms, "tokens-"+string(rune('A'+i)))
	}
	near, err := neighbours(NewDictionary(strings.Join(append(terms, "tokens-"), "\n")), queryTerm{term: "tokens"})
	if err != nil || len(near) != 1+maxSpellings {
		t.Fatalf("%d similar terms, %v, want %d", len(near)-1, err, maxSpellings)
	}
	has := func(term string) bool {
		return slices.ContainsFunc(near, func(s spelling) bool { return s.term == term })
	}
	if !has("tokens-") || !has("tokens-A") || has(terms[len(terms)-1]) {
		t.Error("want the nearest and then the commonest terms")
	}
}

// TestMeant is the rule by hand: of three chunks one holds "tokens" and two
// "token", which is one edit from what was typed as well.
func TestMeant(t *testing.T) {
	near := func(term string, edits int, freq uint64) spelling {
		return spelling{weightedTerm{term: term, freq: freq}, edits, idf(3, freq)}
	}
	got := replacements([]queryTerm{{term: "tokne", count: 1}, {term: "tokan", count: 0.5}, {term: "too", count: 1}}, [][]spelling{
		{near("rare", 2, 1), near("token", 1, 2)}, {near("token", 1, 2), near("tokan", 0, 1)},
		{near("toe", 1, 1), {weightedTerm{term: "to"}, 1, stopIDF}, near("too", 0, 1)},
	})
	common := math.Log(1 + 1.5/2.5)
	want := map[string]float64{"token": common / 2, "rare": common / 3, "tokan": 0.5 * common, "toe": 0.3 / 2, "too": 0.3}
	for _, s := range got {
		if math.Abs(s.weight-want[s.term]) > 1e-12 {
			t.Errorf("%s weighs %v, want %v", s.term, s.weight, want[s.term])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d terms, want %d", len(got), len(want))
	}
}

// TestNearAsOnDisk checks that a dictionary with the terms of an index expands queries as
// the index does, also after chunks were removed.
func TestNearAsOnDisk(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	words := misspellings(r, 2000)
	var listed []string
	var entries []store.KeywordEntry
	for i, w := range words {
		entries = append(entries, entry(fmt.Sprint("a", i), w), entry(fmt.Sprint("b", i), words[r.IntN(100)]))
	}
	x := memory(t, entries...)
	freqs := map[string]uint64{}
	for i, e := range entries {
		terms, _ := Terms(e)
		for _, term := range slices.Sorted(maps.Keys(terms)) {
			if _, known := freqs[term]; !known {
				listed = append(listed, term)
			}
			freqs[term]++
		}
		if i%5 == 0 {
			if err := x.Update(ctx, nil, []string{e.Chunk}); err != nil {
				t.Fatal(err)
			}
			for term := range terms {
				freqs[term]--
			}
		}
	}
	docs, err := x.Count()
	if err != nil {
		t.Fatal(err)
	}
	d := NewDictionary(strings.Join(listed, "\n"))
	idfs := func(terms []string) (map[string]float64, error) {
		held := map[string]float64{}
		for _, term := range terms {
			if freqs[term] > 0 {
				held[term] = idf(uint64(docs), freqs[term])
			}
		}
		return held, nil
	}
	expanded := 0
	for range 300 {
		text := words[r.IntN(len(words))] + " " + misspellings(r, 1)[0] + " tawit"
		if begun := []rune(words[r.IntN(len(words))]); len(begun) > 4 && !slices.Contains(begun[:4], '-') {
			text += " " + string(begun[:3+r.IntN(2)])
			if r.IntN(3) == 0 {
				text = text[strings.LastIndexByte(text, ' ')+1:]
			}
		}
		asked := query.Parse(text).WithFuzzy()
		if r.IntN(2) == 0 {
			asked = query.Parse(text).WithPrefixes()
		}
		q, err := NewQuery(asked).Near(d, idfs)
		if err != nil {
			t.Fatal(err)
		}
		got := q.Terms()
		for term, count := range got {
			got[term] = math.Round(count * idf(uint64(docs), freqs[term]) * 1e9)
		}
		snap, err := x.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		on, err := NewQuery(asked).Near(snapshot{snap}, func(terms []string) (map[string]float64, error) { return snapshot{snap}.idfs(terms, uint64(docs)) })
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{}
		for term, count := range on.Terms() {
			if !query.IsStopWord(term) { // a name such as a-t; the dictionary has no stop words
				want[term] = math.Round(count * idf(uint64(docs), freqs[term]) * 1e9)
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%q: (-on disk +dictionary)\n%s", text, cmp.Diff(want, got))
		}
		expanded += len(got)
		snap.Close()
	}
	if expanded < 1000 {
		t.Errorf("%d terms in place of 900, too few to tell", expanded)
	}
}

func TestNearNobodyAnswers(t *testing.T) {
	want := fmt.Errorf("the store is away")
	if _, err := NewQuery(query.Parse("tokne").WithFuzzy()).Near(Dictionary{}, func([]string) (map[string]float64, error) { return nil, want }); err != want {
		t.Errorf("Near: %v, want %v", err, want)
	}
}
