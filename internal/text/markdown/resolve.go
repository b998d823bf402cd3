package markdown

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Resolve finds the section of an anchor, with or without a leading "#". It returns the
// first section that matches, in this order: its anchor, its exact heading, its heading in
// any case, its GitHub slug, its CueDeck slug, an alias, its anchor in another spelling:
// VerifyToken, verifyToken and verify_token are the same. An anchor includes "name-1" for
// the second heading with the same text; CueDeck slugs are numbered separately. If none
// matches, Resolve tries again with percent escapes decoded and GitHub's "user-content-"
// removed. Anchors come first so that the anchor of a hit always leads back to it.
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
	spelt := spelling(want)
	i := slices.IndexFunc(d.Sections, func(s Section) bool { return spelt != "" && s.Level > 0 && spelling(s.Anchor) == spelt })
	return max(i, 0), i >= 0
}

// spelling returns the letters and digits of a name in lower case.
func spelling(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// Nearest returns up to n candidates similar to want, the most similar first and ties in
// the given order. A candidate is similar if the Levenshtein distance, ignoring case, is at
// most a third of the longer string, for the whole strings or their last path elements. It
// is also similar if one string contains the other and that has at least three characters.
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
			// A match of the last element ranks slightly below one of the whole path.
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

// relative returns the Levenshtein distance divided by the longer length. It returns 1
// for a very long string and if the lengths differ too much.
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

// levenshtein implements the algorithm of Wagner and Fischer (1974) with one row.
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

// linesSuffix matches a path with the suffix ":from-to".
var linesSuffix = pattern(`^(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?$`)

// SplitPlace splits a place in a document: path#anchor, or path:from-to or path:from with
// lines from 1. Without lines from and to are 0, without an anchor anchor is "". A path with
// "#" before lines must be that of a file. It fails if the lines are no range.
func SplitPlace(place string, isFile func(path string) bool) (path, anchor string, from, to int, err error) {
	m := linesSuffix().FindStringSubmatch(place)
	if i := strings.LastIndexByte(place, '#'); i > 0 && (m == nil || !isFile(m[1])) {
		return place[:i], place[i+1:], 0, 0, nil
	}
	if m == nil {
		return place, "", 0, 0, nil
	}
	from, _ = strconv.Atoi(m[2]) // the pattern matches digits only
	if to = from; m[3] != "" {
		to, _ = strconv.Atoi(m[3])
	}
	if from < 1 || to < from {
		err = fmt.Errorf("lines %d-%d, want FROM-TO with 1 <= FROM <= TO", from, to)
	}
	return m[1], "", from, to, err
}
