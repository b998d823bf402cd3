package ngram

import (
	"encoding/binary"
	"math/bits"
)

// A list of numbers of files is encoded as the gaps between them, minus one, in the code of
// Rice: the gap divided by 2^k in unary, as zeros before a one, and its k low bits. The best
// k precedes the gaps as a byte. The bits of a byte are used from the lowest.

// appendList appends the encoding of increasing numbers.
func appendList(b []byte, list []uint32) []byte {
	var k, least int
	for try := range 25 {
		size, before := (try+1)*len(list), -1
		for _, n := range list {
			size += (int(n) - before - 1) >> try
			before = int(n)
		}
		if try > 0 && size >= least {
			break // the size has one minimum
		}
		k, least = try, size
	}
	b = append(b, byte(k))
	var word uint64
	used := 0 // bits of word
	put := func(value uint64, n int) {
		word |= value << used
		if used += n; used >= 32 {
			b = binary.LittleEndian.AppendUint32(b, uint32(word))
			word >>= 32
			used -= 32
		}
	}
	before := -1
	for _, n := range list {
		gap := uint64(int(n) - before - 1)
		before = int(n)
		for q := gap >> k; ; q -= 31 {
			if q < 31 {
				put(1<<q, int(q)+1)
				break
			}
			put(0, 31)
		}
		put(gap&(1<<k-1), k)
	}
	for ; used > 0; used -= 8 {
		b = append(b, byte(word))
		word >>= 8
	}
	return b
}

// decodeList decodes n numbers and appends them to list. ok is false if b does not hold n
// numbers below limit.
func decodeList(b []byte, n, limit int, list []uint32) (_ []uint32, ok bool) {
	if len(b) == 0 || b[0] > 24 {
		return list, n == 0
	}
	k, b := int(b[0]), b[1:]
	var word uint64
	have := 0 // bits of word
	fill := func() {
		for have <= 56 && len(b) > 0 {
			word |= uint64(b[0]) << have
			b, have = b[1:], have+8
		}
	}
	at := -1
	for range n {
		gap := 0
		for {
			if have < 32 {
				fill()
			}
			zeros := bits.TrailingZeros64(word)
			if zeros < have {
				gap += zeros
				word, have = word>>(zeros+1), have-zeros-1
				break
			}
			if gap += have; gap > limit || len(b) == 0 {
				return list, false
			}
			word, have = 0, 0
		}
		if have < k {
			fill()
		}
		if have < k {
			return list, false
		}
		at += gap<<k + int(word&(1<<k-1)) + 1
		word, have = word>>k, have-k
		if at >= limit {
			return list, false
		}
		list = append(list, uint32(at))
	}
	return list, true
}
