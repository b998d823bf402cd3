package benchmarks

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/text/markdown"
)

// The kinds of queries that are derived from a folder. A heading occurs once in the folder;
// the queries are the heading, the heading with two letters swapped, and a question. A
// sentence has words that are rare in the folder, and the index of the run does not contain
// it, so that the search must find the text around it. Its queries are the sentence, its
// five rarest words, and a paraphrase with its clauses exchanged and without its rarest
// word and common words.
const (
	kindHeading    = "heading"
	kindTypo       = "heading, typo"
	kindQuestion   = "heading, question"
	kindSentence   = "sentence"
	kindKeywords   = "sentence, keywords"
	kindParaphrase = "sentence, paraphrase"
)

// defaultSample is the default number of headings, and of sentences.
const defaultSample = 50

// maxCopies bounds the sections that answer a query equally. Text with more copies, such as
// a notice on every page, is not used.
const maxCopies = 5

// knownItem is a section with the text from which its queries are derived.
type knownItem struct {
	page    *page
	section *store.Section
	text    string
	extent  [2]int // of a sentence in the page
	rarity  float64
	copies  []*knownItem // the sections that answer equally, the section itself first
}

// knownItems derives queries from a folder, and hides the sentences in its pages.
func knownItems(pages []*page, o *SelfOptions) ([]RunQuery, error) {
	n := cmp.Or(o.Sample, defaultSample)
	w := countWords(pages)
	r := rand.New(rand.NewPCG(o.Seed, 1))
	var queries []RunQuery
	add := func(item *knownItem, kind, text string) {
		if text == "" {
			return
		}
		q := RunQuery{ID: fmt.Sprintf("%s %d", kind, len(queries)+1), Text: text, Relevant: Relevance{}, Groups: item.page.groups(kind)}
		for _, at := range item.copies {
			q.Relevant[at.page.path] = 1
			q.Sections = append(q.Sections, at.page.path+"#"+at.section.Anchor)
		}
		queries = append(queries, q)
	}
	phrases := phrasesOf(pages)
	for _, item := range choose(headings(pages), n, r) {
		if item.copies = phrases.copies(item); len(item.copies) > maxCopies {
			continue
		}
		add(item, kindHeading, item.text)
		add(item, kindTypo, misspell(item.text, r))
		add(item, kindQuestion, w.question(item))
	}
	for _, item := range choose(w.sentences(pages), n, r) {
		if item.copies = phrases.copies(item); len(item.copies) > maxCopies {
			continue
		}
		item.page.hidden = append(item.page.hidden, item.extent)
		add(item, kindSentence, item.text)
		add(item, kindKeywords, w.rarest(item.text, 5))
		add(item, kindParaphrase, w.paraphrase(item.text))
	}
	if len(queries) == 0 {
		return nil, fmt.Errorf("no heading and no sentence of the folder is distinct enough for a query")
	}
	return queries, nil
}

// choose returns n random items in their order.
func choose(items []*knownItem, n int, r *rand.Rand) []*knownItem {
	if len(items) <= n {
		return items
	}
	chosen := r.Perm(len(items))[:n]
	slices.Sort(chosen)
	out := make([]*knownItem, n)
	for i, at := range chosen {
		out[i] = items[at]
	}
	return out
}

// headings returns the headings of two to twelve words that occur once and have their own
// text.
func headings(pages []*page) []*knownItem {
	count := map[string]int{}
	for _, p := range pages {
		for i := range p.parsed.Sections {
			count[strings.ToLower(p.parsed.Sections[i].Heading)]++
		}
	}
	var items []*knownItem
	for _, p := range pages {
		for i := range p.parsed.Sections {
			s := &p.parsed.Sections[i]
			words := len(strings.Fields(s.Heading))
			if words < 2 || words > 12 || count[strings.ToLower(s.Heading)] > 1 || len(s.Heading) > 150 {
				continue
			}
			if _, own, ok := strings.Cut(p.text[s.Start:s.OwnEnd], "\n"); ok && strings.TrimSpace(own) != "" {
				items = append(items, &knownItem{page: p, section: s, text: s.Heading})
			}
		}
	}
	return items
}

// wordCounts counts the sections of a folder in which a word occurs.
type wordCounts struct {
	in       map[string]int
	sections int
}

func countWords(pages []*page) *wordCounts {
	w := &wordCounts{in: map[string]int{}}
	for _, p := range pages {
		for i := range p.parsed.Sections {
			s := &p.parsed.Sections[i]
			w.sections++
			seen := map[string]bool{}
			for _, word := range wordsOf(p.text[s.Start:s.OwnEnd]) {
				if !seen[word] {
					seen[word] = true
					w.in[word]++
				}
			}
		}
	}
	return w
}

// wordsOf returns the words of a text in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}

func (w *wordCounts) rarity(word string) float64 {
	return math.Log(float64(w.sections+1) / float64(w.in[word]+1))
}

// common reports whether a word is in more than a fifth of the sections.
func (w *wordCounts) common(word string) bool { return w.in[word] > max(2, w.sections/5) }

// sentences returns the rarest sentence of each section, if it is at most a third of the
// section and occurs once.
func (w *wordCounts) sentences(pages []*page) []*knownItem {
	var items []*knownItem
	times := map[string]int{}
	for _, p := range pages {
		for i := range p.parsed.Sections {
			s := &p.parsed.Sections[i]
			var best *knownItem
			for _, extent := range sentencesOf(p.text, s.Start, s.OwnEnd) {
				raw := p.text[extent[0]:extent[1]]
				text := strings.Join(strings.Fields(markdown.PlainText([]byte(raw))), " ")
				words := wordsOf(text)
				if len(words) < 8 || len(words) > 30 || utf8.RuneCountInString(text) > 200 || 3*len(raw) > s.OwnEnd-s.Start {
					continue
				}
				times[text]++
				item := &knownItem{page: p, section: s, text: text, extent: extent}
				for _, word := range words {
					item.rarity += w.rarity(word) / float64(len(words))
				}
				if best == nil || item.rarity > best.rarity {
					best = item
				}
			}
			if best != nil {
				items = append(items, best)
			}
		}
	}
	return slices.DeleteFunc(items, func(item *knownItem) bool { return times[item.text] > 1 })
}

// sentencesOf returns the extents of the sentences in the paragraphs of text[from:to].
// Paragraphs are lines that begin with a letter, outside of fenced code.
func sentencesOf(text string, from, to int) (extents [][2]int) {
	fenced, begin := false, -1
	flush := func(end int) {
		end -= len(text[:end]) - len(strings.TrimRight(text[:end], "\r\n "))
		for at := begin; begin >= 0 && at < end; {
			stop := end
			if n := strings.IndexAny(text[at:end], ".?!"); n >= 0 {
				stop = at + n + 1
			}
			for stop < end && text[stop] != ' ' && text[stop] != '\n' { // 1.5, e.g., a.md
				n := strings.IndexAny(text[stop:end], ".?!")
				if n < 0 {
					stop = end
					break
				}
				stop += n + 1
			}
			extents = append(extents, [2]int{at, stop})
			for at = stop; at < end && (text[at] == ' ' || text[at] == '\n'); at++ {
			}
		}
		begin = -1
	}
	for at := from; at < to; {
		end := to
		if n := strings.IndexByte(text[at:to], '\n'); n >= 0 {
			end = at + n
		}
		line := text[at:end]
		first, _ := utf8.DecodeRuneInString(line)
		switch fence := strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"); {
		case fence:
			flush(at)
			fenced = !fenced
		case fenced || !unicode.IsLetter(first) || strings.Contains(line, "://") || strings.HasPrefix(text[min(end+1, len(text)):], "==") || strings.HasPrefix(text[min(end+1, len(text)):], "--"):
			flush(at)
		case begin < 0:
			begin = at
		}
		at = end + 1
	}
	flush(min(to, len(text)))
	return extents
}

// rarest returns the n rarest words of a text in their order.
func (w *wordCounts) rarest(text string, n int) string {
	words := wordsOf(text)
	order := slices.Clone(words)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(w.rarity(b), w.rarity(a)) })
	order = slices.Compact(order)
	order = order[:min(n, len(order))]
	var kept []string
	for _, word := range words {
		if slices.Contains(order, word) && !slices.Contains(kept, word) {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// paraphrase exchanges the clauses at the comma nearest to the middle, if there is one, and
// removes the rarest word and the common words.
func (w *wordCounts) paraphrase(text string) string {
	middle := -1
	for at, r := range text {
		if strings.ContainsRune(",;:", r) && (middle < 0 || abs(2*at-len(text)) < abs(2*middle-len(text))) {
			middle = at
		}
	}
	if middle > 0 {
		text = text[middle+1:] + " " + text[:middle]
	}
	rarest := w.rarest(text, 1)
	words := slices.DeleteFunc(wordsOf(text), func(word string) bool { return word == rarest || w.common(word) })
	if len(words) < 3 {
		return ""
	}
	return strings.Join(words, " ")
}

func abs(n int) int { return max(n, -n) }

// misspell swaps two letters inside the longest word of a text. It returns "" if that word
// is too short.
func misspell(text string, r *rand.Rand) string {
	longest := ""
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(word) > len(longest) {
			longest = word
		}
	}
	letters := []rune(longest)
	if len(letters) < 6 {
		return ""
	}
	at := 1 + r.IntN(len(letters)-3)
	for n := 0; letters[at] == letters[at+1]; n++ {
		if at = 1 + (at % (len(letters) - 3)); n > len(letters) {
			return ""
		}
	}
	letters[at], letters[at+1] = letters[at+1], letters[at]
	return strings.Replace(text, longest, string(letters), 1)
}

// question turns a heading into a question: "Rotating a token" becomes "how do I rotate a
// token" if the folder has the verb. The question for another heading names its document.
func (w *wordCounts) question(item *knownItem) string {
	text := strings.TrimRight(item.text, "?:. ")
	first, rest, _ := strings.Cut(strings.ToLower(text), " ")
	if stem, ok := strings.CutSuffix(first, "ing"); ok && len(stem) > 2 {
		forms := []string{stem, stem + "e"}
		if n := len(stem); stem[n-1] == stem[n-2] {
			forms = append(forms, stem[:n-1]) // running
		}
		verb := slices.MaxFunc(forms, func(a, b string) int { return w.in[a] - w.in[b] })
		if w.in[verb] > 0 {
			return "how do I " + verb + " " + rest
		}
	}
	if how, ok := strings.CutPrefix(strings.ToLower(text), "how to "); ok {
		return "how do I " + how
	}
	title := item.page.parsed.Title
	if strings.HasSuffix(item.text, "?") || strings.EqualFold(title, item.text) {
		return "what is to know about " + text
	}
	return "what does " + title + " say about " + text
}
