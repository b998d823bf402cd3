package wordpiece

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Splitter splits text into the pieces of an encoder: a Tokenizer or a Unigram.
type Splitter interface {
	VocabSize() int
	AppendIDs(dst []int32, text string, longest int) []int32
	AppendPair(dst []int32, query, text string, longest int) (ids []int32, second int)
	Count(text string) int
}

// Open returns the Splitter for the bytes of a tokenizer.json: BERT's word pieces, or the
// unigram model of XLM-RoBERTa.
func Open(tokenizerJSON []byte) (Splitter, error) {
	var f struct{ Model struct{ Type string } }
	if err := json.Unmarshal(tokenizerJSON, &f); err != nil {
		return nil, fmt.Errorf("reading tokenizer: %w", err)
	}
	if f.Model.Type != "Unigram" {
		return New(tokenizerJSON)
	}
	u, err := readUnigram(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer: %w", err)
	}
	return u, nil
}

// space begins a word in the pieces of SentencePiece.
const space = "\u2581"

// maxWindow is the most bytes of a word that are split together.
const maxWindow = 4096

// Unigram splits text into the pieces of a SentencePiece unigram model, as XLM-RoBERTa
// does: of all ways to split a word, the one whose pieces have the largest sum of scores.
// It does not recognise special tokens in text. It is immutable and safe for concurrent
// use.
type Unigram struct {
	ids                  map[string]int32
	scores               []float32
	longest              int // bytes of a piece
	unknown, first, last int32
	unknownScore         float64
	normal               func(text string) (replacement string, n int)
}

// NewUnigram returns the Unigram with these pieces, whose indexes are their ids. first and
// last are the ids around a text, unknown that of characters without a piece. normal
// returns the replacement of the first n bytes of a text; n is 0 if they stay.
func NewUnigram(pieces []string, scores []float32, first, last, unknown int32, normal func(string) (string, int)) (*Unigram, error) {
	for _, id := range []int32{first, last, unknown} {
		if id < 0 || int(id) >= len(pieces) || len(scores) != len(pieces) || len(pieces) > maxID {
			return nil, fmt.Errorf("special token %d of %d pieces and %d scores", id, len(pieces), len(scores))
		}
	}
	t := &Unigram{ids: make(map[string]int32, len(pieces)), scores: scores, first: first, last: last, unknown: unknown, normal: normal}
	lowest := math.Inf(1)
	for i, p := range pieces {
		if math.IsNaN(float64(scores[i])) || math.IsInf(float64(scores[i]), 0) {
			return nil, fmt.Errorf("piece %q has the score %v", p, scores[i])
		}
		lowest = min(lowest, float64(scores[i]))
		if int32(i) != unknown && p != "" {
			t.ids[p], t.longest = int32(i), max(t.longest, len(p))
		}
	}
	t.unknownScore = lowest - 10
	return t, nil
}

// readUnigram reads a tokenizer.json. Steps other than a table of SentencePiece and those for
// white space would give other ids, so they are errors.
func readUnigram(file []byte) (*Unigram, error) {
	type step struct {
		Type   string
		Table  string `json:"precompiled_charsmap"`
		Prefix string `json:"prepend_scheme"`
		Steps  []step `json:"normalizers"`
		More   []step `json:"pretokenizers"`
	}
	var f struct {
		Normalizer    step
		PreTokenizer  step            `json:"pre_tokenizer"`
		PostProcessor json.RawMessage `json:"post_processor"`
		Model         struct {
			Unknown *int32 `json:"unk_id"`
			Bytes   bool   `json:"byte_fallback"`
			Vocab   [][2]any
		}
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return nil, err
	}
	if f.Model.Bytes || f.Model.Unknown == nil {
		return nil, errors.New("a unigram model needs unk_id, and byte_fallback is not supported")
	}
	table, metaspace := "", false
	for _, s := range slices.Concat([]step{f.Normalizer, f.PreTokenizer}, f.Normalizer.Steps, f.PreTokenizer.More) {
		switch {
		case s.Type == "Precompiled":
			table = s.Table
		case s.Type == "Metaspace" && s.Prefix != "never":
			metaspace = true
		case !slices.Contains([]string{"", "Sequence", "Replace", "Strip", "WhitespaceSplit"}, s.Type):
			return nil, fmt.Errorf("a step %q, with the prefix %q, is not supported", s.Type, s.Prefix)
		}
	}
	if !metaspace {
		return nil, errors.New("no pre_tokenizer that replaces spaces")
	}
	normal, err := charTable(table)
	if err != nil {
		return nil, err
	}
	var post postProcessor
	if err := post.UnmarshalJSON(bytes.Replace(f.PostProcessor, []byte("RobertaProcessing"), []byte("BertProcessing"), 1)); err != nil {
		return nil, err
	}
	pieces, scores := make([]string, len(f.Model.Vocab)), make([]float32, len(f.Model.Vocab))
	first, last := int32(-1), int32(-1)
	for i, v := range f.Model.Vocab {
		text, ok1 := v[0].(string)
		score, ok2 := v[1].(float64)
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("vocab: entry %d is not a piece and its score", i)
		}
		if pieces[i], scores[i] = text, float32(score); text == post.first {
			first = int32(i)
		} else if text == post.last {
			last = int32(i)
		}
	}
	return NewUnigram(pieces, scores, first, last, *f.Model.Unknown, normal)
}

// charTable decodes a table of SentencePiece: a double-array trie of character sequences,
// whose values are offsets of their replacements.
func charTable(encoded string) (func(string) (string, int), error) {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(b) == 0 {
		return func(string) (string, int) { return "", 0 }, err
	}
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return nil, errors.New("precompiled_charsmap is truncated")
	}
	trie, texts := b[4:4+binary.LittleEndian.Uint32(b)], string(b[4+binary.LittleEndian.Uint32(b):])
	unit := func(at uint32) uint32 {
		if uint64(at)*4+4 > uint64(len(trie)) {
			return 1 << 31 // has no label
		}
		return binary.LittleEndian.Uint32(trie[at*4:])
	}
	offset := func(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }
	return func(text string) (replacement string, n int) {
		at := offset(unit(0))
		for i := range len(text) {
			at ^= uint32(text[i])
			u := unit(at)
			if u&(1<<31|0xff) != uint32(text[i]) {
				break
			}
			at ^= offset(u)
			if start := unit(at) &^ (1 << 31); u>>8&1 == 1 && int(start) < len(texts) {
				replacement, _, _ = strings.Cut(texts[start:], "\x00")
				n = i + 1
			}
		}
		return replacement, n
	}, nil
}

// VocabSize implements Splitter.
func (t *Unigram) VocabSize() int { return len(t.scores) }

// AppendIDs appends the ids of text with special tokens to dst, at most max in total.
func (t *Unigram) AppendIDs(dst []int32, text string, longest int) []int32 {
	end := len(dst) + max(1, longest-1)
	dst = append(dst, t.first)
	t.run(text, func(ids []int32) bool {
		dst = append(dst, ids[:min(len(ids), end-len(dst))]...)
		return len(dst) < end
	})
	return append(dst, t.last)
}

// AppendPair appends the ids of a query and a text, <s> query </s></s> text </s>, to dst, at
// most max in total. second is the index of the token before the text.
func (t *Unigram) AppendPair(dst []int32, query, text string, longest int) (ids []int32, second int) {
	begin := len(dst)
	dst = t.AppendIDs(dst, query, longest/2)
	second = len(dst)
	dst = t.AppendIDs(dst, text, longest-(second-begin))
	dst[second] = t.last
	return dst, second
}

// Count returns the number of pieces of text without special tokens.
func (t *Unigram) Count(text string) int {
	n := 0
	t.run(text, func(ids []int32) bool { n += len(ids); return true })
	return n
}

// run calls emit with the ids of each word of text until it returns false.
func (t *Unigram) run(text string, emit func(ids []int32) bool) {
	var s lattice
	word := make([]byte, 0, 64)
	flush := func(next string) bool {
		ok := len(word) == 0 || string(word) == space || emit(t.split(&s, word))
		word = append(word[:0], next...)
		return ok
	}
	word = append(word, space...)
	for len(text) > 0 {
		piece, n := t.normal(text)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text)
			piece = text[:n]
		}
		text = text[n:]
		for _, r := range piece {
			if unicode.IsSpace(r) {
				if !flush(space) {
					return
				}
			} else if word = utf8.AppendRune(word, r); len(word) >= maxWindow && !flush("") {
				return
			}
		}
	}
	flush("")
}

// A lattice holds the best split of every prefix of a word: its score, and the last piece
// with its start.
type lattice struct {
	score []float64
	id    []int32
	start []int
	ids   []int32
}

// split returns the ids of the pieces of a word, until the next call.
func (t *Unigram) split(s *lattice, word []byte) []int32 {
	n := len(word)
	for len(s.score) <= n {
		s.score, s.id, s.start = append(s.score, 0), append(s.id, 0), append(s.start, 0)
	}
	for i := range s.score[:n+1] {
		s.score[i] = math.Inf(-1)
	}
	s.score[0] = 0
	try := func(from, to int, id int32, score float64) {
		if score += s.score[from]; score > s.score[to] {
			s.score[to], s.id[to], s.start[to] = score, id, from
		}
	}
	for i := 0; i < n; {
		_, size := utf8.DecodeRune(word[i:])
		try(i, i+size, t.unknown, t.unknownScore)
		for end := i + size; end <= min(n, i+t.longest); {
			if id, ok := t.ids[string(word[i:end])]; ok {
				try(i, end, id, float64(t.scores[id]))
			}
			_, more := utf8.DecodeRune(word[end:])
			end += max(more, 1)
		}
		i += size
	}
	s.ids = s.ids[:0]
	for end := n; end > 0; end = s.start[end] {
		// Characters without a piece that follow each other are one unknown piece.
		if k := len(s.ids); s.id[end] != t.unknown || k == 0 || s.ids[k-1] != t.unknown {
			s.ids = append(s.ids, s.id[end])
		}
	}
	slices.Reverse(s.ids)
	return s.ids
}
