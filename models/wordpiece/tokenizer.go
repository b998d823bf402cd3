// Package wordpiece splits text into the word pieces of a BERT encoder, with the same ids
// as the Python library tokenizers for the same tokenizer.json. It allocates only the
// ids, because cairn counts the pieces of all text that it indexes, for the size of
// chunks, and then encodes it.
//
// It is not a general tokenizer or a decoder: it supports only the pipeline of BERT
// models (BertNormalizer, BertPreTokenizer, WordPiece, [CLS] text [SEP]).
package wordpiece

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// maxWordRunes is the maximum of max_input_chars_per_word, so that a word fits into a
// buffer on the stack. BERT's own value is 100.
const maxWordRunes = 256

// maxID is the largest id in a file. Published BERT vocabularies have fewer than 2^18
// entries.
const maxID = 1<<24 - 1

// Tokenizer splits text into word pieces. It is immutable and safe for
// concurrent use.
type Tokenizer struct {
	norm      *normalizer
	ascii     [256]byte // see normalizer.bytes
	added     []addedToken
	second    [256]bool // the second bytes of added tokens
	words     vocabulary
	cls, sep  int32
	unk       int32
	wordRunes int // longer words become one unknown piece
	size      int
}

// addedToken is a text that is recognised before the input is normalised, such
// as "[MASK]".
type addedToken struct {
	text string
	id   int32
}

// file is the part of tokenizer.json that determines the ids. Truncation and padding are
// not among them, because the caller limits the length of an input.
type file struct {
	AddedTokens []struct {
		ID         int32  `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		Normalized bool   `json:"normalized"`
	} `json:"added_tokens"`
	Normalizer struct {
		Type               string `json:"type"`
		CleanText          bool   `json:"clean_text"`
		HandleChineseChars bool   `json:"handle_chinese_chars"`
		StripAccents       *bool  `json:"strip_accents"`
		Lowercase          bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	PostProcessor postProcessor `json:"post_processor"`
	Model         struct {
		Type       string  `json:"type"`
		Unknown    string  `json:"unk_token"`
		Prefix     *string `json:"continuing_subword_prefix"`
		WordRunes  *int    `json:"max_input_chars_per_word"`
		Vocabulary pieces  `json:"vocab"`
	} `json:"model"`
}

// New returns the Tokenizer for the bytes of a tokenizer.json from Hugging Face. It does
// not keep the bytes. If the pipeline would give other ids than BERT's, the error names
// the difference.
func New(tokenizerJSON []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(tokenizerJSON, &f); err != nil {
		return nil, fmt.Errorf("reading tokenizer: %w", err)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("reading tokenizer: %w", err)
	}
	prefix, wordRunes := "##", 100
	if f.Model.Prefix != nil {
		prefix = *f.Model.Prefix
	}
	if f.Model.WordRunes != nil {
		wordRunes = *f.Model.WordRunes
	}
	if wordRunes < 1 || wordRunes > maxWordRunes {
		return nil, fmt.Errorf("reading tokenizer: max_input_chars_per_word %d, want 1 to %d", wordRunes, maxWordRunes)
	}
	norm, err := newNormalizer(f.Normalizer.Lowercase)
	if err != nil {
		return nil, err // unreachable: the table is embedded
	}
	t := &Tokenizer{
		norm:      norm,
		words:     newVocabulary(f.Model.Vocabulary, prefix),
		wordRunes: wordRunes,
		size:      int(f.Model.Vocabulary.maxID) + 1,
	}
	t.ascii = norm.bytes()
	for _, a := range f.AddedTokens {
		switch {
		case a.Content == "":
			return nil, errors.New("reading tokenizer: an added token is empty")
		case a.SingleWord || a.Normalized:
			return nil, fmt.Errorf("reading tokenizer: added token %q is single_word or normalized, which is not supported", a.Content)
		case a.ID < 0 || a.ID > maxID:
			return nil, fmt.Errorf("reading tokenizer: added token %q has id %d, want 0 to %d", a.Content, a.ID, maxID)
		}
		t.added = append(t.added, addedToken{a.Content, a.ID})
		t.ascii[a.Content[0]] = actMaybeAdded
		for b := range t.second {
			t.second[b] = t.second[b] || len(a.Content) == 1 || a.Content[1] == byte(b)
		}
		t.size = max(t.size, int(a.ID)+1)
	}
	for _, special := range []struct {
		text string
		id   *int32
	}{{f.PostProcessor.first, &t.cls}, {f.PostProcessor.last, &t.sep}, {f.Model.Unknown, &t.unk}} {
		id, ok := t.special(special.text)
		if !ok {
			return nil, fmt.Errorf("reading tokenizer: special token %q is not in the vocabulary", special.text)
		}
		*special.id = id
	}
	return t, nil
}

// special looks up a whole token, first among the added tokens.
func (t *Tokenizer) special(text string) (int32, bool) {
	for _, a := range t.added {
		if a.text == text {
			return a.id, true
		}
	}
	return t.words.whole(text)
}

// check returns an error if this package would give other ids than the file
// specifies.
func (f *file) check() error {
	n := f.Normalizer
	switch {
	case f.Model.Type != "WordPiece":
		return fmt.Errorf("model %q, want \"WordPiece\"", f.Model.Type)
	case n.Type != "BertNormalizer":
		return fmt.Errorf("normalizer %q, want \"BertNormalizer\"", n.Type)
	case f.PreTokenizer.Type != "BertPreTokenizer":
		return fmt.Errorf("pre_tokenizer %q, want \"BertPreTokenizer\"", f.PreTokenizer.Type)
	case !n.CleanText || !n.HandleChineseChars:
		return errors.New("clean_text and handle_chinese_chars must be true")
	case n.StripAccents != nil && *n.StripAccents != n.Lowercase:
		return errors.New("strip_accents must equal lowercase or be null")
	case f.Model.Vocabulary.text == nil:
		return errors.New("no vocabulary")
	}
	return nil
}

// VocabSize returns the number of rows that an embedding table needs, one more than the
// largest id.
func (t *Tokenizer) VocabSize() int { return t.size }

// AppendIDs appends the ids of text to dst, between the model's first and last special
// token ([CLS] and [SEP]). It appends at most max ids in total, where a max below 2 counts
// as 2. It skips invalid UTF-8.
func (t *Tokenizer) AppendIDs(dst []int32, text string, max int) []int32 {
	s := scan{dst: append(dst, t.cls), keep: true, room: max - 2}
	t.run(&s, text)
	return append(s.dst, t.sep)
}

// AppendPair appends the ids of a query and a text, [CLS] query [SEP] text [SEP], to dst,
// at most max in total. The query has at most half of max. second is the index of the
// text's first id.
func (t *Tokenizer) AppendPair(dst []int32, query, text string, max int) (ids []int32, second int) {
	begin := len(dst)
	dst = t.AppendIDs(dst, query, max/2)
	second = len(dst)
	s := scan{dst: dst, keep: true, room: max - (second - begin) - 1}
	t.run(&s, text)
	return append(s.dst, t.sep), second
}

// Count returns the number of word pieces of text without special tokens. White space
// separates pieces, so the count of two texts with white space between them is the sum of
// their counts.
func (t *Tokenizer) Count(text string) int {
	s := scan{room: math.MaxInt}
	t.run(&s, text)
	return math.MaxInt - s.room
}

// addedAt returns the longest added token that is a prefix of text.
func (t *Tokenizer) addedAt(text string) (best addedToken, ok bool) {
	if len(text) > 1 && !t.second[text[1]] {
		return best, false
	}
	for _, a := range t.added {
		if len(a.text) > len(best.text) && strings.HasPrefix(text, a.text) {
			best, ok = a, true
		}
	}
	return best, ok
}

// postProcessor holds the special tokens before and after a single text.
type postProcessor struct{ first, last string }

// UnmarshalJSON reads both forms in which BERT models publish "[CLS] A [SEP]":
// TemplateProcessing and BertProcessing.
func (p *postProcessor) UnmarshalJSON(b []byte) error {
	var f struct {
		Type   string `json:"type"`
		Single []struct {
			Special *struct {
				ID string `json:"id"`
			} `json:"SpecialToken"`
			Sequence *struct {
				ID string `json:"id"`
			} `json:"Sequence"`
		} `json:"single"`
		First []any `json:"cls"`
		Last  []any `json:"sep"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("post_processor: %w", err)
	}
	switch f.Type {
	case "TemplateProcessing":
		s := f.Single
		if len(s) == 3 && s[0].Special != nil && s[1].Sequence != nil && s[2].Special != nil {
			p.first, p.last = s[0].Special.ID, s[2].Special.ID
			return nil
		}
		return fmt.Errorf("post_processor: the template of one text must be a special token, the text, a special token")
	case "BertProcessing":
		if len(f.First) == 2 && len(f.Last) == 2 {
			first, ok1 := f.First[0].(string)
			last, ok2 := f.Last[0].(string)
			if ok1 && ok2 {
				p.first, p.last = first, last
				return nil
			}
		}
		return fmt.Errorf("post_processor: cls and sep must each be a token and its id")
	}
	return fmt.Errorf("post_processor %q, want \"TemplateProcessing\" or \"BertProcessing\"", f.Type)
}
