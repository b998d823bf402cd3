package keyword

import (
	"cmp"
	"math"
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Decoding a posting takes several times as long as scoring it, and the long lists belong
// to few terms, which many queries contain. The cache therefore keeps decoded lists of at
// least minDecoded postings, at most maxDecoded postings (3 bytes each) in all. On 115,494
// chunks and queries of eight words, this reduces the median time to a quarter.
const (
	minDecoded = 512
	maxDecoded = 8 << 20
)

// decodedList is a decoded postings list, without deleted chunks.
type decodedList struct {
	docs []uint16 // the lower halves of the numbers of chunks
	// ends[i] is the number of postings of chunks below (i+1)<<16.
	ends []int
	// freqs has frequencies in units of 1/bodyFreq word. largeFreq stands for that in large,
	// by the index of the posting.
	freqs []uint8
	large map[int]uint64
}

const largeFreq = math.MaxUint8

// decode sets d to the postings of list.
func (d *decodedList) decode(list segment.PostingsList) error {
	d.docs, d.ends, d.freqs = d.docs[:0], d.ends[:0], d.freqs[:0]
	clear(d.large)
	for it := list.Iterator(true, false, false, nil); ; {
		p, err := it.Next()
		if err != nil {
			return err
		}
		if p == nil {
			d.ends = append(d.ends, len(d.docs))
			return nil
		}
		for p.Number()>>16 > uint64(len(d.ends)) {
			d.ends = append(d.ends, len(d.docs))
		}
		f := cmp.Or(p.Frequency(), bodyFreq) // see field.Analyze
		if f >= largeFreq {
			if d.large == nil {
				d.large = map[int]uint64{}
			}
			d.large[len(d.docs)] = f
		}
		d.docs = append(d.docs, uint16(p.Number()))
		d.freqs = append(d.freqs, uint8(min(f, largeFreq)))
	}
}

// freq returns the frequency of posting i in words.
func (d *decodedList) freq(i int) float32 {
	f := d.freqs[i]
	if f == largeFreq {
		return float32(d.large[i]) / bodyFreq
	}
	return float32(f) / bodyFreq
}

// decodedKey identifies a list. Segments never change, and the number of their deleted
// chunks only grows.
type decodedKey struct {
	segment, deleted uint64
	term             string
}

// decodedCache holds the most recently used lists.
type decodedCache struct {
	mu       sync.Mutex
	lists    *simplelru.LRU[decodedKey, *decodedList]
	postings int
}

func newDecodedCache() *decodedCache {
	c := new(decodedCache)
	// The cache is bounded by postings; it never has more lists than this.
	c.lists, _ = simplelru.NewLRU(maxDecoded/minDecoded+1, func(_ decodedKey, old *decodedList) { // the size is positive
		c.postings -= len(old.docs)
	})
	return c
}

// get returns the decoded list of term in s. It decodes a short list into buffer.
func (c *decodedCache) get(s *scorch.SegmentSnapshot, term string, list segment.PostingsList, buffer *decodedList) (*decodedList, error) {
	n := list.Count()
	if n < minDecoded {
		return buffer, buffer.decode(list)
	}
	key := decodedKey{segment: s.Id(), term: term}
	if s.Deleted() != nil {
		key.deleted = s.Deleted().GetCardinality()
	}
	c.mu.Lock()
	d, ok := c.lists.Get(key)
	c.mu.Unlock()
	if ok {
		return d, nil
	}

	d = &decodedList{docs: make([]uint16, 0, n), freqs: make([]uint8, 0, n)}
	if err := d.decode(list); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lists.Contains(key) {
		c.lists.Add(key, d)
		c.postings += len(d.docs)
		for c.postings > maxDecoded {
			c.lists.RemoveOldest()
		}
	}
	return d, nil
}
