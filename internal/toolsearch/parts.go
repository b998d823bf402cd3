package toolsearch

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Part is a piece of an intent that may need a tool of its own. Its byte offsets into
// the intent are half-open.
type Part struct {
	Text       string `json:"text"`
	Start, End int    `json:"-"`
}

// maxParts bounds the parts of an intent: each costs a search. The last one has the
// rest.
const maxParts = 8

// minPartWords is the least number of words of a part; a shorter one is joined to the
// part before it.
const minPartWords = 3

// joiners are words that begin a new part after a comma, and are not part of it.
var joiners = []string{"and", "then", "also", "afterwards", "finally", "next", "before", "after", "while", "but"}

// Parts splits an intent at the ends of sentences, at line breaks, before "and"
// and "then", and at commas that a joining word follows. An intent that cannot
// be split is one part; the empty intent has none.
func Parts(intent string) []Part {
	words := fields(intent)
	var parts []Part
	start := 0 // the first word of the part
	flush := func(end int) {
		first := start
		if end-first > 3 && bare(words[first].text) == "as" && bare(words[first+1].text) == "well" {
			first += 3
		}
		for first < end && slices.Contains(joiners, bare(words[first].text)) {
			first++
		}
		start = end
		if first == end {
			return
		}
		p := Part{Start: words[first].at, End: words[end-1].at + len(words[end-1].text)}
		short := end-first < minPartWords
		if n := len(parts); n > 0 && (short || n == maxParts || parts[n-1].short(words)) {
			parts[n-1].End = p.End
			return
		}
		parts = append(parts, p)
	}
	for i := 1; i < len(words); i++ {
		if splits(intent, words, i) {
			flush(i)
		}
	}
	if len(words) > 0 {
		flush(len(words))
	}
	for i := range parts {
		p := &parts[i]
		p.Text = strings.TrimRight(intent[p.Start:p.End], ".,;!? ")
		p.End = p.Start + len(p.Text)
	}
	return slices.DeleteFunc(parts, func(p Part) bool { return p.Text == "" })
}

// short reports whether a part has too few words to stand alone.
func (p Part) short(words []field) bool {
	n := 0
	for _, w := range words {
		if w.at >= p.Start && w.at < p.End {
			n++
		}
	}
	return n < minPartWords
}

// abbreviations end in a dot that ends no sentence.
var abbreviations = map[string]bool{"no.": true, "st.": true, "mr.": true, "mrs.": true, "ms.": true, "dr.": true, "vs.": true, "e.g.": true, "i.e.": true, "etc.": true, "approx.": true}

// splits reports whether a part begins with word i.
func splits(intent string, words []field, i int) bool {
	before := words[i-1].text
	word := bare(words[i].text)
	gap := intent[words[i-1].at+len(before) : words[i].at]
	last := before[len(before)-1]
	if word == "as" && i+2 < len(words) && bare(words[i+1].text) == "well" && bare(words[i+2].text) == "as" {
		return true
	}
	if abbreviations[strings.ToLower(before)] && !strings.ContainsRune(gap, '\n') {
		return false
	}
	return last == '.' || last == '!' || last == '?' || last == ';' || strings.ContainsRune(gap, '\n') ||
		word == "and" || word == "then" || last == ',' && slices.Contains(joiners, word)
}

// field is a word between blanks with its byte offset.
type field struct {
	text string
	at   int
}

func fields(s string) []field {
	var list []field
	start := -1
	for i, r := range s {
		if unicode.IsSpace(r) {
			if start >= 0 {
				list = append(list, field{s[start:i], start})
			}
			start = -1
		} else if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		list = append(list, field{s[start:], start})
	}
	return list
}

// bare is a word in lower case without the punctuation around it.
func bare(w string) string {
	return strings.ToLower(strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
}

// Words splits a name at punctuation and changes of case, in lower case:
// "listUserIDs", "list-user_ids" are both "list user ids".
func Words(name string) []string {
	var list []string
	start := 0
	flush := func(end int) {
		if end > start {
			list = append(list, strings.ToLower(name[start:end]))
		}
	}
	var last rune
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			start = i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, size := utf8.DecodeRuneInString(name[i:])
				start = i + size
			}
		case unicode.IsUpper(r) && (unicode.IsLower(last) || unicode.IsDigit(last)):
			flush(i)
			start = i
		case unicode.IsLower(r) && unicode.IsUpper(last) && i-utf8.RuneLen(last) > start && !pluralEnd(name[i:]):
			flush(i - utf8.RuneLen(last)) // HTTPServer is http server; but userIDs is user ids
			start = i - utf8.RuneLen(last)
		}
		last = r
	}
	flush(len(name))
	return list
}

// pluralEnd reports whether s, which follows an acronym, is only its plural s.
func pluralEnd(s string) bool {
	next, _ := utf8.DecodeRuneInString(s[1:])
	return s[0] == 's' && !unicode.IsLower(next)
}

// plain removes the search operators from an intent: quotes in it cite arguments, not
// phrases of a description, and a dash does not exclude a word.
func plain(intent string) string {
	var b strings.Builder
	word := false
	for _, r := range intent {
		switch {
		case r == '"' || r == '“' || r == '”':
			r = ' '
		case r == '-' && !word:
			continue
		}
		word = !unicode.IsSpace(r)
		b.WriteRune(r)
	}
	return b.String()
}
