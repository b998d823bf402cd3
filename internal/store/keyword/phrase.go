package keyword

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
)

// placed is a word with its position in a chunk.
type placed struct {
	term string
	pos  int
}

// The words of a chunk are stored as a sequence of hashes, with which a phrase is found. Two
// bytes a word take a third of the space of scorch's positions in postings lists.
//
// The sequence begins with the size of a word in bytes, 2 or 4, and a seed. The lower 4 bits
// of a word are its distance from the word before, and the others its hash. A distance of 0
// means that the others are a distance that is added to the next one. The seed is one by
// which the hashes of all terms of the chunk differ, so that a phrase whose words are among
// the terms is found where it is and nowhere else.
const (
	distanceBits = 4
	seeds        = 64
)

// hasher computes hashes of a sequence.
type hasher struct{ size, seed byte }

func (h hasher) bits() int { return 8*int(h.size) - distanceBits }

// of returns the hash of a term.
func (h hasher) of(term string) uint32 {
	sum := uint64(14695981039346656037) // FNV-1a
	for i := range len(term) {
		sum = (sum ^ uint64(term[i])) * 1099511628211
	}
	sum ^= sum >> 32
	return uint32(sum * (0x9e3779b97f4a7c15 * (2*uint64(h.seed) + 1)) >> (64 - h.bits()))
}

// hasher returns the first hasher whose hashes of all terms differ.
func (t *entryTerms) hasher() (h hasher) {
	seen := make(map[uint32]bool, len(t.freqs))
	for _, h.size = range []byte{2, 4} {
		for h.seed = range byte(seeds) {
			clear(seen)
			for term := range t.freqs {
				hash := h.of(term)
				if seen[hash] {
					break
				}
				seen[hash] = true
			}
			if len(seen) == len(t.freqs) {
				return h
			}
		}
	}
	return h // unreachable: a chunk has at most some thousand terms
}

// sequence returns the words as they are stored.
func (t *entryTerms) sequence() []byte {
	h := t.hasher()
	b := append(make([]byte, 0, 2+int(h.size)*(len(t.words)+4)), h.size, h.seed)
	add := func(distance int, rest uint32) {
		unit := rest<<distanceBits | uint32(distance)
		if h.size == 2 {
			b = binary.LittleEndian.AppendUint16(b, uint16(unit))
		} else {
			b = binary.LittleEndian.AppendUint32(b, unit)
		}
	}
	pos := 0
	for _, w := range t.words {
		for most := 1<<h.bits() - 1; w.pos-pos >= 1<<distanceBits; {
			far := min(w.pos-pos-1, most)
			add(0, uint32(far))
			pos += far
		}
		add(w.pos-pos, h.of(w.term))
		pos = w.pos
	}
	return b
}

// in reports whether words, a stored sequence, has the phrase: its words at the same
// distances. All of them must be terms of the chunk.
func (p phrase) in(words []byte) bool {
	if len(words) < 2 || words[0] != 2 && words[0] != 4 {
		return false
	}
	h := hasher{words[0], words[1]}
	hashes := make([]uint32, len(p))
	for i, w := range p {
		hashes[i] = h.of(w.term)
	}
	type start struct{ pos, found int } // of a possible phrase, and how many of its words were found
	var starts []start
	pos := 0
	for words = words[2:]; len(words) >= int(h.size); words = words[h.size:] {
		unit := uint32(binary.LittleEndian.Uint16(words))
		if h.size == 4 {
			unit = binary.LittleEndian.Uint32(words)
		}
		distance, rest := int(unit&(1<<distanceBits-1)), unit>>distanceBits
		if distance == 0 {
			pos += int(rest)
			continue
		}
		pos += distance
		for i := range starts {
			if s := &starts[i]; hashes[s.found] == rest && s.pos+p[s.found].pos-p[0].pos == pos {
				if s.found++; s.found == len(p) {
					return true
				}
			}
		}
		if rest == hashes[0] {
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
