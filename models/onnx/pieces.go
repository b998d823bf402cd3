package onnx

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gomlx/go-huggingface/tokenizers/api"
	"github.com/knights-analytics/hugot/backends"

	"cairn/models/wordpiece"
)

// input is a tokenized text or pair of texts. types is 0 for tokens of the first text and
// 1 for tokens of the second.
type input struct{ ids, types []uint32 }

// piecer splits texts into tokens. It is safe for concurrent use.
type piecer interface {
	// single returns the ids of text with special tokens, at most max.
	single(text string, max int) input
	// pair returns the ids of two texts with special tokens, at most max.
	pair(query, text string, max int) input
	// count returns the number of pieces of text without special tokens.
	count(text string) int
}

// newPiecer returns the tokenizer of a tokenizer.json: word pieces and unigrams from package
// wordpiece, any other from hugot, whose unigrams ignore the scores of pieces.
func newPiecer(file []byte, model *backends.Model) (piecer, error) {
	tok, err := wordpiece.Open(file)
	if err == nil {
		_, unigram := tok.(*wordpiece.Unigram)
		return split{tok, !unigram}, nil
	}
	var f struct {
		Truncation, Padding any
		Model               struct{ Type string }
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	switch {
	case f.Model.Type == "WordPiece" || f.Model.Type == "Unigram":
		return nil, err // a variant that wordpiece does not support
	case f.Truncation != nil || f.Padding != nil:
		// hugot would also apply them to texts that are only counted.
		return nil, errors.New("tokenizer.json: set truncation and padding to null")
	case model.Tokenizer == nil:
		return nil, errors.New("no tokenizer.json")
	}
	model.Tokenizer.MaxAllowedTokens = 0
	if g := model.Tokenizer.GoTokenizer; g != nil {
		if err := g.Tokenizer.With(api.EncodeOptions{AddSpecialTokens: true}); err != nil {
			return nil, fmt.Errorf("tokenizer.json: %w", err)
		}
	}
	h := &hugotPieces{tokenizer: model.Tokenizer, separator: model.SeparatorToken}
	h.special = len(h.single("", 1<<30).ids)
	return h, nil
}

// split uses a tokenizer of package wordpiece. typed means that the second text of a pair
// has another token type, as in BERT.
type split struct {
	tok   wordpiece.Splitter
	typed bool
}

func (p split) count(text string) int { return p.tok.Count(text) }

func (p split) single(text string, max int) input {
	ids := unsigned(p.tok.AppendIDs(nil, text, max))
	return input{ids, make([]uint32, len(ids))}
}

func (p split) pair(query, text string, max int) input {
	ids, second := p.tok.AppendPair(nil, query, text, max)
	types := make([]uint32, len(ids))
	for i := second; p.typed && i < len(ids); i++ {
		types[i] = 1
	}
	return input{unsigned(ids), types}
}

func unsigned(ids []int32) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}

// hugotPieces uses a tokenizer of hugot.
type hugotPieces struct {
	tokenizer *backends.Tokenizer
	separator string
	special   int // number of special tokens of a single text
}

func (p *hugotPieces) count(text string) int {
	return max(0, len(p.single(text, 1<<30).ids)-p.special)
}

func (p *hugotPieces) single(text string, max int) input {
	b := backends.NewBatch(1)
	backends.TokenizeInputs(b, p.tokenizer, []string{text})
	return cut(b.Input[0], max)
}

func (p *hugotPieces) pair(query, text string, max int) input {
	b := backends.NewBatch(1)
	backends.TokenizeInputPairs(b, p.tokenizer, [][2]string{{query, text}}, p.separator)
	return cut(b.Input[0], max)
}

// cut keeps the first max-1 tokens and the last one, which ends the text.
func cut(t backends.TokenizedInput, max int) input {
	in := input{ids: t.TokenIDs, types: t.TypeIDs}
	if n := len(in.ids); n > max && max > 0 {
		in.ids = append(in.ids[:max-1:max-1], in.ids[n-1])
	}
	types := make([]uint32, len(in.ids))
	copy(types, in.types)
	in.types = types
	return in
}
