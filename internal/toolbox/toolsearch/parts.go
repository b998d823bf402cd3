package toolsearch

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cairn/internal/text/query"
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
	// Led reports whether the part begins with a verb, after words such as "please".
	Led bool `json:"-"`
}

// maxParts bounds the parts of an intent, because each needs a search. The last part holds
// the rest of the intent.
const maxParts = 12

// minPartWords is the minimum number of words of a part, minLedWords that of a part that
// begins with a verb. A shorter part is joined to the one before it.
const (
	minPartWords = 3
	minLedWords  = 2
)

// Parts splits an intent at the ends of sentences, at line breaks, at the numbers of a
// list, before "and" and "then", and at commas before a joining word or a verb. It also
// splits before "after", "before" and "once" if a verb follows. It does not split quoted
// text, nor two values at "and", nor a statement from the request that follows it in the sentence.
// Verbs with one object, as in "fork and star the repository", are parts with the object
// each. An intent that cannot be split is one part. The empty intent has no parts.
func Parts(intent string) []Part {
	intent = Unquoted(intent)
	s := splitter{intent: intent, words: fields(intent)}
	s.quoted = quotedWords(intent, s.words)
	start := 0 // the first word of the part
	for i := 1; i < len(s.words); i++ {
		if s.splits(i) {
			s.flush(start, i)
			start = i
		}
	}
	if len(s.words) > 0 {
		s.flush(start, len(s.words))
	}
	return s.finish()
}

// splitter collects the parts of one intent.
type splitter struct {
	intent string
	words  []field
	quoted []bool // whether a word is quoted
	parts  []clause
	then   string // clause.then of a preceding clause without further words
}

// clause is a part with the order that its first words state.
type clause struct {
	Part
	words  int
	opens  bool   // whether it begins a sentence
	then   string // a word such as "then": the clause runs after the one before it
	marker string // "after", "once" or "before" of a subordinate clause
	object string // the words after the first
	alone  bool   // whether it is a verb without the object, which the next clause has
}

// flush adds the words in [start, end) as a part, or to the last part.
func (s *splitter) flush(start, end int) {
	c := clause{opens: start == 0 || s.endsSentence(start), then: s.then}
	s.then = ""
	first := start
	if end-first > 3 && s.word(first) == "as" && s.word(first+1) == "well" {
		first += 3
	}
	for ; first < end; first++ {
		w := s.word(first)
		switch {
		case listNumber(s.words[first].text):
			c.then = s.words[first].text
		case slices.Contains(orderWords, w):
			c.then = w
		case w == "after" && first+1 < end && (s.word(first+1) == "that" || s.word(first+1) == "this"):
			c.then = "after " + s.word(first+1)
			first++
		case w == "after" || w == "before" || w == "once":
			c.marker = w
		case w == "" || slices.Contains(joiners, w):
		default:
			goto begun
		}
	}
begun:
	if first == end {
		s.then = c.then // "Finally, send it" splits at the comma
		return
	}
	last := &s.words[end-1]
	c.Start, c.End, c.words = s.words[first].at, last.at+len(last.text), end-first
	c.Led = s.led(first, end) || c.then != "" && !slices.Contains(determiners, s.word(first)) || slices.Contains(questions, s.word(first))
	for i := first; i < end && c.Refers == ""; i++ {
		if w := s.word(i); i > first && !s.quoted[i] && slices.Contains(references, w) {
			c.Refers = w
		}
	}
	n := len(s.parts)
	for verb := first; verb+1 == end || slices.Contains(fillers, s.word(verb)); verb++ {
		if verb+1 == end {
			c.alone = c.Led && s.joined(end)
			break
		}
	}
	if n < maxParts && c.Led && (c.alone || n > 0 && s.parts[n-1].alone) {
		s.parts = append(s.parts, c) // "fork and star the repository"
		return
	}
	if n > 0 && (c.short() || n == maxParts || s.parts[n-1].short() || first == start && !c.opens && c.Led && s.states(&s.parts[n-1])) {
		p := &s.parts[n-1]
		p.End, p.words, p.Led = c.End, p.words+c.words, p.Led || c.Led
		return
	}
	s.parts = append(s.parts, c)
}

// joined reports whether "and" with a verb follows at word i, or a verb alone before that.
func (s *splitter) joined(i int) bool {
	if i+1 >= len(s.words) || s.endsSentence(i) {
		return false
	}
	if w := s.word(i); w == "and" || w == "&" {
		return s.led(i+1, len(s.words))
	}
	return s.led(i, i+1) && s.joined(i+1)
}

// states reports whether a clause only states why or when to do what follows, as in "E-77 was
// 48.20, fix it".
func (s *splitter) states(c *clause) bool {
	words := fields(s.intent[c.Start:c.End])
	return !c.Led && (slices.Contains(conditions, bare(words[0].text)) || slices.ContainsFunc(words, func(w field) bool { return slices.Contains(auxiliaries, bare(w.text)) }))
}

// conditions begin a clause that states when or why to do something.
var conditions = []string{"if", "when", "since", "because", "as", "unless", "while", "whenever", "should"}

// short reports whether a clause has too few words to be a part.
func (c *clause) short() bool {
	return c.words < minLedWords || c.words < minPartWords && !c.Led
}

// finish resolves the order that the clauses state.
func (s *splitter) finish() []Part {
	for i := range s.parts {
		c := &s.parts[i]
		c.Text = strings.TrimRight(s.intent[c.Start:c.End], ".,;:!?—– ")
		c.End = c.Start + len(c.Text)
		_, c.object, _ = strings.Cut(c.Text, " ")
	}
	for i := len(s.parts) - 2; i >= 0; i-- {
		if c, next := &s.parts[i], &s.parts[i+1]; c.alone && next.object != "" {
			c.object = next.object
			c.Text += " " + c.object
		}
	}
	s.parts = slices.DeleteFunc(s.parts, func(c clause) bool { return c.Text == "" })
	follows := func(later, earlier int, says string) {
		s.parts[later].After, s.parts[later].Says = append(s.parts[later].After, earlier), says
	}
	for i := range s.parts {
		c := &s.parts[i]
		main := i - 1 // of a subordinate clause
		if c.opens && i+1 < len(s.parts) {
			main = i + 1
		}
		switch {
		case main < 0:
		case c.marker == "before":
			follows(i, main, "before")
		case c.marker != "":
			follows(main, i, c.marker)
		case c.then != "" && i > 0:
			follows(i, i-1, c.then)
		}
	}
	parts := make([]Part, len(s.parts))
	for i := range parts {
		parts[i] = s.parts[i].Part
		parts[i].Request = requestOf(parts[i].Text)
	}
	return parts
}

// splits reports whether a part begins with word i.
func (s *splitter) splits(i int) bool {
	if s.quoted[i] && s.quoted[i-1] {
		return false
	}
	word, before := s.word(i), s.words[i-1].text
	if s.endsSentence(i) || listNumber(s.words[i].text) {
		return true
	}
	if word == "as" && i+2 < len(s.words) && s.word(i+1) == "well" && s.word(i+2) == "as" {
		return true
	}
	comma := strings.HasSuffix(before, ",") || before == "-" || strings.HasSuffix(before, "—") || strings.HasSuffix(before, "–") || strings.HasSuffix(before, ":")
	switch word {
	case "and", "&": // "jan.json and feb.json" are values of one part
		return i+1 == len(s.words) || s.led(i+1, len(s.words)) || !value(before) || !value(s.words[i+1].text)
	case "then":
		return !slices.Contains([]string{"until", "by", "since", "from", "and"}, s.word(i-1))
	case "after", "before", "once":
		return s.led(i+1, len(s.words)) || comma && i+1 < len(s.words) && slices.Contains([]string{"that", "this"}, s.word(i+1))
	}
	return comma && (slices.Contains(joiners, word) || slices.Contains(orderWords, word) || s.led(i, len(s.words)))
}

// endsSentence reports whether a sentence or a line ends before word i.
func (s *splitter) endsSentence(i int) bool {
	before := s.words[i-1].text
	gap := s.intent[s.words[i-1].at+len(before) : s.words[i].at]
	if strings.ContainsRune(gap, '\n') {
		return true
	}
	if abbreviations[strings.ToLower(before)] || listNumber(before) {
		return false
	}
	return strings.ContainsRune(".!?;", rune(before[len(before)-1]))
}

// led reports whether the words in [i, end) begin with a verb, after words such as "please",
// "also" and "I want to".
func (s *splitter) led(i, end int) bool {
	first := i
	for i < end && slices.Contains(fillers, s.word(i)) {
		i++
	}
	if i >= end || s.quoted[i] {
		return false
	}
	verb, sure := verbOf(s.word(i))
	if !verb || sure {
		return verb || i+1 < end && imperative(s.word(i), s.word(i+1))
	}
	return i > first || i == 0 || s.endsSentence(i) || i+1 < end && (s.quoted[i+1] || slices.Contains(determiners, s.word(i+1)) || value(s.words[i+1].text))
}

// value reports whether a word is a name or a value, such as "T-205", "clip8.mov" and "Ops".
func value(word string) bool {
	return strings.ContainsFunc(word, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) }) || strings.ContainsAny(strings.TrimRight(word, ".,;:!?"), "./_@#\"“")
}

// imperative reports whether a word that is not known as a verb is one before next, as in "bake a".
func imperative(word, next string) bool {
	return (next == "it" || next == "them") && !slices.Contains(conditions, word) || slices.Contains(articles, next) && !query.IsStopWord(word) && !notVerbs.MatchString(word)
}

// notVerbs matches words whose form is not that of an imperative, such as "using" and "only".
var notVerbs = regexp.MustCompile(`(?:ing|ed|ly|[^s]s)$|[^a-z]`)

func (s *splitter) word(i int) string { return bare(s.words[i].text) }

// listNumber reports whether a word is the number of an entry of a list: "1.", "(2)".
func listNumber(w string) bool { return listNumbers.MatchString(w) }

var listNumbers = regexp.MustCompile(`^(?:\d{1,2}[.)]|\(\d{1,2}\))$`)

// quotedWords reports for each word whether it is in quotes.
func quotedWords(s string, words []field) []bool {
	in := make([]bool, len(words))
	for _, m := range patternOf(Quoted).FindAllStringIndex(s, -1) {
		for i, w := range words {
			in[i] = in[i] || m[0] <= w.at && w.at < m[1]
		}
	}
	return in
}

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

// bare returns a word in lower case without the punctuation around it.
func bare(w string) string {
	return strings.ToLower(strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
}
