package models

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// WithID returns d with its ID set. digest is the SHA-256, in hex, of the weights
// followed by the tokenizer's file. The ID also covers the other fields of d except
// Unrelated. All engines use this method, so that they can share an index.
func (d Description) WithID(digest string) Description {
	settings := fmt.Sprintf("%s\n%q\n%d\n%d\n%q\n%q\n%q\n%g", digest,
		d.Name, d.Dimension, d.MaxTokens, d.Pooling, d.QueryPrefix, d.DocumentPrefix, d.MinSimilarity)
	sum := sha256.Sum256([]byte(settings))
	d.ID = d.Name + "@" + hex.EncodeToString(sum[:])[:12]
	return d
}
