package keyword

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"

	"cairn/internal/text/query"
)

// maxTermBytes is the maximum length of a term in bytes. Longer terms (encoded blobs,
// URLs) are truncated in documents and queries alike, so that searches find them.
const maxTermBytes = 64

// maxParts is the most parts of a compound that is also indexed as a whole. Compounds
// with more parts are URLs or borders of tables.
const maxParts = 8

// maxExpansion is the largest factor by which normalisation may lengthen the beginning of
// a text. Some ligatures expand to four words; a text of many such ligatures is hostile.
const maxExpansion = 4

// maxCachedWords bounds the word cache of an analyzer, about 2 MB.
const maxCachedWords = 1 << 15

// kind is the role of a token. Tokens other than whole have a position of their own.
type kind uint8

const (
	// word tokens are scored and count towards the length.
	word kind = iota
	// part tokens are the words of a compound name (read and context in readContext).
	// They count as half a word in a text, as a word in source code, where most words are
	// parts of names, and as three quarters in a query, which also contains the whole.
	part
	// single tokens are single letters and digits: variables, list labels, initials.
	// They have a low weight and do not count towards the length.
	single
	// whole tokens repeat a compound's parts as one term ("readcontext" in addition to
	// "read" and "context"). They are scored, but do not count towards the length and
	// are not part of phrases.
	whole
	// stop words are neither scored nor counted, unless a query has no other words.
	stop
)

// queryWeight is the count of a token in a query. These and the numbers in entry.go and
// score.go were tuned together, by the mean over nine sets of questions (TestQuality).
var queryWeight = [...]float64{word: 1, part: 0.75, single: 0.25, whole: 0.5, stop: 1}

// token is a term of a text. Positions count from 0; a whole has the position of its
// first part.
type token struct {
	term string
	pos  int
	kind kind
	text string // of words and parts of a query: the word in lower case
}

// Analyze returns the scored terms of s as they are indexed, in order and with repetitions.
// They are in lower case, with accents folded, English words stemmed, compounds both in
// parts and as a whole, CJK as bigrams and single characters, and without stop words.
func Analyze(s string) []string {
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	a.query = false
	var terms []string
	for _, t := range a.tokens(s) {
		if t.kind != stop {
			terms = append(terms, t.term)
		}
	}
	return terms
}

// Marker finds terms of a query in texts. It is not safe for concurrent use.
type Marker struct {
	terms map[string]bool
	first [utf8.RuneSelf]bool // first bytes of terms
}

// NewMarker returns a Marker for the QueryTerms of q.
func NewMarker(q query.Query) *Marker {
	m := &Marker{terms: map[string]bool{}}
	for _, term := range QueryTerms(q) {
		m.terms[term] = true
		if term != "" && term[0] < utf8.RuneSelf {
			m.first[term[0]] = true
		}
	}
	return m
}

// Len returns the number of terms.
func (m *Marker) Len() int { return len(m.terms) }

// In returns the terms that Analyze finds in text, or nil if there are none.
func (m *Marker) In(text string) map[string]bool {
	a := analyzers.Get().(*analyzer)
	defer analyzers.Put(a)
	a.query, a.first = false, &m.first
	defer func() { a.first = nil }()
	var found map[string]bool
	for _, t := range a.tokens(text) {
		if t.kind != stop && m.terms[t.term] {
			if found == nil {
				found = map[string]bool{}
			}
			found[t.term] = true
		}
	}
	return found
}

// Words calls fn with each word of text and each piece of text between words, in order.
// marked reports whether the word contains a term.
func (m *Marker) Words(text string, fn func(part string, marked bool)) {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' }
	for text != "" {
		first, _ := utf8.DecodeRuneInString(text)
		word := inWord(first)
		end := strings.IndexFunc(text, func(r rune) bool { return inWord(r) != word })
		if end < 0 {
			end = len(text)
		}
		fn(text[:end], word && m.In(text[:end]) != nil)
		text = text[end:]
	}
}

// analyzers pools analyzers with their buffers and word caches.
var analyzers = sync.Pool{New: func() any { return &analyzer{words: make(map[string]token)} }}

// analyzer splits text into tokens in one pass. It is not safe for concurrent use.
type analyzer struct {
	words map[string]token // lower-case word -> term and kind
	env   *snowballstem.Env
	buf   []byte
	name  []byte   // the compound's parts, joined
	parts []string // the compound's parts, as written
	query bool     // analyse a query: see cjk
	// first, if not nil, restricts words to those with these first bytes.
	first *[utf8.RuneSelf]bool
	out   []token
	pos   int
}

// tokens returns the tokens of s. The result is valid until the next call.
func (a *analyzer) tokens(s string) []token {
	a.out, a.pos = a.out[:0], 0
	if !ascii(s) {
		// Compatibility composition replaces full-width and half-width forms,
		// ligatures and decomposed accents by the plain forms.
		head := s[:min(len(s), 256)]
		if len(norm.NFKC.String(head)) <= maxExpansion*len(head) {
			s = norm.NFKC.String(s)
		}
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case isCJK(r):
			i = a.cjk(s, i)
		case isWord(r):
			end := compoundEnd(s, i)
			a.compound(s[i:end], flagPrefix(s, i))
			i = end
		default:
			i += size
		}
	}
	return a.out
}

// cjk emits the run of ideographs, kana or hangul at s[i:]: each pair of adjacent
// characters, because no spaces separate words, and in documents also each character, so
// that a query of one character finds it.
func (a *analyzer) cjk(s string, i int) int {
	r, size := utf8.DecodeRuneInString(s[i:])
	next, nextSize := utf8.DecodeRuneInString(s[i+size:])
	if !isCJK(next) {
		a.out = append(a.out, token{term: s[i : i+size], pos: a.pos, kind: word})
		a.pos++
		return i + size
	}
	for isCJK(r) {
		if !a.query {
			a.out = append(a.out, token{term: s[i : i+size], pos: a.pos, kind: whole})
		}
		if isCJK(next) {
			a.out = append(a.out, token{term: s[i : i+size+nextSize], pos: a.pos, kind: word})
			a.pos++
		}
		i += size
		r, size = next, nextSize
		next, nextSize = utf8.DecodeRuneInString(s[i+size:])
	}
	return i
}

// compound emits a word or a compound name: its parts in order and, at the position of
// the first, the whole. prefix is the prefix of a flag or a dotted name ("--dry-run",
// ".net"), or empty.
func (a *analyzer) compound(s, prefix string) {
	first := a.pos
	a.parts = splitParts(a.parts[:0], s)
	inName := len(a.parts) > 1 && (strings.IndexByte(s, '-') < 0 || strings.IndexByte(s, '_') >= 0)
	for _, p := range a.parts {
		t := a.word(p)
		if t.term == "" {
			continue // a single accent, or excluded by a.first
		}
		t.pos = a.pos
		if a.query {
			t.text = fold(strings.ToLower(p))
		}
		if inName && t.kind == word {
			t.kind = part
		}
		a.out = append(a.out, t)
		a.pos++
	}
	if prefix != "" {
		a.emitWhole(prefix+s, first)
	}
	if len(a.parts) < 2 || len(a.parts) > maxParts {
		return
	}
	if !numbered(s) {
		a.name = a.name[:0]
		for _, p := range a.parts {
			a.name = append(a.name, p...)
		}
		if t := a.word(string(a.name)); t.term != "" {
			a.out = append(a.out, token{term: t.term, pos: first, kind: whole})
		}
		return
	}
	// Versions and numbers keep their dots, so that 1.11 and 11.1 differ.
	a.emitWhole(s, first)
	if (s[0] == 'v' || s[0] == 'V') && len(s) > 1 && isDigit(s[1]) {
		s = s[1:]
		a.emitWhole(s, first)
	}
	if i := strings.IndexByte(s, '.'); i > 0 && isDigit(s[0]) {
		if j := strings.IndexByte(s[i+1:], '.'); j > 0 {
			a.emitWhole(s[:i+1+j], first) // 1.2 of 1.2.3
		}
	}
}

// emitWhole emits s as a whole, without stemming.
func (a *analyzer) emitWhole(s string, pos int) {
	a.buf = lower(a.buf[:0], s)
	a.out = append(a.out, token{term: cut(string(a.buf)), pos: pos, kind: whole})
}

// word returns the token of one part, from the cache if possible. The term is empty if
// a.first excludes it.
func (a *analyzer) word(s string) token {
	a.buf = lower(a.buf[:0], s)
	// Neither stemming nor folding changes a first byte that is ASCII.
	if a.first != nil && len(a.buf) > 0 && a.buf[0] < utf8.RuneSelf && !a.first[a.buf[0]] {
		return token{}
	}
	if t, ok := a.words[string(a.buf)]; ok {
		return t
	}
	w := fold(string(a.buf))
	t := token{term: cut(w)}
	if query.IsStopWord(w) {
		t.kind = stop
	} else if len(w) == 1 {
		t.kind = single
	} else if stemmable(w) {
		t.term = a.stem(w)
	}
	if len(a.words) >= maxCachedWords {
		clear(a.words)
	}
	a.words[string(a.buf)] = t
	return t
}

// stem returns the Porter2 stem of an English word
// (https://snowballstem.org/algorithms/english/stemmer.html).
func (a *analyzer) stem(w string) string {
	if a.env == nil {
		a.env = snowballstem.NewEnv("")
	}
	a.env.SetCurrent(w)
	english.Stem(a.env)
	return strings.Clone(a.env.Current())
}

// splitParts splits a compound at joiners and at the case changes of camelCase. It removes
// a possessive "'s" and other apostrophes.
func splitParts(parts []string, s string) []string {
	if isSimple(s) {
		return append(parts, s)
	}
	start := 0
	flush := func(end int) {
		if p := strings.Trim(s[start:end], "_-.:'’"); p != "" {
			parts = append(parts, dropApostrophes(p))
		}
		start = end
	}
	var prev, prev2 rune
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '_' || r == '-' || r == '.' || r == ':':
			flush(i)
			start = i + size
		case unicode.IsUpper(r) && (unicode.IsLower(prev) || unicode.IsDigit(prev) && unicode.IsLower(prev2)):
			flush(i) // read|Context, utf8|Reader
		case unicode.IsLower(r) && unicode.IsUpper(prev) && unicode.IsUpper(prev2) && !pluralEnd(s[i:]):
			flush(i - utf8.RuneLen(prev)) // HTTP|Server, but APIs
		}
		prev2, prev = prev, r
		i += size
	}
	flush(len(s))
	return parts
}

// isSimple reports whether s is a single part, like most words: lower-case letters and
// digits, or a capital letter followed by them.
func isSimple(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || isDigit(c) || i == 0 && 'A' <= c && c <= 'Z') {
			return false
		}
	}
	return true
}

// pluralEnd reports whether s, which follows an acronym, is only a plural s.
func pluralEnd(s string) bool {
	if s[0] != 's' {
		return false
	}
	r, _ := utf8.DecodeRuneInString(s[1:])
	return !unicode.IsLetter(r)
}

func dropApostrophes(s string) string {
	if !strings.ContainsAny(s, "'’") {
		return s
	}
	s = strings.ReplaceAll(s, "’", "'")
	if base, ok := strings.CutSuffix(strings.ToLower(s), "'s"); ok {
		s = s[:len(base)]
	}
	return strings.ReplaceAll(s, "'", "")
}

// compoundEnd returns the end of the compound that begins at s[i]. A compound consists of
// word runes, and joiners with a word rune on both sides.
func compoundEnd(s string, i int) int {
	begin := i
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if isWord(r) && !isCJK(r) {
			i += size
			continue
		}
		n := 0 // bytes of a joiner
		switch {
		case r == '_':
			for i+n < len(s) && s[i+n] == '_' {
				n++
			}
		case r == '-' || r == '.' || r == '\'' || r == '’':
			n = size
		case r == ':' && i+1 < len(s) && s[i+1] == ':':
			n = 2
		case r == '+' && i == begin+1 && i+1 < len(s) && s[i+1] == '+':
			i += 2 // C++ and C++20
			continue
		case r == '#' && i == begin+1:
			if next, _ := utf8.DecodeRuneInString(s[i+1:]); !isWord(next) {
				return i + 1 // C#
			}
		}
		if n == 0 {
			return i
		}
		next, _ := utf8.DecodeRuneInString(s[i+n:])
		if !isWord(next) || isCJK(next) {
			return i
		}
		i += n
	}
	return i
}

// flagPrefix returns the "-", "--" or "." before the word at s[i:], if a space or an
// opening mark precedes it, or "".
func flagPrefix(s string, i int) string {
	j := i
	for j > 0 && i-j < 2 && s[j-1] == '-' {
		j--
	}
	if j == i && i > 0 && s[i-1] == '.' {
		j--
	}
	if j == i || isDigit(s[i]) {
		return ""
	}
	if j > 0 && !strings.ContainsRune(" \t\n\r([{|<`\"'=,/*", rune(s[j-1])) {
		return ""
	}
	return s[j:i]
}

// numbered reports whether a dot of s is next to a digit.
func numbered(s string) bool {
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '.' && (isDigit(s[i-1]) || isDigit(s[i+1])) {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWord reports whether r is a word rune: a letter, digit or combining mark.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}

// isCJK reports whether r belongs to a script that is indexed by bigrams.
func isCJK(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		r == 'ー' // the long vowel mark of katakana has no script in Unicode
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lower(dst []byte, s string) []byte {
	for _, r := range s {
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
	}
	return dst
}

// unfolded replaces letters that Unicode does not decompose into a base and a mark.
var unfolded = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i")

// fold removes accents, so that naïve and naive are the same term.
func fold(s string) string {
	if ascii(s) {
		return s
	}
	s = unfolded.Replace(s)
	var b strings.Builder
	for _, r := range norm.NFD.String(s) {
		if r < 0x300 || r > 0x36f { // combining diacritical marks
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// stemmable reports whether w has at least three letters, all of them English.
func stemmable(w string) bool {
	for i := 0; i < len(w); i++ {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return len(w) > 2 && len(w) <= maxTermBytes
}

// cut shortens a term to at most maxTermBytes at a rune border.
func cut(s string) string {
	if len(s) <= maxTermBytes {
		return s
	}
	n := maxTermBytes
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
