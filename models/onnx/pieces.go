package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/go-huggingface/tokenizers/api"
	"github.com/knights-analytics/hugot/backends"

	"cairn/models/wordpiece"
)

// piecer splits texts into tokens, as a wordpiece.Splitter does. It is safe for concurrent
// use.
type piecer interface {
	AppendIDs(dst []int32, text string, longest int) []int32
	AppendPair(dst []int32, query, text string, longest int) (ids []int32, second int)
	Count(text string) int
}

// newPiecer returns the tokenizer of a tokenizer.json: word pieces and unigrams from package
// wordpiece, any other from hugot, whose unigrams ignore the scores of pieces.
func newPiecer(file []byte, model *backends.Model) (piecer, error) {
	tok, err := wordpiece.Open(file)
	if err == nil {
		return tok, nil
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
	h.special = len(h.AppendIDs(nil, "", 1<<30))
	return h, nil
}

// hugotPieces uses a tokenizer of hugot.
type hugotPieces struct {
	tokenizer *backends.Tokenizer
	separator string
	special   int // number of special tokens of a single text
}

func (p *hugotPieces) Count(text string) int {
	return max(0, len(p.AppendIDs(nil, text, 1<<30))-p.special)
}

func (p *hugotPieces) AppendIDs(dst []int32, text string, longest int) []int32 {
	b := backends.NewBatch(1)
	backends.TokenizeInputs(b, p.tokenizer, []string{text})
	return appendCut(dst, b.Input[0].TokenIDs, longest)
}

// AppendPair returns in second the first token of another type.
func (p *hugotPieces) AppendPair(dst []int32, query, text string, longest int) (ids []int32, second int) {
	b := backends.NewBatch(1)
	backends.TokenizeInputPairs(b, p.tokenizer, [][2]string{{query, text}}, p.separator)
	ids = appendCut(dst, b.Input[0].TokenIDs, longest)
	if second = slices.IndexFunc(b.Input[0].TypeIDs, func(t uint32) bool { return t != 0 }); second < 0 {
		second = len(ids)
	}
	return ids, second
}

// appendCut appends the first longest-1 tokens and the last one, which ends the text.
func appendCut(dst []int32, tokens []uint32, longest int) []int32 {
	for i, id := range tokens {
		if i < longest-1 || i == len(tokens)-1 {
			dst = append(dst, int32(id))
		}
	}
	return dst
}
