package markdown

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Slug returns GitHub's anchor for the plain text of a heading. It converts the text to
// lower case, removes all but letters, marks, decimal digits, connector punctuation (the
// underscore), hyphens and blanks, and replaces each blank by a hyphen. This is the
// algorithm of github-slugger 2 and of GitHub's TOC filter (/[^\p{Word}\- ]/u). The
// result may be empty.
func Slug(text string) string {
	return slug(text, true)
}

// CueDeckSlug returns the other form of slug that cairn accepts. It is like Slug but
// keeps only letters, numbers and hyphens.
func CueDeckSlug(text string) string {
	return slug(text, false)
}

func slug(text string, github bool) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		text = cases.Lower(language.Und).String(text) // the final sigma and the dotted capital I map as in JavaScript
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case r == '-', github && isWord(r), !github && (unicode.IsLetter(r) || unicode.IsNumber(r)):
			return r
		}
		return -1
	}, text)
}

// isWord reports whether r is in Unicode's word class: Alphabetic, Mark, Decimal_Number
// or Connector_Punctuation.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nl, unicode.Nd, unicode.Pc, unicode.Other_Alphabetic)
}

// slugger makes anchors unique in one document, as github-slugger does.
type slugger map[string]int

func (s slugger) unique(slug string) string {
	slug = cmp.Or(slug, "section")
	result := slug
	for {
		if _, taken := s[result]; !taken {
			break
		}
		s[slug]++
		result = slug + "-" + strconv.Itoa(s[slug])
	}
	s[result] = 0
	return result
}

// anchorID returns the anchor for a custom id: the id itself, or its slug if it contains
// characters that are invalid in an anchor.
func anchorID(id string) string {
	for _, r := range id {
		if r == '#' || r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return Slug(id)
		}
	}
	return id
}
