// Package query parses the text of a search into words, required phrases and exclusions.
// It does not split words into terms; the index does.
package query

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Query is a parsed search. The zero Query is empty.
type Query struct {
	// Words is the text to score and to embed: the words and phrases without quotation
	// marks and exclusions.
	Words string
	// Phrases must occur, each word for word.
	Phrases []string
	// Excluded are phrases that must not occur.
	Excluded []string
	// Dashed are words after a single dash, such as "name" in "-name". A dashed word is
	// excluded, unless the index contains it with the dash. Then it is the flag of a
	// command and counts as one of Words.
	Dashed []string
	// Prefixes extends each term of at least three letters to the terms that begin with
	// it: "auth" also matches "authentication". It is for queries with few matches.
	Prefixes bool
	// Fuzzy extends the terms in the same way if every term has such an extension.
	// Otherwise it matches terms that are one or two edits away, depending on the length.
	// It is slow and for queries without matches.
	Fuzzy bool
}

// Parse parses the text of a search. Quotes ("..." or “...”) make a required phrase. A
// dash after white space excludes the word or phrase that follows, if the query also
// contains other words. Flags are not exclusions: --flag, -f and -la are words, and a
// longer -flag is in Dashed. Quotes in a sentence (add "x" to every line of a file) do not
// require anything. Malformed syntax, such as an open quote, is plain text. So are several
// lines, such as a patch or a stack trace, whose dashes and quotes are not meant for a search.
func Parse(text string) Query {
	var q Query
	if strings.Contains(strings.TrimSpace(text), "\n") {
		return Query{Words: strings.Join(strings.Fields(text), " ")}
	}
	var words, outside strings.Builder // outside is words without the phrases
	space := true                      // rest is at the start or after white space
	for rest := text; rest != ""; {
		if space && rest[0] == '-' {
			if phrase, n := quotation(rest[1:]); n > 0 {
				if hasWord(phrase) {
					q.Excluded = append(q.Excluded, phrase)
				}
				rest = rest[1+n:]
				words.WriteByte(' ')
				continue
			}
			if w := dashed(rest); w != "" {
				q.Dashed = append(q.Dashed, w)
				rest, space = rest[1+len(w):], false
				words.WriteByte(' ')
				continue
			}
		}
		if phrase, n := quotation(rest); n > 0 {
			if hasWord(phrase) {
				q.Phrases = append(q.Phrases, phrase)
			}
			words.WriteString(" " + phrase + " ")
			outside.WriteByte(' ')
			rest, space = rest[n:], false
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		space = unicode.IsSpace(r)
		words.WriteString(rest[:size])
		outside.WriteString(rest[:size])
		rest = rest[size:]
	}
	if isSentence(outside.String()) {
		q.Phrases = nil
	}
	q.Words = strings.Join(strings.Fields(words.String()), " ")
	if !hasWord(q.Words) { // an exclusion needs other words
		q.Words = strings.Join(append(q.Excluded, q.Dashed...), " ")
		q.Excluded, q.Dashed = nil, nil
		if q.Words == "" {
			q.Words = strings.TrimSpace(text)
		}
	}
	return q
}

// CutChanged returns the text without a word such as changed:<2w, and the times between which
// it requires that a file was changed; both are zero without such a word. An age is a number
// with h, d, w, m (30 days) or y, and counts back from now: changed:<2w and changed:2w mean
// within the last two weeks, changed:>2w before. A date such as 2026-01-31 is the beginning of
// that day: changed:>2026-01-31 means since then.
func CutChanged(text string, now time.Time) (rest string, after, before time.Time) {
	for word := range strings.FieldsSeq(text) {
		value, ok := strings.CutPrefix(word, "changed:")
		if !ok {
			continue
		}
		bound := strings.TrimLeft(value, "<>=")
		at, err := time.ParseInLocation(time.DateOnly, bound, now.Location())
		since := strings.HasPrefix(value, ">")
		if err != nil {
			if at, ok = ago(bound, now); !ok {
				continue
			}
			since = !since
		}
		if since {
			after = at
		} else {
			before = at
		}
		text = strings.Replace(text, word, "", 1)
	}
	return strings.TrimSpace(text), after, before
}

// ago returns the time that is an age such as 2w before now.
func ago(age string, now time.Time) (time.Time, bool) {
	digits := max(0, len(age)-1)
	hours, ok := map[string]int64{"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}[age[digits:]]
	n, err := strconv.ParseUint(age[:digits], 10, 16)
	return time.Unix(now.Unix()-int64(n)*hours*3600, 0).In(now.Location()), ok && err == nil
}

// Restricts reports whether a text that contains all words may still not match.
func (q Query) Restricts() bool { return len(q.Phrases)+len(q.Excluded)+len(q.Dashed) > 0 }

// WithPrefixes returns q with Prefixes set.
func (q Query) WithPrefixes() Query {
	q.Prefixes = true
	return q
}

// WithFuzzy returns q with Fuzzy set.
func (q Query) WithFuzzy() Query {
	q.Fuzzy = true
	return q
}

// quotation returns the quoted text at the start of s and its length with the quotes. The
// length is 0 if s does not begin with a closed quotation.
func quotation(s string) (text string, n int) {
	for _, mark := range [][2]string{{`"`, `"`}, {"“", "”"}} {
		if rest, ok := strings.CutPrefix(s, mark[0]); ok {
			if end := strings.Index(rest, mark[1]); end >= 0 {
				return rest[:end], len(mark[0]) + end + len(mark[1])
			}
		}
	}
	return "", 0
}

// dashed returns the word after the dash at the start of s. It returns "" if the word
// cannot be an exclusion: a second dash or another non-letter follows, or the word is a
// flag of at most two letters (-x, -la).
func dashed(s string) string {
	if r, _ := utf8.DecodeRuneInString(s[1:]); !unicode.IsLetter(r) && !unicode.IsMark(r) {
		return ""
	}
	end := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '“' })
	if end < 0 {
		end = len(s)
	}
	if end <= 3 { // bytes, so that one ideograph is a word
		return ""
	}
	return s[1:end]
}

// sentenceWords is the minimum number of words in a sentence.
const sentenceWords = 4

// isSentence reports whether the words outside of quotes form a sentence: there are at
// least sentenceWords, with a stop word among them.
func isSentence(s string) bool {
	words, stops := 0, 0
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !inWord(r) && r != '\'' && r != '’' }) {
		if hasWord(w) {
			words++
		}
		if IsStopWord(strings.ToLower(w)) {
			stops++
		}
	}
	return stops > 0 && words >= sentenceWords
}

func hasWord(s string) bool { return strings.ContainsFunc(s, inWord) }

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// stopWords are Lucene's English stop words, which bm25s uses as well. They do not include
// what, when and how, which distinguish questions.
var stopWords = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(`a an and are as at be but by for if in into is it no not of on
		or such that the their then there these they this to was will with`) {
		m[w] = true
	}
	return m
}()

// IsStopWord reports whether a lower-case word carries no information about the topic of a
// text.
func IsStopWord(word string) bool { return stopWords[word] }

// StopWords returns all stop words. The caller must not change the map.
func StopWords() map[string]bool { return stopWords }
