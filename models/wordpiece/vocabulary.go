package wordpiece

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
)

// pieces is a vocabulary in the order of the file.
type pieces struct {
	text  []byte   // the concatenated tokens
	ends  []uint32 // ends[i] is the end of token i in text
	ids   []int32
	maxID int32
}

// UnmarshalJSON decodes {"token": id, ...}. Decoding into a map would take five times as
// long, at every start of the process.
func (p *pieces) UnmarshalJSON(b []byte) error {
	p.text = make([]byte, 0, len(b)/2)
	if len(b) == 0 || b[0] != '{' {
		return errors.New("vocab is not an object")
	}
	// Package json checks the syntax before it calls this method, so only the types of
	// the values can be wrong.
	for i := 1; ; {
		open := bytes.IndexByte(b[i:], '"')
		if open < 0 {
			return nil
		}
		begin := i + open
		end, escaped := begin+1, false
		for b[end] != '"' {
			if b[end] == '\\' {
				escaped = true
				end++
			}
			end++
		}
		token := b[begin+1 : end]
		if escaped {
			var s string
			if err := json.Unmarshal(b[begin:end+1], &s); err != nil {
				return fmt.Errorf("vocab: %w", err)
			}
			token = []byte(s)
		}
		i = end + 1
		value := b[i:]
		if comma := bytes.IndexAny(value, ",}"); comma >= 0 {
			value = value[:comma]
		}
		i += len(value) + 1
		number := string(bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(value), []byte(":"))))
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil || id > maxID {
			return fmt.Errorf("vocab: token %q has id %s, want an integer of 0 to %d", token, number, maxID)
		}
		p.text = append(p.text, token...)
		p.ends = append(p.ends, uint32(len(p.text)))
		p.ids = append(p.ids, int32(id))
		p.maxID = max(p.maxID, int32(id))
	}
}

// vocabulary is a hash table of tokens with open addressing and linear probing, at most
// half full. Tokens with the continuation prefix have a second entry without it, under
// another seed.
type vocabulary struct {
	slots   []slot
	shift   uint // slot index = hash >> shift
	text    []byte
	longest int // bytes of the longest entry
}

// slot is one entry; size 0 marks a free slot.
type slot struct {
	check uint32 // low half of the hash
	start uint32 // offset of its bytes in text
	size  uint32
	id    int32
}

// The hash is that of Fowler, Noll and Vo (xor, then multiply) with the golden ratio as
// 64-bit odd multiplier, which mixes the high bits well. The seeds distinguish the
// beginning of a word from a continuation.
const (
	seedWhole     uint64 = 0x243F6A8885A308D3
	seedContinued uint64 = 0x13198A2E03707344
)

func mix(h uint64, b byte) uint64 { return (h ^ uint64(b)) * 0x9E3779B97F4A7C15 }

func hashOf(seed uint64, token []byte) uint64 {
	for _, b := range token {
		seed = mix(seed, b)
	}
	return seed
}

func newVocabulary(p pieces, prefix string) vocabulary {
	n := 2 * len(p.ids) // entries if all tokens have the prefix
	width := uint(bits.Len(uint(n)))
	v := vocabulary{slots: make([]slot, 1<<width), shift: 64 - width, text: p.text}
	var start uint32
	for i, end := range p.ends {
		v.add(seedWhole, start, end, p.ids[i])
		if token := p.text[start:end]; bytes.HasPrefix(token, []byte(prefix)) {
			v.add(seedContinued, start+uint32(len(prefix)), end, p.ids[i])
		}
		start = end
	}
	return v
}

// add adds text[start:end]. It replaces an equal token, like a repeated key in a JSON
// object.
func (v *vocabulary) add(seed uint64, start, end uint32, id int32) {
	if start >= end {
		return // an empty piece never matches
	}
	token := v.text[start:end]
	h := hashOf(seed, token)
	s := v.slot(h, token)
	*s = slot{check: uint32(h), start: start, size: end - start, id: id}
	v.longest = max(v.longest, len(token))
}

// slot returns the entry of token, or the free slot for it. The table is never
// full, so the probe ends.
func (v *vocabulary) slot(h uint64, token []byte) *slot {
	mask := uint64(len(v.slots) - 1)
	for i := h >> v.shift; ; i++ {
		s := &v.slots[i&mask]
		if s.size == 0 {
			return s
		}
		if s.check == uint32(h) && int(s.size) == len(token) &&
			string(v.text[s.start:s.start+s.size]) == string(token) {
			return s
		}
	}
}

func (v *vocabulary) find(h uint64, token []byte) (id int32, ok bool) {
	s := v.slot(h, token)
	return s.id, s.size > 0
}

// whole looks up a token that begins a word.
func (v *vocabulary) whole(token string) (id int32, ok bool) {
	return v.find(hashOf(seedWhole, []byte(token)), []byte(token))
}

// longestPrefix returns the id and the size in bytes of the longest entry under seed that
// is a prefix of word; the size is 0 if there is none. It tries every length, shortest
// first, because the hash can only be extended.
func (v *vocabulary) longestPrefix(seed uint64, word []byte) (id int32, size int) {
	h := seed
	for i, b := range word[:min(len(word), v.longest)] {
		h = mix(h, b)
		if found, ok := v.find(h, word[:i+1]); ok {
			id, size = found, i+1
		}
	}
	return id, size
}
