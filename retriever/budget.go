package retriever

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/text/invisible"
	"cairn/internal/text/markdown"
)

// longestToken is the maximum size of a token in bytes. A text with more bytes than its
// budget allows is rejected without counting its tokens.
const longestToken = 128

// cost returns the number of tokens of v in JSON, as a client receives it.
func (r *Retriever) cost(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshalling %T: %v", v, err)) // unreachable: every answer can be marshalled
	}
	return r.sources.Budget.CountTokens(string(b))
}

// size returns the number of tokens of v as text or in JSON.
func (r *Retriever) size(v interface{ Text() string }, asText bool) int {
	if asText {
		return r.sources.Budget.CountTokens(v.Text())
	}
	return r.cost(v)
}

// passageTokens is the budget for the first passage of a hit, about the size of a chunk.
// It determines how many hits a budget is divided among, at least two.
const passageTokens = 200

// leastPassage is the fewest tokens of a longer chunk that are worth an entry.
const leastPassage = 10

// furtherShare is the factor of the score of a further section of a document, so that
// the best section of another document comes first unless it is clearly worse. See
// benchmarks/quality.md. In an answer as text, whose texts are shorter, more of them are
// near the best one.
const (
	furtherShare     = 0.8
	furtherTextShare = 1.05
)

// An answer as text gives windows of at least windowTokens tokens around the best chunks,
// each at most a third of the text. Without MaxTokens it has at most DefaultTokens tokens, and
// only texts whose score is at least nearBest of the best. See benchmarks/quality.md.
const (
	DefaultTokens = 900
	windowTokens  = 110
	nearBest      = 0.75
)

// A manual often has the words of a question about code, and fills the answer. So an answer
// without MaxTokens also gives the best text of source code if its score is at least codeNear
// of the best: codeTokens tokens, and more if the documents leave room. See benchmarks/code.md.
const (
	codeNear   = 0.5
	codeTokens = 130
)

// candidateText is the text around the best chunk of a section: the section with its
// subsections, or the part of it that could fit into the budget. The text of a further
// section of a document ends before its subsections.
type candidateText struct {
	text   string
	line   int  // line number of the first byte in the file
	own    span // the section without its subsections
	chunk  span
	given  span   // the text in the answer; empty for none
	tokens int    // of given
	said   string // what words returns, once it is known

	source bool              // of source code
	named  int               // a line of the file that the query names, 0 for none
	code   bool              // of source code other than tests
	terms  []map[string]bool // of the query, in each line of own; see densestLines
	share  float64           // of the document's score
	score  float64           // orders the texts of an answer; at first the document's, not rounded
	main   *candidateText    // of the document's best section; nil for that section itself
	inside bool              // main contains it
	parts  []*candidateText  // texts in the answer that are inside this one
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
		own: within(s.Start, s.OwnEnd), chunk: within(c.Start, c.End), share: 1,
	}
}

// content returns the text in the answer and its lines in the file.
func (h *candidateText) content() (string, Lines) {
	text := h.text[h.given.from:h.given.to]
	start := h.line + lineBreaks([]byte(h.text[:h.given.from]))
	return text, Lines{start, start + lineBreaks([]byte(text))}
}

// words returns the words of the best chunk, separated by blanks.
func (h *candidateText) words() string {
	if h.said != "" {
		return h.said
	}
	h.said = strings.Join(strings.FieldsFunc(h.text[h.chunk.from:h.chunk.to], betweenWords), " ")
	return h.said
}

// betweenWords reports whether r is neither a letter nor a digit.
func betweenWords(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// fit adds text to an answer until the budget is spent. The texts are the best sections
// of the documents and further sections of them, by score. It works in rounds: passages
// of the best texts, their sections, passages and sections of the other texts,
// subsections, and then the lines around. Hits without text are omitted. MaxTokens bounds
// the text; MaxBudget bounds the whole answer.
func (s *search) fit(a *Answer) {
	seen := a.dropRepeated()
	if s.AsText {
		s.fitText(a, seen)
		return
	}
	s.pack(a, s.MaxTokens, seen)
	a.Budget.Envelope = s.envelope(a)
	for len(a.Results) > 1 && a.Budget.Text+a.Budget.Envelope > MaxBudget {
		last := &a.Results[len(a.Results)-1]
		for _, h := range last.candidates() {
			a.Budget.Text -= h.tokens
		}
		a.omit(last)
		a.Results = a.Results[:len(a.Results)-1]
		a.Budget.Envelope = s.envelope(a)
	}
}

// fitText makes the whole answer as text fit into MaxTokens. It packs texts repeatedly,
// each time with a budget that is corrected by the tokens that remained or were too many.
func (s *search) fitText(a *Answer, seen map[string]int) {
	var best *Answer
	most := -1
	room := s.MaxTokens * 3 / 4
	for range 6 {
		one := *a
		one.Results = slices.Clone(a.Results)
		for i := range one.Results {
			r := &one.Results[i]
			r.More = slices.Clone(r.More)
			for _, h := range r.candidates() {
				h.given, h.tokens, h.parts = span{}, 0, nil
			}
		}
		left := s.pack(&one, room, maps.Clone(seen))
		size := s.sources.Budget.CountTokens(one.Text())
		for n := len(one.Results); size > s.MaxTokens && n > 0 && one.Results[n-1].Content == ""; n-- {
			one.omit(&one.Results[n-1])
			one.Results = one.Results[:n-1]
			size = s.sources.Budget.CountTokens(one.Text())
		}
		if size <= s.MaxTokens && size > most {
			best, most = &one, size
		}
		if size <= s.MaxTokens && (size > s.MaxTokens*98/100 || left >= leastPassage) || room == 0 {
			break
		}
		if size > s.MaxTokens {
			room -= left // only less than what was used changes the text
		}
		room = max(0, room+s.MaxTokens-size)
	}
	if best == nil { // the notes alone fill the budget
		a.Results, a.Folders, a.OmittedCount = nil, nil, len(a.Results)
		return
	}
	*a = *best
	if s.brief { // more would have fitted
		a.OmittedCount, a.Omitted = 0, nil
	}
}

// pack adds text of at most budget tokens to the results, and returns the tokens that
// remain.
func (s *search) pack(a *Answer, budget int, seen map[string]int) (left int) {
	f := fitter{count: s.sources.Budget.CountTokens, left: budget, seen: seen, marked: s.marked}
	texts := a.texts()
	passage, parts := passageTokens, 1
	if s.AsText {
		passage, parts = windowTokens, 3
	}
	var code *candidateText
	if s.brief {
		code = bestCode(texts)
		texts = slices.DeleteFunc(texts, func(h *candidateText) bool { return h == code || h.score < nearBest*texts[0].score })
	}
	meant := min(max(2, budget/passage), len(texts))
	if code != nil {
		texts = slices.Insert(texts, 1, code)
		meant++
	}
	for _, h := range texts[:meant] {
		share := budget / max(meant, parts)
		if h == code {
			share = min(share, codeTokens)
		}
		f.start(h, share)
		if s.AsText {
			f.extend(h, share)
		}
	}
	for _, h := range texts[:meant] {
		f.widen(h, h.chunk)
		f.widen(h, h.own)
	}
	if !s.brief {
		f.fill(texts, meant)
	}
	s.keep(a, budget-f.left)
	return f.left
}

// bestCode returns the best text of source code, or nil if the best text is of source code
// or the best text of source code is far from it.
func bestCode(texts []*candidateText) *candidateText {
	i := slices.IndexFunc(texts, func(h *candidateText) bool { return h.code })
	if i < 1 || texts[i].score < codeNear*texts[0].score {
		return nil
	}
	return texts[i]
}

// fill spends what remains of the budget after the first texts.
func (f *fitter) fill(texts []*candidateText, meant int) {
	for _, h := range texts[meant:] {
		f.start(h, passageTokens)
	}
	for _, h := range texts {
		f.widen(h, h.own)
	}
	for _, h := range texts {
		f.unite(h)
	}
	for _, h := range texts {
		f.extend(h, math.MaxInt)
	}
}

// envelope returns the number of tokens of an answer without the texts.
func (s *search) envelope(a *Answer) int {
	bare := *a
	bare.Results = slices.Clone(a.Results)
	for i := range bare.Results {
		bare.Results[i].Content = ""
		bare.Results[i].More = slices.Clone(bare.Results[i].More)
		for j := range bare.Results[i].More {
			bare.Results[i].More[j].Content = ""
		}
	}
	return s.cost(&bare)
}

// texts returns the texts that the answer can hold, best first.
func (a *Answer) texts() []*candidateText {
	var texts []*candidateText
	score := math.Inf(1)
	for i := range a.Results {
		r := &a.Results[i]
		score = min(score, r.candidate.score) // keeps the order of the results
		for _, h := range r.candidates() {
			h.score = score * h.share
			texts = append(texts, h)
		}
	}
	slices.SortStableFunc(texts, func(x, y *candidateText) int { return cmp.Compare(y.score, x.score) })
	return texts
}

// candidates returns the text of the result's section and those of its further sections.
func (r *Result) candidates() []*candidateText {
	texts := []*candidateText{r.candidate}
	for i := range r.More {
		texts = append(texts, r.More[i].candidate)
	}
	return texts
}

// dropRepeated removes each hit whose chunk has the same words as the chunk of a better
// hit, and lists it among the duplicates of the better hit. It returns the words of the
// other hits, and their indices.
func (a *Answer) dropRepeated() (first map[string]int) {
	first = map[string]int{}
	kept := a.Results[:0]
	for _, r := range a.Results {
		words := r.candidate.words()
		if i, ok := first[words]; ok && words != "" {
			kept[i].Duplicates = append(kept[i].Duplicates, r.Place())
			continue
		}
		first[words] = len(kept)
		kept = append(kept, r)
	}
	a.Results = kept
	return first
}

// keep sets the content of the hits with text and omits the others.
func (s *search) keep(a *Answer, used int) {
	a.Budget = &Spent{Tokens: s.MaxTokens, Text: used}
	results, without, listed := a.Results, []Result{}, 0
	a.Results = []Result{}
	for i := range results {
		r := &results[i]
		if r.candidate.given.to == 0 {
			if s.AsText && listed < maxListed {
				listed++
				r.More = nil
				without = append(without, *r)
			} else {
				a.omit(r)
			}
			continue
		}
		r.Content, r.Passage = r.candidate.content()
		r.Content = markdown.WithoutIDs(r.Path, r.Content)
		all := r.Content
		r.More = slices.DeleteFunc(r.More, func(m SectionRef) bool { return m.candidate.given.to == 0 })
		for j := range r.More {
			m := &r.More[j]
			var lines Lines
			m.Content, lines = m.candidate.content()
			m.Content = markdown.WithoutIDs(r.Path, m.Content)
			m.Passage = &lines
			all += "\n" + m.Content
		}
		r.Flags = invisible.Find(all)
		r.Hash = shortHash(r.Hash)
		a.Results = append(a.Results, *r)
	}
	a.Results = append(a.Results, without...)
	if len(a.Results) == 0 && len(results) > 0 && a.Hint == "" {
		a.Hint = fmt.Sprintf("no hit fits into %d tokens: read the omitted ones with read_doc, or allow more", s.MaxTokens)
	}
}

// maxListed is the most results without text in an answer as text.
const maxListed = 3

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
	count  func(string) int
	left   int             // tokens
	seen   map[string]int  // the words of chunks that are not given again
	marked *keyword.Marker // of the query
}

// start adds the beginning of a chunk, or the lines of source code with the most terms of
// the query, at least leastPassage and at most limit tokens. It adds a further section only
// if the best one of the document has text, and no other text has the same words.
func (f *fitter) start(h *candidateText, limit int) {
	limit = min(limit, f.left)
	if limit < leastPassage || h.main != nil && h.main.given.to == 0 {
		return
	}
	if h.main != nil {
		words := h.words()
		if _, repeated := f.seen[words]; repeated {
			return
		}
		f.seen[words] = -1
	}
	at := h.chunk
	if h.source {
		at = h.own
	}
	if at.to-at.from <= usual*limit && f.take(h, at, limit) {
		return
	}
	if h.source {
		at.from += f.densestLines(h, limit)
	}
	text := h.text[at.from:min(at.to, at.from+usual*limit)]
	for _, borders := range [][]int{lineEnds(text), wordEnds(text)} {
		n := sort.Search(len(borders), func(i int) bool { return f.count(text[:borders[i]]) > limit })
		if n > 0 && f.count(text[:borders[n-1]]) >= leastPassage && f.take(h, span{at.from, at.from + borders[n-1]}, limit) {
			return
		}
	}
}

// continues matches two lines of code if the second continues the first: after a comma, an operator
// or an open bracket, before a closing one, within a comment. It also matches if that is blank.
var continues = regexp.MustCompile(`[,.([&|+=\\][ \t\r]*\n|\n[ \t\r]*[)\]}.&|*\n]|^[ \t]*(?:/?\*|//|#|--).*\n[ \t]*(?:\*|//|#|--)`)

const (
	bytesOfToken = 2 // below the average of source code, so that the lines fit, with some around them
	mostBefore   = 8 // lines from the beginning of a statement or comment
)

// densestLines returns the offset in h.own of the consecutive lines of some limit tokens that
// have the most distinct terms of the query, from the beginning of a statement or comment. If
// the query names a line, they are those around it. Only words tell which lines answer: a
// symbol has one vector.
func (f *fitter) densestLines(h *candidateText, limit int) int {
	lines := slices.Collect(strings.Lines(h.text[h.own.from:h.own.to]))
	if h.terms == nil {
		for _, line := range lines {
			h.terms = append(h.terms, f.marked.In(line))
		}
	}
	first := h.named - h.line - lineBreaks([]byte(h.text[:h.own.from]))
	if h.named > 0 && first > 0 && first < len(lines) {
		for size := 0; first > 0 && size < bytesOfToken*limit/2; first-- {
			size += len(lines[first-1])
		}
	} else {
		first, _ = densest(lines, h.terms, len(lines), bytesOfToken*limit, func(i int) bool { return len(h.terms[i]) > 0 })
		for least := first - mostBefore; first > max(0, least) && continues.MatchString(lines[first-1]+lines[first]); {
			first--
		}
	}
	return len(strings.Join(lines[:first], ""))
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

// unite replaces the text of a section and the texts inside it by the whole section, if
// that fits.
func (f *fitter) unite(h *candidateText) {
	if len(h.parts) == 0 {
		f.widen(h, span{0, len(h.text)})
		return
	}
	room := f.left + h.tokens
	for _, p := range h.parts {
		room += p.tokens
	}
	if f.take(h, span{0, len(h.text)}, room) {
		for _, p := range h.parts {
			f.left += p.tokens
			p.given, p.tokens = span{}, 0
		}
		h.parts = nil
	}
}

// extend adds as many of the lines after a hit's text as fit, then lines before it, until
// the text has limit tokens.
func (f *fitter) extend(h *candidateText, limit int) {
	const least = 16 // tokens worth the work
	left := func() int { return min(f.left, limit-h.tokens) }
	if h.given.to == 0 || len(h.parts) > 0 || left() < least {
		return
	}
	room := left() + h.tokens
	after := lineEnds(h.text[h.given.to:min(len(h.text), h.given.to+usual*left())])
	n := sort.Search(len(after), func(i int) bool { return f.count(h.text[h.given.from:h.given.to+after[i]]) > room })
	if n > 0 {
		f.take(h, span{h.given.from, h.given.to + after[n-1]}, room)
	}
	if h.given.to < len(h.text) || left() < least {
		return
	}
	room = left() + h.tokens
	before := []int{0}
	for _, end := range lineEnds(h.text[:h.given.from]) {
		if h.given.from-end <= usual*left() {
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
	if h.inside && !slices.Contains(h.main.parts, h) {
		h.main.parts = append(h.main.parts, h)
	}
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
