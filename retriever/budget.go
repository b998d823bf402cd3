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

// longestToken is the maximum size of a token in bytes. A text with more bytes than its
// budget allows is rejected without counting its tokens.
const longestToken = 128

// cost returns the number of tokens of v in JSON, as a client receives it.
func (r *Retriever) cost(v any) int {
	return r.sources.Budget.CountTokens(renderJSON(v))
}

func renderJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshalling %T: %v", v, err)) // unreachable: every answer can be marshalled
	}
	return string(b)
}

// omittedCost returns the number of tokens of one entry in the list of omitted hits,
// with its comma.
func (r *Retriever) omittedCost(o Omitted) int { return r.cost(&o) + 1 }

// passageTokens is the budget for the first passage of a hit, about the size of a chunk.
// It determines how many hits a budget is divided among, at least two.
const passageTokens = 200

// budgetLimit returns the default Limit of a search within a budget. It is larger than
// the number of passages that fit, since some are short.
func budgetLimit(tokens int) int { return min(max(DefaultLimit, 2*tokens/passageTokens), MaxLimit) }

// candidateText is the text around the best chunk of a hit: its section with the
// subsections, or the part of it that could fit into the budget.
type candidateText struct {
	text   string
	line   int  // line number of the first byte in the file
	own    span // the section without its subsections
	chunk  span
	given  span // the text in the answer; empty for none
	tokens int  // of given
}

// span is a range of bytes.
type span struct{ from, to int }

// newCandidateText copies the text of a section around a chunk for a budget of tokens.
func newCandidateText(s *store.Section, c store.Chunk, text []byte, tokens int) *candidateText {
	const most = 16 // bytes of a token, except for long runs of one character
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

// fit adds text to the hits of an answer until the budget is spent. It works in rounds,
// each in rank order: passages of the best hits, their sections, passages and sections of
// the other hits, subsections, and then the lines around. Hits without text are omitted.
// MaxTokens bounds the text; MaxBudget bounds the whole answer.
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

// envelope returns the number of tokens of an answer without the texts.
func (s *search) envelope(a *Answer) int {
	bare := *a
	bare.Results = slices.Clone(a.Results)
	for i := range bare.Results {
		bare.Results[i].Content = ""
	}
	return s.cost(&bare)
}

// dropRepeated removes each hit whose chunk has the same words as the chunk of a better
// hit, and lists it among the duplicates of the better hit.
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

// keep sets the content of the hits with text and omits the others.
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

// maxOmitted is the most entries of Answer.Omitted.
const maxOmitted = 3

// omit counts a hit as omitted.
func (a *Answer) omit(r *Result) {
	a.OmittedCount++
	if len(a.Omitted) < maxOmitted {
		a.Omitted = append(a.Omitted, Omitted{Path: r.Place(), Tokens: r.SectionTokens})
	}
}

// fitter divides a token budget among hits.
type fitter struct {
	count func(string) int
	left  int // tokens
}

// start adds the beginning of a hit's chunk, at most limit tokens.
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

// usual bounds the average bytes per token of ordinary text. Longer texts would not fit,
// so their tokens are not counted.
const usual = 8

// widen replaces the text of a hit by a range that contains it, if that fits.
func (f *fitter) widen(h *candidateText, to span) {
	if added := to.to - to.from - (h.given.to - h.given.from); added > usual*f.left {
		return
	}
	if h.given.to > 0 && (to.from < h.given.from || to.to > h.given.to) && to.from <= h.given.from && to.to >= h.given.to {
		f.take(h, to, f.left+h.tokens)
	}
}

// extend adds as many of the lines after a hit's text as fit, then lines before it.
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

// take replaces the text of a hit by a range if that has at most room tokens.
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

// lineEnds returns the offset after each line of text, including the last.
func lineEnds(text string) (ends []int) {
	at := 0
	for line := range strings.Lines(text) {
		at += len(line)
		ends = append(ends, at)
	}
	return ends
}

// wordEnds returns the offset after each word of text.
func wordEnds(text string) (ends []int) {
	for i, r := range text {
		if i > 0 && unicode.IsSpace(r) {
			ends = append(ends, i)
		}
	}
	return ends
}
