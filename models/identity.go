package models

import (
	"crypto/sha256"
	"fmt"
)

// WithID returns d with its ID set: Name, "@" and the first 12 hex digits of the
// SHA-256 over the digests of the model's weights and tokenizer and over every
// setting that a vector depends on. MinSimilarity is none of them: it may change
// without a new index.
func (d Description) WithID(weights, tokenizer [sha256.Size]byte) Description {
	h := sha256.New()
	fmt.Fprintf(h, "weights %x\ntokenizer %x\ndimension %d\nmax_tokens %d\npooling %q\nquery_prefix %q\ndocument_prefix %q\n",
		weights, tokenizer, d.Dimension, d.MaxTokens, d.Pooling, d.QueryPrefix, d.DocumentPrefix)
	d.ID = fmt.Sprintf("%s@%x", d.Name, h.Sum(nil)[:6])
	return d
}
