package bpe

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// vocabularyFile is a line a token: its bytes in base64, a space, its rank.
const vocabularyFile = "cl100k_base.tiktoken"

// noRank stands for a pair that is not in the vocabulary.
const noRank = ^uint32(0)

// ranks finds a token's rank by its bytes: open addressing with linear probing,
// at most half full. A merge is done the earlier the lower the rank of its
// result.
type ranks struct {
	slots   []slot
	shift   uint // slot index = hash >> shift
	text    []byte
	longest int // bytes of the longest token
}

// slot is one token; size 0 marks a free one.
type slot struct {
	check uint32 // low half of the hash
	start uint32 // where its bytes begin in text
	size  uint32
	rank  uint32
}

// loadRanks reads the embedded vocabulary.
func loadRanks() *ranks {
	file, err := assets.Assets.ReadFile(vocabularyFile)
	if err != nil {
		panic(err) // unreachable: go.sum pins the embedded file
	}
	r, err := parseRanks(file)
	if err != nil {
		panic(err) // unreachable: go.sum pins the embedded file
	}
	return r
}

func parseRanks(file []byte) (*ranks, error) {
	n := bytes.Count(file, []byte("\n")) + 1
	width := uint(bits.Len(uint(n)))
	r := &ranks{slots: make([]slot, 2<<width), shift: 63 - width}
	for len(file) > 0 {
		var line []byte
		line, file, _ = bytes.Cut(file, []byte("\n"))
		if len(line) == 0 {
			continue
		}
		token, number, _ := bytes.Cut(line, []byte(" "))
		start := len(r.text)
		text, err := base64.StdEncoding.AppendDecode(r.text, token)
		if err != nil || len(text) == start {
			return nil, fmt.Errorf("vocabulary line %q: the token is not base64", line)
		}
		rank, err := strconv.ParseUint(string(number), 10, 31)
		if err != nil {
			return nil, fmt.Errorf("vocabulary line %q: the rank is not a number", line)
		}
		r.text = text
		h := hashOf(text[start:])
		s := r.slot(h, text[start:])
		*s = slot{check: uint32(h), start: uint32(start), size: uint32(len(text) - start), rank: uint32(rank)}
		r.longest = max(r.longest, len(text)-start)
	}
	r.text = bytes.Clone(r.text)
	return r, nil
}

// hashOf is Fowler-Noll-Vo's hash with a 64-bit odd multiplier, the golden
// ratio's, whose high bits are well mixed.
func hashOf[T string | []byte](token T) uint64 {
	h := uint64(0x243F6A8885A308D3)
	for i := range len(token) {
		h = (h ^ uint64(token[i])) * 0x9E3779B97F4A7C15
	}
	return h
}

// slot returns the entry of token, or the free one where it belongs. The table
// is never full, so the probe ends.
func (r *ranks) slot(h uint64, token []byte) *slot {
	mask := uint64(len(r.slots) - 1)
	for i := h >> r.shift; ; i++ {
		s := &r.slots[i&mask]
		if s.size == 0 || s.check == uint32(h) && string(r.text[s.start:s.start+s.size]) == string(token) {
			return s
		}
	}
}

// of returns the rank of token, or noRank.
func (r *ranks) of(token string) uint32 {
	if len(token) > r.longest {
		return noRank
	}
	h := hashOf(token)
	mask := uint64(len(r.slots) - 1)
	for i := h >> r.shift; ; i++ {
		s := &r.slots[i&mask]
		if s.size == 0 {
			return noRank
		}
		if s.check == uint32(h) && int(s.size) == len(token) && string(r.text[s.start:s.start+s.size]) == token {
			return s.rank
		}
	}
}
