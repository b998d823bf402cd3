package toolsearch

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/models"
)

// Part is a piece of an intent that may need its own tool. Start and End are byte offsets in
// the intent, half-open. Text also has the object of the next part if this one is a verb alone.
type Part struct {
	Text       string `json:"text"`
	Start, End int    `json:"-"`
	// Request is what the part requests in the words of descriptions: values are replaced
	// by their kinds, and abbreviations by full words. It has no content of what the part
	// makes, writes or sends.
	Request string `json:"-"`
	// After holds the positions of the parts that run before this one according to the
	// intent. Says is the word that states this order, such as "then".
	After []int  `json:"-"`
	Says  string `json:"-"`
	// Refers is the word that refers to the result of an earlier part, such as "it"; "" if
	// there is none.
	Refers string `json:"-"`
	// Statement reports whether the part is a sentence that requests nothing by itself.
	Statement bool `json:"-"`
}

// minStatement is the minimum number of words of a statement that is a part.
const minStatement = 4

// maxParts bounds the parts of an intent, because each needs a search. The last part holds
// the rest of the intent.
const maxParts = 12

// maxTagged bounds the words that the reader tags. The others continue the last part.
const maxTagged = 1000

// Parts splits an intent into what may need a tool each, by the tags that the reader gives its
// words, and returns the probability of the split. It leaves out words that only join parts. A
// sentence that requests nothing is a part of its own, a statement. A verb without an object, as
// in "fork and star the repository", has the object of the next part. An intent with one part, or
// with statements alone, is one part, as is any without a reader or after its error. The empty
// intent has none.
func (x *Index) Parts(ctx context.Context, intent string) ([]Part, float64, error) {
	intent = Unquoted(intent)
	words := fields(intent)
	if len(words) == 0 {
		return nil, 1, ctx.Err()
	}
	spans, probability := []span{{0, len(words), false}}, 1.0
	var r models.Reader
	if divisible(intent, words) {
		r = x.reader()
	}
	if r != nil {
		of, err := cached(x, func() (split, error) {
			tags, p, err := r.Tag(ctx, linesOf(intent, words[:min(maxTagged, len(words))]))
			if err != nil {
				return split{}, err
			}
			for len(tags) < len(words) {
				tags = append(tags, max(models.Within, tags[len(tags)-1]))
			}
			return split{spansOf(intent, words, tags), p}, nil
		}, intent)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if err != nil {
			x.options.Logger.Warn("splitting an intent", "error", err)
		} else {
			spans, probability = of.spans, of.probability
		}
	}
	return partsOf(intent, words, spans), probability, nil
}

// divisible reports whether an intent may have several parts. One in a hundred with several has no
// mark, symbol or joining word between them, and opening the reader costs a short search the most.
func divisible(intent string, words []field) bool {
	for i, w := range words {
		b := bare(w.text)
		if b == "" || slices.Contains(joiners, b) || ordering(b) || i+1 < len(words) && endsClause(intent, w, words[i+1]) {
			return true
		}
	}
	return false
}

// endsClause reports whether a mark or the end of a line is between two words.
func endsClause(intent string, word, next field) bool {
	return mark(word.text) != "" || newLine(intent, word, next)
}

// clauses returns at most maxParts pieces of an intent, which are about its parts: they end at a
// mark or the end of a line, and begin after words that join them. They need no reader, so that
// thousands of past intents cost nothing when a process starts.
func clauses(intent string) (list []string) {
	words := fields(intent)
	start := 0
	for i, w := range words {
		b := bare(w.text)
		joins := slices.Contains(joiners, b) || slices.Contains(orderWords, b)
		if joins && start == i {
			start = i + 1
		}
		end := i + 1
		if joins {
			end = i
		} else if i+1 < len(words) && !endsClause(intent, w, words[i+1]) {
			continue
		}
		if end > start && len(list) < maxParts {
			list, start = append(list, trimmed(intent[words[start].at:words[end-1].at+len(words[end-1].text)])), i+1
		}
	}
	return list
}

// linesOf returns the words of the lines of an intent.
func linesOf(intent string, words []field) (lines [][]string) {
	for i, w := range words {
		if i == 0 || newLine(intent, words[i-1], w) {
			lines = append(lines, nil)
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], w.text)
	}
	return lines
}

// partsOf returns the parts that have spans of words.
func partsOf(intent string, words []field, spans []span) []Part {
	var parts []Part
	before := 0 // the word after the last part
	var leads []leadWord
	for i, s := range spans {
		for i+1 < len(spans) && s.end > s.start+1 && ordering(bare(words[s.end-1].text)) {
			s.end-- // "push files after", "create a branch"
		}
		p := Part{Start: words[s.start].at, Statement: s.statement}
		p.Text = trimmed(intent[p.Start : words[s.end-1].at+len(words[s.end-1].text)])
		p.End = p.Start + len(p.Text)
		if p.Text == "" {
			continue
		}
		for _, w := range words[s.start+1 : s.end] {
			if b := bare(w.text); p.Refers == "" && slices.Contains(references, b) {
				p.Refers = b
			}
		}
		leads = append(leads, lead(words[before:s.start+1], before == 0))
		parts, before = append(parts, p), s.end
	}
	object := "" // of the verbs before a part
	for i := len(parts) - 1; i >= 0; i-- {
		p := &parts[i]
		if !verbAlone(p.Text) {
			object = ""
		} else if object != "" {
			p.Text += " " + object
		}
		if leads[i].and {
			_, object, _ = strings.Cut(p.Text, " ")
		}
	}
	for i := range parts {
		parts[i].Request = requestOf(parts[i].Text)
	}
	stateOrder(parts, leads)
	return parts
}

// split holds the parts of an intent, and their probability.
type split struct {
	spans       []span
	probability float64
}

// span holds the words [start, end) of a part.
type span struct {
	start, end int
	statement  bool
}

// spansOf finds the parts among the words of an intent.
func spansOf(intent string, words []field, tags []models.Tag) (spans []span) {
	sentence, requests := 0, 0 // the first word of the sentence, and the parts that request something
	for i, t := range tags {
		switch n := len(spans); {
		case t == models.Begins && n < maxParts:
			spans = append(spans, span{i, i + 1, false})
			requests++
		case t != models.Outside:
			spans[n-1].end = i + 1
		}
		if i+1 < len(tags) && !endsSentence(intent, words[i], words[i+1]) {
			continue
		}
		if i+1-sentence >= minStatement && len(spans) < maxParts && !slices.ContainsFunc(tags[sentence:i+1], func(t models.Tag) bool { return t != models.Outside }) {
			spans = append(spans, span{sentence, i + 1, true})
		}
		sentence = i + 1
	}
	if len(spans) == 1 || requests == 0 {
		return []span{{0, len(words), false}}
	}
	return spans
}

// endsSentence reports whether a sentence or a line ends between two words.
func endsSentence(intent string, word, next field) bool {
	return strings.ContainsAny(mark(word.text), ".!?;") || newLine(intent, word, next)
}

// newLine reports whether a line ends between two words.
func newLine(intent string, word, next field) bool {
	return strings.Contains(intent[word.at+len(word.text):next.at], "\n")
}

// mark returns the punctuation mark at the end of a word, before quotes and parentheses.
func mark(word string) string {
	if abbreviations[strings.ToLower(word)] || listNumber(word) {
		return ""
	}
	word = strings.TrimRight(word, "\"'”’)")
	r, size := utf8.DecodeLastRuneInString(word)
	if !strings.ContainsRune(".,;:!?—–-", r) {
		return ""
	}
	return word[len(word)-size:]
}

// trimmed returns a text without blanks around it and punctuation after it.
func trimmed(s string) string { return strings.TrimRight(strings.TrimSpace(s), ".,;:!?—– ") }

// verbAlone reports whether a part is a verb after words such as "please".
func verbAlone(part string) bool {
	words := strings.Fields(strings.ToLower(part))
	last := len(words) - 1
	return verbForms[words[last]] != "" && !slices.ContainsFunc(words[:last], func(w string) bool { return !slices.Contains(fillers, w) })
}

// leadWord is what the words before a part state of the order.
type leadWord struct {
	says        string // such as "then", "after that", "2." and "before"; "" for nothing
	subordinate bool   // whether it is "after", "before" or "once" and the part is its clause
	opens       bool   // whether the clause begins a sentence
	and         bool   // whether "and" joins the part
}

// subordinates reports whether a word begins a clause that states when another part runs.
func subordinates(word string) bool { return word == "after" || word == "before" || word == "once" }

// ordering reports whether a word states an order.
func ordering(word string) bool { return subordinates(word) || slices.Contains(orderWords, word) }

// lead reads the words from the end of a part to the first word of the next. opens reports whether
// they begin the intent.
func lead(words []field, opens bool) (l leadWord) {
	and := false
	for i, w := range words {
		b, next := bare(w.text), ""
		if i+1 < len(words) {
			next = bare(words[i+1].text)
		}
		switch {
		case listNumber(w.text):
			l = leadWord{says: w.text}
		case slices.Contains(orderWords, b):
			l = leadWord{says: b}
		case b == "after" && (next == "that" || next == "this"):
			l = leadWord{says: b + " " + next}
		case subordinates(b):
			l = leadWord{says: b, subordinate: true, opens: opens}
		case l.subordinate && i < len(words)-1 && !slices.Contains(fillers, b):
			l.subordinate = false // "once that is done, send it"
		}
		and = and || b == "and" || w.text == "&"
		opens = strings.ContainsAny(mark(w.text), ".!?;")
	}
	l.and = and
	return l
}

// stateOrder sets what the parts run after.
func stateOrder(parts []Part, leads []leadWord) {
	follows := func(later, earlier int, says string) {
		parts[later].After, parts[later].Says = append(parts[later].After, earlier), says
	}
	for i, l := range leads {
		main := i - 1 // of a subordinate clause
		if l.opens && i+1 < len(parts) {
			main = i + 1
		}
		switch {
		case l.says == "" || main < 0:
		case l.subordinate && l.says == "before":
			follows(i, main, l.says)
		case l.subordinate:
			follows(main, i, l.says)
		default:
			if i > 0 {
				follows(i, i-1, l.says)
			}
		}
	}
}

// listNumber reports whether a word is the number of an entry of a list: "1.", "(2)".
func listNumber(w string) bool { return listNumbers.MatchString(w) }

var listNumbers = regexp.MustCompile(`^(?:\d{1,2}[.)]|\(\d{1,2}\))$`)

// Unquoted returns the intent with blanks in place of quotes around all of it.
func Unquoted(intent string) string {
	trimmed := strings.TrimSpace(intent)
	for open, closing := range map[string]string{`"`: `"`, "“": "”"} {
		if inner, ok := strings.CutPrefix(trimmed, open); ok && strings.Index(inner, closing) == len(inner)-len(closing) && inner != "" {
			return strings.NewReplacer(open, strings.Repeat(" ", len(open)), closing, strings.Repeat(" ", len(closing))).Replace(intent)
		}
	}
	return intent
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// field is a word between blanks with its byte offset.
type field struct {
	text string
	at   int
}

func fields(s string) (list []field) {
	at := 0
	for w := range strings.FieldsSeq(s) {
		at += strings.Index(s[at:], w)
		list = append(list, field{w, at})
		at += len(w)
	}
	return list
}

// bare returns a word in lower case without the punctuation around it.
func bare(w string) string {
	return strings.ToLower(strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
}
