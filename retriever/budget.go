package retriever

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/invisible"
	"cairn/internal/store"
)

// longestToken is the most bytes of a token, so that a text that is far too long need
// not be counted.
const longestToken = 128

// cost is the tokens of v in JSON, as a client receives it.
func (r *Retriever) cost(v any) int {
	return r.sources.Budget.CountTokens(renderJSON(v))
}

func renderJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshalling %T: %v", v, err)) // unreachable: answers hold nothing that does not marshal
	}
	return string(b)
}

// omittedCost is the tokens of one entry in the list of omitted hits, with its
// comma.
func (r *Retriever) omittedCost(o Omitted) int { return r.cost(&o) + 1 }

// A hit that is given text within a budget gets passageTokens of it first: what a
// chunk takes, more or less. An answer is meant for as many hits as have room for that,
// but for two at least.
const passageTokens = 200

// budgetLimit is how many hits a search within a budget asks for unless the caller
// says so: more than there is room for, since short ones are among them.
func budgetLimit(tokens int) int { return min(max(DefaultLimit, 2*tokens/passageTokens), MaxLimit) }

// candidateText is the text around the best chunk of a hit: its section with the
// subsections, or as much of it as could fit into the budget.
type candidateText struct {
	text   string
	line   int  // of its first byte in the file
	own    span // the section without its subsections
	chunk  span
	given  span // what the answer holds; empty for nothing
	tokens int  // of what it holds
}

// span is a range of bytes.
type span struct{ from, to int }

// newCandidateText copies the text of a section around a chunk for a budget of tokens.
func newCandidateText(s *store.Section, c store.Chunk, text []byte, tokens int) *candidateText {
	const most = 16 // bytes of a token, but for long runs of one character
	start, end := max(s.Start, c.Start-most*tokens), min(s.End, c.End+most*tokens)
	for start > s.Start && text[start-1] != '\n' {
		start--
	}
	for end < s.End && !utf8.RuneStart(text[end]) {
		end++
	}
	start, end = trimmed(text, start, end)
	within := func(from, to int) span {
		if from, to = max(from, start), min(to, end); from >= to {
			return span{}
		}
		from, to = trimmed(text, from, to)
		return span{from - start, to - start}
	}
	return &candidateText{
		text: string(text[start:end]), line: passage(s, store.Chunk{Start: start, End: start}, text).Start,
		own: within(s.Start, s.OwnEnd), chunk: within(c.Start, c.End),
	}
}

// fit gives the hits of an answer their text, in rank order and in rounds: a passage for
// each hit that the budget is meant for, their sections, passages of further hits, their
// subsections, and as much of the rest as there is room for. Hits without text are
// omitted. MaxTokens bounds the text; MaxBudget bounds the answer as a whole.
func (s *search) fit(a *Answer) {
	a.dropRepeated()
	hits := make([]*candidateText, len(a.Results))
	for i := range a.Results {
		hits[i] = a.Results[i].candidate
	}
	f := fitter{count: s.sources.Budget.CountTokens, left: s.MaxTokens}
	meant := min(max(2, s.MaxTokens/passageTokens), len(hits))
	for _, h := range hits[:meant] {
		f.start(h, s.MaxTokens/meant)
	}
	for _, h := range hits[:meant] {
		f.widen(h, h.chunk)
		f.widen(h, h.own)
	}
	for _, h := range hits[meant:] {
		f.start(h, passageTokens)
	}
	for _, h := range hits {
		f.widen(h, h.own)
	}
	for _, h := range hits {
		f.widen(h, span{0, len(h.text)})
	}
	for _, h := range hits {
		f.extend(h)
	}
	s.keep(a, s.MaxTokens-f.left)
	a.Budget.Envelope = s.envelope(a)
	for len(a.Results) > 1 && a.Budget.Text+a.Budget.Envelope > MaxBudget {
		last := &a.Results[len(a.Results)-1]
		a.Budget.Text -= last.candidate.tokens
		a.omit(last)
		a.Results = a.Results[:len(a.Results)-1]
		a.Budget.Envelope = s.envelope(a)
	}
}

// envelope is the tokens of an answer without the texts.
func (s *search) envelope(a *Answer) int {
	bare := *a
	bare.Results = slices.Clone(a.Results)
	for i := range bare.Results {
		bare.Results[i].Content = ""
	}
	return s.cost(&bare)
}

// dropRepeated names a hit whose chunk says what that of a better one says among the
// duplicates of that one.
func (a *Answer) dropRepeated() {
	first := map[string]int{}
	kept := a.Results[:0]
	for _, r := range a.Results {
		h := r.candidate
		words := strings.Join(strings.FieldsFunc(h.text[h.chunk.from:h.chunk.to], func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }), " ")
		if i, ok := first[words]; ok && words != "" {
			kept[i].Duplicates = append(kept[i].Duplicates, r.Place())
			continue
		}
		first[words] = len(kept)
		kept = append(kept, r)
	}
	a.Results = kept
}

// keep gives the hits their text and removes those without.
func (s *search) keep(a *Answer, used int) {
	a.Budget = &Spent{Tokens: s.MaxTokens, Text: used}
	results := a.Results
	a.Results = []Result{}
	for i := range results {
		r := &results[i]
		h := r.candidate
		if h.given.to == 0 {
			a.omit(r)
			continue
		}
		r.Content = h.text[h.given.from:h.given.to]
		start := h.line + lineBreaks([]byte(h.text[:h.given.from]))
		r.Passage = Lines{start, start + lineBreaks([]byte(r.Content))}
		r.Flags = invisible.Find(r.Content)
		r.Hash, r.SectionHash = r.Hash[:min(ShortHash, len(r.Hash))], r.SectionHash[:min(ShortHash, len(r.SectionHash))]
		s.trace.fitted(r, h.given == h.own || h.given == span{0, len(h.text)}, h.tokens)
		a.Results = append(a.Results, *r)
	}
	if len(a.Results) == 0 && len(results) > 0 && a.Hint == "" {
		a.Hint = fmt.Sprintf("no hit fits into %d tokens: read the omitted ones with read_doc, or allow more", s.MaxTokens)
	}
}

// maxOmitted is how many omitted hits are named.
const maxOmitted = 3

// omit counts a hit that has no place in the answer.
func (a *Answer) omit(r *Result) {
	a.OmittedCount++
	if len(a.Omitted) < maxOmitted {
		a.Omitted = append(a.Omitted, Omitted{Path: r.Place(), Tokens: r.SectionTokens})
	}
}

// fitter spends a budget.
type fitter struct {
	count func(string) int
	left  int // tokens
}

// start gives a hit the beginning of its chunk, at most limit tokens.
func (f *fitter) start(h *candidateText, limit int) {
	limit = min(limit, f.left)
	if f.take(h, h.chunk, limit) {
		return
	}
	text := h.text[h.chunk.from:h.chunk.to]
	for _, borders := range [][]int{lineEnds(text), wordEnds(text)} {
		n := sort.Search(len(borders), func(i int) bool { return f.count(text[:borders[i]]) > limit })
		if n > 0 && f.take(h, span{h.chunk.from, h.chunk.from + borders[n-1]}, limit) {
			return
		}
	}
}

// usual bounds the bytes of a token of ordinary text: what has more would not fit, and
// counting its tokens takes time.
const usual = 8

// widen gives a hit that has text a wider range if that fits.
func (f *fitter) widen(h *candidateText, to span) {
	if added := to.to - to.from - (h.given.to - h.given.from); added > usual*f.left {
		return
	}
	if h.given.to > 0 && (to.from < h.given.from || to.to > h.given.to) && to.from <= h.given.from && to.to >= h.given.to {
		f.take(h, to, f.left+h.tokens)
	}
}

// extend gives a hit that has text as many of the lines that follow as fit, then of
// those before.
func (f *fitter) extend(h *candidateText) {
	const least = 16 // tokens worth the work
	if h.given.to == 0 || f.left < least {
		return
	}
	room := f.left + h.tokens
	after := lineEnds(h.text[h.given.to:min(len(h.text), h.given.to+usual*f.left)])
	n := sort.Search(len(after), func(i int) bool { return f.count(h.text[h.given.from:h.given.to+after[i]]) > room })
	if n > 0 {
		f.take(h, span{h.given.from, h.given.to + after[n-1]}, room)
	}
	if h.given.to < len(h.text) || f.left < least {
		return
	}
	room = f.left + h.tokens
	before := []int{0}
	for _, end := range lineEnds(h.text[:h.given.from]) {
		if h.given.from-end <= usual*f.left {
			before = append(before, end)
		}
	}
	n = sort.Search(len(before), func(i int) bool { return f.count(h.text[before[i]:h.given.to]) <= room })
	if n < len(before) {
		f.take(h, span{before[n], h.given.to}, room)
	}
}

// take gives a hit a range in place of what it has, unless that is more than room.
func (f *fitter) take(h *candidateText, to span, room int) bool {
	to.to = to.from + len(strings.TrimRight(h.text[to.from:to.to], "\r\n"))
	if to.to <= to.from || to.to-to.from > longestToken*room {
		return false
	}
	n := f.count(h.text[to.from:to.to])
	if n > room {
		return false
	}
	f.left -= n - h.tokens
	h.given, h.tokens = to, n
	return true
}

// lineEnds returns the offsets behind the lines of text, the last line's included.
func lineEnds(text string) (ends []int) {
	at := 0
	for line := range strings.Lines(text) {
		at += len(line)
		ends = append(ends, at)
	}
	return ends
}

// wordEnds returns the offsets behind the words of text.
func wordEnds(text string) (ends []int) {
	for i, r := range text {
		if i > 0 && unicode.IsSpace(r) {
			ends = append(ends, i)
		}
	}
	return ends
}
