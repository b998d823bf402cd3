package keyword

import (
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
)

// placed is a word with its position in a chunk.
type placed struct {
	term string
	pos  int
}

// The words of a chunk are stored as a sequence of hashes, with which a phrase is found. Some
// 12 bits a word take a quarter of the space of scorch's positions in postings lists.
//
// The sequence begins with the number of bits of a hash and a seed, a byte each. The words
// follow without gaps, low bits first. The lower distanceBits of a word are its distance from
// the word before, and the others its hash. A distance of 0 means that the others are a
// distance that is added to the next one. The seed is one by which the hashes of all terms of
// the chunk differ, so that a phrase whose words are among the terms is found where it is and
// nowhere else.
const (
	distanceBits     = 2
	minBits, maxBits = 7, 28 // of a hash; a distance of positionGap takes one word
	seeds            = 64
)

// hasher computes hashes of a sequence.
type hasher struct{ bits, seed byte }

// sumOf returns FNV-1a of a term.
func sumOf(term string) uint64 {
	sum := uint64(14695981039346656037)
	for i := range len(term) {
		sum = (sum ^ uint64(term[i])) * 1099511628211
	}
	return sum ^ sum>>32
}

// of returns the hash of a term with that sum.
func (h hasher) of(sum uint64) uint32 {
	return uint32(sum * (0x9e3779b97f4a7c15 * (2*uint64(h.seed) + 1)) >> (64 - h.bits))
}

// hasher returns a hasher whose hashes of all terms differ. It begins with the bits for which
// it usually finds a seed. It gives up after four bits more, as for terms of equal sums.
func (t *entryTerms) hasher() (h hasher) {
	sums := make([]uint64, 0, len(t.freqs))
	for term := range t.freqs {
		sums = append(sums, sumOf(term))
	}
	first := byte(min(max(minBits, bits.Len(uint(len(sums)*len(sums)/8))), maxBits-4))
	for h.bits = first; h.bits < first+4; h.bits++ {
		seen := make([]uint64, 1<<(h.bits-6))
	nextSeed:
		for h.seed = range byte(seeds) {
			clear(seen)
			for _, sum := range sums {
				hash := h.of(sum)
				if seen[hash>>6]>>(hash&63)&1 == 1 {
					continue nextSeed
				}
				seen[hash>>6] |= 1 << (hash & 63)
			}
			return h
		}
	}
	return h
}

// sequence returns the words as they are stored.
func (t *entryTerms) sequence() []byte {
	h := t.hasher()
	b := append(make([]byte, 0, 8+(int(h.bits)+distanceBits)*len(t.words)/8), h.bits, h.seed)
	var rest uint64 // bits that are not in b yet
	n := 0          // and their number
	add := func(distance int, hash uint32) {
		rest |= (uint64(hash)<<distanceBits | uint64(distance)) << n
		for n += int(h.bits) + distanceBits; n >= 8; n -= 8 {
			b = append(b, byte(rest))
			rest >>= 8
		}
	}
	pos := 0
	for _, w := range t.words {
		for most := 1<<h.bits - 1; w.pos-pos >= 1<<distanceBits; {
			far := min(w.pos-pos-1, most)
			add(0, uint32(far))
			pos += far
		}
		add(w.pos-pos, h.of(sumOf(w.term)))
		pos = w.pos
	}
	return append(b, byte(rest)) // zeros, which are too few for a word, fill the last byte
}

// in reports whether words, a stored sequence, has the phrase: its words at the same
// distances. All of them must be terms of the chunk.
func (p phrase) in(words []byte) bool {
	if len(words) < 2 || words[0] < minBits || words[0] > maxBits {
		return false
	}
	h := hasher{words[0], words[1]}
	hashes := make([]uint32, len(p))
	for i, w := range p {
		hashes[i] = h.of(sumOf(w.term))
	}
	type start struct{ pos, found int } // of a possible phrase, and how many of its words were found
	var starts []start
	size := int(h.bits) + distanceBits
	var unread uint64
	pos, n := 0, 0
	for _, c := range words[2:] {
		unread |= uint64(c) << n
		if n += 8; n < size {
			continue
		}
		distance, hash := int(unread&(1<<distanceBits-1)), uint32(unread>>distanceBits&(1<<h.bits-1))
		unread >>= size
		n -= size
		if distance == 0 {
			pos += int(hash)
			continue
		}
		pos += distance
		for i := range starts {
			if s := &starts[i]; hashes[s.found] == hash && s.pos+p[s.found].pos-p[0].pos == pos {
				if s.found++; s.found == len(p) {
					return true
				}
			}
		}
		if hash == hashes[0] {
			starts = append(starts, start{pos, 1})
		}
	}
	return false
}

// anywhere reports whether a chunk with all terms of p contains the phrase. Stop words have no
// positions, so any stop word matches between two words, and a phrase of stop words matches a
// chunk that contains all of them anywhere.
func (p phrase) anywhere() bool { return len(p) == 1 || p[0].kind == stop }

// withPhrase returns the live chunks of a segment that contain the phrase: its words in
// order, at the same distances.
func withPhrase(s *scorch.SegmentSnapshot, p phrase) (*roaring.Bitmap, error) {
	var all *roaring.Bitmap
	for _, t := range p {
		list, err := postings(s, textField, t.term)
		if err != nil {
			return nil, err
		}
		all = and(all, bitmap(list))
	}
	if p.anywhere() {
		return all, nil
	}
	matches := roaring.New()
	for it := all.Iterator(); it.HasNext(); {
		chunk := it.Next()
		err := s.Segment().VisitStoredFields(uint64(chunk), func(field string, _ byte, value []byte, _ []uint64) bool {
			if field == textField && p.in(value) {
				matches.Add(chunk)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return matches, nil
}
