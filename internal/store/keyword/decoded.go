package keyword

import (
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Decoding a posting takes several times as long as scoring it, and the long lists belong
// to few terms, which many queries contain. The cache therefore keeps decoded lists of at
// least minDecoded postings, at most maxDecoded postings (6 bytes each) in all. On 115,494
// chunks and queries of eight words, this reduces the median time to a quarter.
const (
	minDecoded = 512
	maxDecoded = 4 << 20
)

// decodedList is a decoded postings list, without deleted chunks.
type decodedList struct {
	docs  []uint32
	freqs []halves
}

// decode sets d to the postings of list.
func (d *decodedList) decode(list segment.PostingsList) error {
	d.docs, d.freqs = d.docs[:0], d.freqs[:0]
	for it := list.Iterator(true, true, false, nil); ; {
		p, err := it.Next()
		if err != nil || p == nil {
			return err
		}
		d.docs = append(d.docs, uint32(p.Number()))
		d.freqs = append(d.freqs, halves(min(p.Frequency(), 1<<16-1)))
	}
}

// halves is a frequency in units of 1/bodyFreq word, at most 65,535.
type halves uint16

// decodedKey identifies a list. Segments never change, and the number of their deleted
// chunks only grows.
type decodedKey struct {
	segment, deleted uint64
	term             string
}

// decodedCache holds the most recently used lists. The zero value is ready to use.
type decodedCache struct {
	mu       sync.Mutex
	lists    *simplelru.LRU[decodedKey, *decodedList]
	postings int
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
	if c.lists != nil {
		if d, ok := c.lists.Get(key); ok {
			c.mu.Unlock()
			return d, nil
		}
	}
	c.mu.Unlock()

	d := &decodedList{docs: make([]uint32, 0, n), freqs: make([]halves, 0, n)}
	if err := d.decode(list); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		// The cache is bounded by postings; it never has more lists than this.
		lists, err := simplelru.NewLRU(maxDecoded/minDecoded+1, func(_ decodedKey, old *decodedList) {
			c.postings -= len(old.docs)
		})
		if err != nil {
			return nil, err // unreachable: the size is positive
		}
		c.lists = lists
	}
	if !c.lists.Contains(key) {
		c.lists.Add(key, d)
		c.postings += len(d.docs)
		for c.postings > maxDecoded {
			c.lists.RemoveOldest()
		}
	}
	return d, nil
}
