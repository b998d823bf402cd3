package keyword

import (
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Decoding a posting costs several times what scoring it does, and the long
// lists are of few terms, which queries share. Lists of at least minDecoded
// postings are therefore kept decoded: at most maxDecoded postings, 6 bytes each.
// On 115,494 chunks and queries of eight words this divides the median by four.
const (
	minDecoded = 512
	maxDecoded = 4 << 20
)

// decodedList is a postings list in the open, without deleted chunks.
type decodedList struct {
	docs  []uint32
	freqs []halves
}

// halves is a frequency in units of 1/bodyFreq word; 65,535 stands for more.
type halves uint16

// decodedKey names a list. Segments never change, and what is deleted in one only grows.
type decodedKey struct {
	segment, deleted uint64
	term             string
}

// decodedCache holds the lists used last. The zero value is ready.
type decodedCache struct {
	mu       sync.Mutex
	lists    *simplelru.LRU[decodedKey, *decodedList]
	postings int
}

// get returns the list of term in s, decoding it if need be.
func (c *decodedCache) get(s *scorch.SegmentSnapshot, term string, list segment.PostingsList) (*decodedList, error) {
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

	n := list.Count()
	d := &decodedList{docs: make([]uint32, 0, n), freqs: make([]halves, 0, n)}
	for it := list.Iterator(true, true, false, nil); ; {
		p, err := it.Next()
		if err != nil {
			return nil, err
		}
		if p == nil {
			break
		}
		d.docs = append(d.docs, uint32(p.Number()))
		d.freqs = append(d.freqs, halves(min(p.Frequency(), 1<<16-1)))
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		// The bound is on postings; no cache holds more lists than this.
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
