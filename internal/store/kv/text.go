package kv

import (
	"fmt"

	"github.com/klauspost/compress/s2"
)

// A stored text begins with a byte: plain, or compressed by S2, which halves documents and
// reads a page of them in microseconds. Larger texts than largestCompressed stay plain, since
// every search that finds one would wait for all of it.
const (
	plain             = 0
	compressed        = 1
	largestCompressed = 128 << 10
)

// PutText sets key to a text, which Text and TextLen read.
func (b *Bucket) PutText(key, text []byte) error {
	kind := byte(plain)
	if len(text) <= largestCompressed {
		kind, text = compressed, s2.EncodeBetter(nil, text)
	}
	return b.Put(key, append([]byte{kind}, text...))
}

// Text returns the text of a key that another record refers to. A missing key means that the
// file is damaged.
func (b *Bucket) Text(key []byte) []byte {
	value, n := b.text(key)
	if n < 0 {
		return value
	}
	text, err := s2.Decode(make([]byte, n), value)
	if err != nil {
		panic(damage(fmt.Sprintf("the text %.80q: %v", key, err)))
	}
	return text
}

// TextLen returns the length of a text.
func (b *Bucket) TextLen(key []byte) int {
	value, n := b.text(key)
	if n < 0 {
		return len(value)
	}
	return n
}

// text returns the stored bytes of a text, and its length if it is compressed, else -1.
func (b *Bucket) text(key []byte) (value []byte, n int) {
	value = b.Need(key)
	if len(value) > 0 && value[0] == plain {
		return value[1:], -1
	}
	if len(value) > 0 && value[0] == compressed {
		if n, err := s2.DecodedLen(value[1:]); err == nil && n <= largestCompressed {
			return value[1:], n
		}
	}
	panic(damage(fmt.Sprintf("the text %.80q", key)))
}
