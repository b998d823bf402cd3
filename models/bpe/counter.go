// Package bpe counts tokens as large language models do, for the budgets of
// answers. It never measures chunks: those are counted in word pieces of the
// encoder.
//
// The encoding is cl100k_base, the smaller of the two current ones in
// github.com/pkoukk/tiktoken-go-loader, which embeds the vocabulary; nothing is
// ever fetched. On English documents o200k_base counts 0.7 % less.
//
// The counts are those of github.com/pkoukk/tiktoken-go, token for token, which
// the tests compare with. It does not run here itself: on the development
// machine it counts 3.3 MB/s, since its pattern runs on a backtracking engine,
// takes quadratic time on long words, 116 ms to load and 12 MB. This package
// scans by hand, merges in O(n log n), and holds 5 MB.
package bpe

import (
	"sync"
	"unicode/utf8"

	"cairn/models"
)

// Counter counts cl100k_base tokens. It is safe for concurrent use; the zero
// value is ready. The vocabulary is loaded by the first call.
type Counter struct {
	once  sync.Once
	ranks *ranks
}

var _ models.BudgetCounter = (*Counter)(nil)

// CountTokens returns the number of tokens of text. Markers of special tokens,
// such as <|endoftext|>, are counted as plain text. Each invalid byte of UTF-8
// counts as U+FFFD. The time is O(n log n) in the longest word, the memory
// beyond the vocabulary some 30 bytes for each byte of a word longer than 64.
func (c *Counter) CountTokens(text string) int {
	if text == "" {
		return 0
	}
	c.once.Do(func() { c.ranks = loadRanks() })
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	n := 0
	for text != "" {
		size := nextPiece(text)
		n += c.ranks.count(text[:size])
		text = text[size:]
	}
	return n
}
