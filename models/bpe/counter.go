// Package bpe counts the tokens of large language models, for the budgets of answers. The
// size of chunks is counted in word pieces of the encoder instead.
//
// The encoding is cl100k_base. tiktoken-go merges tokens and takes its vocabulary from
// this package, so nothing is downloaded. For words of up to 1 kB the counts are the same
// as tiktoken-go's, but two parts of it are replaced. It finds words with a backtracking
// regular expression, which makes a first search of a section five times slower; split.go
// scans instead. Merging takes quadratic time, so longer words, such as the indentation of
// deeply nested lists, are divided.
package bpe

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/pkoukk/tiktoken-go"

	"cairn/models"
)

// vocabulary holds the tokens of cl100k_base by rank, each preceded by its length in one
// byte. A test compares it with the file that OpenAI publishes.
//
//go:embed cl100k_base.bin
var vocabulary string

const (
	vocabularySize = 100_256
	longest        = 1024 // bytes of a word that are merged at a time
	maxMerged      = 8192 // words in the cache of counts
)

// Counter counts cl100k_base tokens. It is safe for concurrent use; the zero
// value is ready. The first call loads the vocabulary.
type Counter struct {
	once   sync.Once
	ranks  map[string]int
	merge  *tiktoken.Tiktoken
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
		if _, ok := c.ranks[part]; ok {
			n++
			continue
		}
		tokens, ok := c.merged.Get(part)
		if !ok {
			tokens = len(c.merge.EncodeOrdinary(part))
			c.merged.Add(strings.Clone(part), tokens)
		}
		n += tokens
	}
	return n
}

func (c *Counter) load() {
	c.ranks = make(map[string]int, vocabularySize)
	// The map is filled below, so that tiktoken does not build tables for decoding.
	core, _ := tiktoken.NewCoreBPE(c.ranks, nil, `(?s).+`) // never fails: the expression is valid
	c.merge = tiktoken.NewTiktoken(core, nil, nil)
	c.merged, _ = lru.New[string, int](maxMerged) // never fails: the size is positive
	for rest := vocabulary; rest != ""; {
		end := 1 + int(rest[0])
		c.ranks[rest[1:end]] = len(c.ranks)
		rest = rest[end:]
	}
}
