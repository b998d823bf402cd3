package support

import (
	"maps"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store/keyword"
	"cairn/internal/text/markdown"
)

// windowSentences is the number of consecutive sentences in a window.
const windowSentences = 3

// text is the text of the sources, split into sentences.
type text struct {
	sentences []sentence
	windows   []window
	terms     map[string]bool // of all sentences and headings
	numbers   map[string]bool
}

type sentence struct {
	text      string
	terms     map[string]bool
	negations int
	negated   map[string]bool
}

func newSentence(s string) sentence {
	n, negated := negations(s)
	return sentence{s, termsOf(s), n, negated}
}

// window is a range of sentences of one source.
type window struct {
	from, to int
	terms    map[string]bool // of the sentences and the heading
	numbers  map[string]bool
}

func newText(sources []Source) *text {
	t := &text{terms: map[string]bool{}, numbers: map[string]bool{}}
	for _, s := range sources {
		heading, first := termsOf(s.Heading), len(t.sentences)
		maps.Copy(t.terms, heading)
		maps.Copy(t.numbers, numbersOf(s.Heading))
		for _, line := range sentences(markdown.PlainText([]byte(s.Text))) {
			one := newSentence(line)
			t.sentences = append(t.sentences, one)
			maps.Copy(t.terms, one.terms)
			maps.Copy(t.numbers, numbersOf(line))
		}
		for from := first; from < len(t.sentences); from++ {
			w := window{from, min(from+windowSentences, len(t.sentences)), map[string]bool{}, numbersOf(s.Heading)}
			maps.Copy(w.terms, heading)
			for _, one := range t.sentences[w.from:w.to] {
				maps.Copy(w.terms, one.terms)
				maps.Copy(w.numbers, numbersOf(one.text))
			}
			t.windows = append(t.windows, w)
			if w.to == len(t.sentences) && from > first {
				break // further windows are parts of this one
			}
		}
	}
	return t
}

// units returns the texts of a window to embed: its sentences and the pairs of consecutive
// sentences.
func (t *text) units(w int) (units []string) {
	all := t.sentences[t.windows[w].from:t.windows[w].to]
	for i := range all {
		units = append(units, all[i].text)
		if i > 0 {
			units = append(units, all[i-1].text+" "+all[i].text)
		}
	}
	return units
}

// termsOf returns the terms of a text, as the keyword index splits it.
func termsOf(s string) map[string]bool {
	terms := map[string]bool{}
	for _, t := range keyword.Analyze(s) {
		terms[t] = true
	}
	return terms
}

// lineEnd is the length in bytes below which a line ends a sentence if the next line does
// not begin with a lower-case letter. Wrapped lines are longer.
const lineEnd = 60

// sentences splits a text into sentences. A sentence ends at a full stop, question mark or
// exclamation mark that precedes white space but no lower-case letter, and at the end of a
// short line.
func sentences(s string) (list []string) {
	var b strings.Builder
	end := func() {
		if line := strings.Join(strings.Fields(b.String()), " "); line != "" {
			list = append(list, line)
		}
		b.Reset()
	}
	lines := strings.Split(s, "\n")
	for n, line := range lines {
		line = strings.TrimSpace(line)
		from := 0
		for i, r := range line {
			next := i + utf8.RuneLen(r)
			switch {
			case strings.ContainsRune("。！？", r):
			case !strings.ContainsRune(".!?", r) || next >= len(line) || line[next] != ' ' || abbreviation.MatchString(line[max(0, i-8):i]):
				continue
			default:
				if after, _ := utf8.DecodeRuneInString(strings.TrimLeft(line[next:], " ")); unicode.IsLower(after) {
					continue
				}
			}
			b.WriteString(line[from:next])
			from = next
			end()
		}
		b.WriteString(line[from:] + " ")
		if n+1 < len(lines) {
			after, _ := utf8.DecodeRuneInString(strings.TrimSpace(lines[n+1]))
			if line == "" || strings.ContainsAny(line[len(line)-1:], ".!?:;") || len(line) < lineEnd && !unicode.IsLower(after) {
				end()
			}
		}
	}
	end()
	return list
}

// abbreviation matches the text before a full stop that does not end a sentence.
var abbreviation = regexp.MustCompile(`(?i)(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|fig|no|dr|mr|mrs|ms|st|[a-z])$`)

// number matches a number, with or without a unit after it.
var number = regexp.MustCompile(`\d[\d,]*(?:\.\d+)*`)

// numbersOf returns the numbers of a text, without the commas between thousands.
func numbersOf(s string) map[string]bool {
	found := map[string]bool{}
	for _, n := range number.FindAllString(s, -1) {
		n = strings.ReplaceAll(n, ",", "")
		if strings.Contains(n, ".") && strings.Count(n, ".") == 1 {
			n = strings.TrimSuffix(strings.TrimRight(n, "0"), ".")
		}
		if trimmed := strings.TrimLeft(n, "0"); trimmed != "" {
			n = trimmed
		}
		found[n] = true
	}
	return found
}
