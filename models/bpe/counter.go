// Package bpe counts the tokens of large language models, for the budgets of answers. The
// size of chunks is counted in word pieces of the encoder instead.
//
// The encoding is cl100k_base, whose vocabulary is embedded. For words of up to 1 kB the
// counts are those of OpenAI's tiktoken. Merging takes quadratic time, so longer words, such
// as the indentation of deeply nested lists, are divided.
package bpe

import (
	_ "embed"
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/models"
)

// vocabulary holds the tokens of cl100k_base by rank, each preceded by its length in one
// byte. A test compares it with the file that OpenAI publishes.
//
//go:embed cl100k_base.bin
var vocabulary string

const (
	tableBits = 18   // there are 100,256 tokens
	longest   = 1024 // bytes of a word that are merged at a time
	maxMerged = 8192 // words in the cache of counts
)

// Counter counts cl100k_base tokens. It is safe for concurrent use; the zero
// value is ready. The first call loads the vocabulary.
type Counter struct {
	once   sync.Once
	seed   maphash.Seed
	table  []uint32                // by hash: the place of a token in vocabulary, 0 for none
	merged *lru.Cache[string, int] // counts of words with several tokens
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
			continue
		}
		tokens, ok := c.merged.Get(part)
		if !ok {
			tokens = c.merge(part)
			c.merged.Add(strings.Clone(part), tokens)
		}
		n += tokens
	}
	return n
}

// none is the rank of a text that is no token.
const none = math.MaxUint32

// rank returns the place of a token in vocabulary, which is in the order of ranks, or none.
func (c *Counter) rank(text string) uint32 {
	for i := maphash.String(c.seed, text); ; i++ {
		at := c.table[i%(1<<tableBits)]
		if at == 0 {
			return none
		}
		if token := vocabulary[at:]; len(text) == int(vocabulary[at-1]) && strings.HasPrefix(token, text) {
			return at
		}
	}
}

// merge returns the number of tokens of a word. It merges the neighbours whose token has the
// lowest rank until no two neighbours are a token.
func (c *Counter) merge(word string) int {
	type part struct {
		start int
		rank  uint32 // of this part and the next one as one token
	}
	parts := make([]part, len(word)+1)
	pair := func(i int) uint32 { // of parts i and i+1
		if i+2 >= len(parts) {
			return none
		}
		return c.rank(word[parts[i].start:parts[i+2].start])
	}
	for i := range parts {
		parts[i].start = i
	}
	for i := range parts {
		parts[i].rank = pair(i)
	}
	for {
		least := 0
		for i := range parts {
			if parts[i].rank < parts[least].rank {
				least = i
			}
		}
		if parts[least].rank == none {
			return len(parts) - 1
		}
		parts = append(parts[:least+1], parts[least+2:]...)
		parts[least].rank = pair(least)
		if least > 0 {
			parts[least-1].rank = pair(least - 1)
		}
	}
}

func (c *Counter) load() {
	c.seed, c.table = maphash.MakeSeed(), make([]uint32, 1<<tableBits)
	merged, err := lru.New[string, int](maxMerged)
	if err != nil {
		panic(err) // unreachable: the size is positive
	}
	c.merged = merged
	for at := 1; at < len(vocabulary); {
		end := at + int(vocabulary[at-1])
		i := maphash.String(c.seed, vocabulary[at:end])
		for c.table[i%(1<<tableBits)] != 0 {
			i++
		}
		c.table[i%(1<<tableBits)] = uint32(at)
		at = end + 1
	}
}
