// Package bpe counts the tokens of large language models, for the budgets of answers. The
// size of chunks is counted in word pieces of the encoder instead.
//
// The encoding is cl100k_base. For words of up to 1 kB the counts are those of tiktoken-go,
// whose map of the vocabulary takes 3 MB more than the table of this package. Merging takes
// quadratic time, so longer words, such as the indentation of deeply nested lists, are
// divided.
package bpe

import (
	_ "embed"
	"hash/maphash"
	"math"
	"sync"
	"unicode/utf8"

	"cairn/models"
)

// vocabulary holds the tokens of cl100k_base by rank, each preceded by its length in one
// byte. A test compares it with the file that OpenAI publishes.
//
//go:embed cl100k_base.bin
var vocabulary string

const (
	tableSize = 1 << 17 // for 100,256 tokens
	longest   = 1024    // bytes of a word that are merged at a time
)

// Counter counts cl100k_base tokens. It is safe for concurrent use; the zero
// value is ready. The first call loads the vocabulary.
type Counter struct {
	once  sync.Once
	seed  maphash.Seed
	table []uint32 // offsets of tokens in vocabulary by hash; 0 is empty
}

var _ models.BudgetCounter = (*Counter)(nil)

// CountTokens returns the number of tokens of text. Markers of special tokens, such as
// <|endoftext|>, count as plain text. Each byte that is not valid UTF-8 counts as U+FFFD.
// The count of a word longer than 1 kB may be too high, by one token per kilobyte.
func (c *Counter) CountTokens(text string) int {
	if text == "" {
		return 0
	}
	c.once.Do(c.load)
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	n := 0
	for text != "" {
		size := nextPiece(text)
		n += c.count(text[:size])
		text = text[size:]
	}
	return n
}

// count returns the number of tokens of a word.
func (c *Counter) count(word string) int {
	n := 0
	for word != "" {
		size := len(word)
		if size > longest {
			for size = longest; !utf8.RuneStart(word[size]); size-- {
			}
		}
		part := word[:size]
		word = word[size:]
		if c.rank(part) != none {
			n++
		} else {
			n += c.merge(part)
		}
	}
	return n
}

// none is the rank of a text that is no token.
const none = math.MaxUint32

// slot returns the slot of token in the table, or the empty one where it belongs.
func (c *Counter) slot(token string) *uint32 {
	for i := maphash.String(c.seed, token); ; i++ {
		at := &c.table[i%tableSize]
		if *at == 0 || int(vocabulary[*at-1]) == len(token) && vocabulary[*at:][:len(token)] == token {
			return at
		}
	}
}

// rank returns the offset of token in the vocabulary, which has the order of ranks.
func (c *Counter) rank(token string) uint32 { return *c.slot(token) - 1 }

// part is a piece of a word that is being merged.
type part struct {
	start int
	rank  uint32 // of the token that it forms with the next part
}

// merge returns the number of tokens of a word: while two neighbours form a token, it merges
// those that form the one of the lowest rank.
func (c *Counter) merge(word string) int {
	var short [64]part
	parts := short[:0]
	for i := range len(word) + 1 {
		parts = append(parts, part{i, none})
		if i+2 <= len(word) {
			parts[i].rank = c.rank(word[i : i+2])
		}
	}
	for {
		first := 0
		for i, p := range parts {
			if p.rank < parts[first].rank {
				first = i
			}
		}
		if parts[first].rank == none {
			return len(parts) - 1
		}
		parts = append(parts[:first+1], parts[first+2:]...)
		for i := max(0, first-1); i <= first; i++ {
			parts[i].rank = none
			if i+2 < len(parts) {
				parts[i].rank = c.rank(word[parts[i].start:parts[i+2].start])
			}
		}
	}
}

func (c *Counter) load() {
	c.seed, c.table = maphash.MakeSeed(), make([]uint32, tableSize)
	for at := 1; at < len(vocabulary); {
		end := at + int(vocabulary[at-1])
		*c.slot(vocabulary[at:end]) = uint32(at)
		at = end + 1
	}
}
