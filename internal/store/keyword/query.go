package keyword

import (
	"strings"
	"unicode"
)

// sentenceWords is how many words make a sentence, if a stop word is among them.
const sentenceWords = 4

// query is a parsed KeywordQuery.
type query struct {
	words    []asked    // scored terms, each once, in order
	phrases  []phrase   // required
	excluded []phrase   // forbidden
	flags    []flagWord // "-name": excluded or a flag, as the index knows it
}

// phrase is consecutive terms. A word that is a compound is one as well.
type phrase []token

// flagWord is a word after a lone dash. It is a command's flag where some
// document writes it so (the index holds the term with its dash), and excluded
// where none does; then a pasted command finds what it should.
type flagWord struct {
	term  string // with the dash
	words []asked
	not   phrase
}

// asked is a term of a query with its weighted count.
type asked struct {
	term  string
	count float64
}

// QueryTerms returns the terms that s asks for, as Analyze gives them, without
// what it excludes: what to mark in a text, or to ask another store for. A
// query of nothing but stop words yields those.
func QueryTerms(s string) []string {
	q := parse(s)
	words := q.words
	for _, f := range q.flags {
		words = ask(words, f.words)
	}
	terms := make([]string, len(words))
	for i, w := range words {
		terms[i] = w.term
	}
	return terms
}

// parse reads s. Quotes ("..." or “...”) make a required phrase; a dash
// before a word or a quote, after white space, excludes it, provided that
// something else is asked for. Flags are not exclusions: --flag and -f are
// terms, and a longer -flag is one where the index knows it. Anything that
// does not fit, such as a quote left open, is plain text.
func parse(s string) query {
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	a.query = true

	var q query
	var plain, outer strings.Builder // all that is asked for; the same without phrases
	var dashed []string              // words after a lone dash, without it
	rest := s
	space := true // white space or nothing before rest
	for rest != "" {
		if space && strings.HasPrefix(rest, "-") {
			if text, n := quoted(rest[1:]); n > 0 {
				if p := phraseOf(a, text); len(p) > 0 {
					q.excluded = append(q.excluded, p)
				}
				rest = rest[1+n:]
				plain.WriteByte(' ')
				continue
			}
			if w := dashedWord(rest); w != "" {
				dashed = append(dashed, w)
				rest = rest[1+len(w):]
				plain.WriteByte(' ')
				space = false
				continue
			}
		}
		if text, n := quoted(rest); n > 0 {
			if p := phraseOf(a, text); len(p) > 0 {
				q.phrases = append(q.phrases, p)
			}
			plain.WriteByte(' ')
			plain.WriteString(text)
			plain.WriteByte(' ')
			outer.WriteByte(' ')
			rest = rest[n:]
			space = false
			continue
		}
		r, size := decode(rest, 0)
		space = unicode.IsSpace(r)
		plain.WriteString(rest[:size])
		outer.WriteString(rest[:size])
		rest = rest[size:]
	}

	if len(q.phrases) > 0 && sentence(a.tokens(outer.String())) {
		q.phrases = nil
	}
	q.words = scored(a.tokens(plain.String()))
	if len(q.words) == 0 {
		// Nothing is asked for that an exclusion could narrow.
		text := s
		if len(q.excluded) == 0 {
			text = strings.Join(dashed, " ")
		}
		q.words = scored(a.tokens(text))
		return query{words: q.words, phrases: q.phrases}
	}
	for _, w := range dashed {
		q.flags = append(q.flags, flagWord{
			term:  "-" + strings.ToLower(w),
			words: scored(a.tokens("-" + w)),
			not:   phraseOf(a, w),
		})
	}
	return q
}

// sentence reports whether the words around a phrase read as a sentence, whose
// quotes cite (add "x" to every line of a file) where a search's demand.
func sentence(tokens []token) bool {
	words, stops := 0, 0
	for _, t := range tokens {
		switch t.kind {
		case word, part, single:
			words++
		case stop:
			stops++
		}
	}
	return stops > 0 && words+stops >= sentenceWords
}

// scored returns the terms that count, or the stop words if there is nothing else.
func scored(tokens []token) []asked {
	var words, stops []asked
	for _, t := range tokens {
		w := []asked{{t.term, queryWeight[t.kind]}}
		if t.kind == stop {
			stops = ask(stops, w)
		} else {
			words = ask(words, w)
		}
	}
	if len(words) == 0 {
		return stops
	}
	return words
}

// ask adds more to words, which hold each term once.
func ask(words, more []asked) []asked {
next:
	for _, m := range more {
		for i := range words {
			if words[i].term == m.term {
				words[i].count += m.count
				continue next
			}
		}
		words = append(words, m)
	}
	return words
}

// phraseOf returns the tokens of text that stand in a phrase: words, or the
// stop words if there is nothing else.
func phraseOf(a *analyzer, text string) phrase {
	var words, stops phrase
	for _, t := range a.tokens(text) {
		switch t.kind {
		case word, part, single:
			words = append(words, t)
		case stop:
			stops = append(stops, t)
		}
	}
	if len(words) == 0 {
		return stops
	}
	return words
}

// quoted returns the text between the quotes that s begins with and the length
// of both quotes and text, or 0 if s begins with none or it is left open.
func quoted(s string) (text string, n int) {
	for _, q := range [][2]string{{`"`, `"`}, {"“", "”"}} {
		if rest, ok := strings.CutPrefix(s, q[0]); ok {
			if i := strings.Index(rest, q[1]); i >= 0 {
				return rest[:i], len(q[0]) + i + len(q[1])
			}
		}
	}
	return "", 0
}

// dashedWord returns the word after the dash that s begins with, or "" if it is
// no candidate for exclusion: a second dash, no letter, or a flag of at most
// two letters (-x, -la).
func dashedWord(s string) string {
	r, _ := decode(s, 1)
	if !isWord(r) || unicode.IsNumber(r) {
		return ""
	}
	end := strings.IndexFunc(s, unicode.IsSpace)
	if end < 0 {
		end = len(s)
	}
	if q := strings.IndexAny(s[:end], "\"“"); q > 0 {
		end = q
	}
	if !isCJK(r) && end <= 3 {
		return ""
	}
	return s[1:end]
}
