package markdown

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Resolve finds the section of an anchor, with or without a leading "#". It applies
// these rules in order and returns the first matching section: the anchor as this
// package makes it, including "name-1" for the second heading of a name; the exact
// heading; the heading in any case; the GitHub slug of anchor; the CueDeck slug, with
// its own numbering; an alias; and all of these again with percent escapes decoded
// and GitHub's "user-content-" removed. Anchors precede headings so that the anchor
// of every hit leads back to it.
//
// Section 0 has no anchor; Resolve never returns it.
func Resolve(d *Document, anchor string) (section int, ok bool) {
	want := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(anchor), "#"))
	if i, ok := d.resolve(want); ok {
		return i, true
	}
	other, err := url.PathUnescape(want)
	if err != nil {
		other = want
	}
	other = strings.TrimPrefix(other, "user-content-")
	if other == want {
		return 0, false
	}
	return d.resolve(other)
}

func (d *Document) resolve(want string) (int, bool) {
	if want == "" {
		return 0, false
	}
	github, cue := Slug(want), CueDeckSlug(want)
	seen := map[string]int{}
	rules := []func(i int) bool{
		func(i int) bool { return d.Sections[i].Anchor == want },
		func(i int) bool { return d.Sections[i].Heading == want },
		func(i int) bool { return strings.EqualFold(d.Sections[i].Heading, want) },
		func(i int) bool { return github != "" && d.Sections[i].Anchor == github },
		func(i int) bool { return github != "" && Slug(d.Sections[i].Heading) == github },
		func(i int) bool {
			own := CueDeckSlug(d.Sections[i].Heading)
			n := seen[own]
			seen[own]++
			if n > 0 {
				own += "-" + strconv.Itoa(n)
			}
			return cue != "" && own == cue
		},
	}
	for _, fits := range rules {
		for i := range d.Sections {
			if d.Sections[i].Level > 0 && fits(i) {
				return i, true
			}
		}
	}
	for _, name := range []string{want, github, strings.ToLower(want)} {
		if i, ok := d.Aliases[name]; ok {
			return i, true
		}
	}
	return 0, false
}

// Nearest returns up to n of the candidates that want may misspell, nearest first,
// equally near ones in the order given. A candidate is near if its Levenshtein
// distance, in any case, is at most a third of the longer text, for the whole texts
// or their last path elements, or if one text of three or more characters contains
// the other.
func Nearest(candidates []string, want string, n int) []string {
	type near struct {
		name string
		far  float64
	}
	w := strings.ToLower(want)
	wBase := base(w)
	var found []near
	for _, c := range candidates {
		lc := strings.ToLower(c)
		far := relative(lc, w)
		if b := base(lc); b != lc || wBase != w {
			// Slightly worse than the same distance of the whole.
			far = min(far, relative(b, wBase)+0.02)
		}
		if far > maxFar && (contains(lc, w) || contains(w, lc)) {
			far = maxFar
		}
		if far <= maxFar {
			found = append(found, near{c, far})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.far, b.far) })
	out := make([]string, 0, min(n, len(found)))
	for _, f := range found[:min(n, len(found))] {
		out = append(out, f.name)
	}
	return out
}

const maxFar = 0.36 // a third, and the penalty for the last element

func contains(long, short string) bool {
	return utf8.RuneCountInString(short) >= 3 && strings.Contains(long, short)
}

func base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// relative returns the Levenshtein distance divided by the longer length. It returns
// 1 at once for a very long text and for lengths that differ too much.
func relative(a, b string) float64 {
	if a == b {
		return 0
	}
	long, short := max(len(a), len(b)), min(len(a), len(b))
	if long > 512 || short == 0 {
		return 1
	}
	x, y := []rune(a), []rune(b)
	long, short = max(len(x), len(y)), min(len(x), len(y))
	if float64(long-short)/float64(long) > maxFar {
		return 1
	}
	return float64(levenshtein(x, y)) / float64(long)
}

// levenshtein is the dynamic programme of Wagner and Fischer (1974) over one row.
func levenshtein(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, ca := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, cb := range b {
			d := diagonal
			if ca != cb {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
