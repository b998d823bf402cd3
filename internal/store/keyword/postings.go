package keyword

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
)

// postings returns the live chunks of one segment that contain term.
func postings(s *scorch.SegmentSnapshot, field, term string) (segment.PostingsList, error) {
	dict, err := s.Segment().Dictionary(field)
	if err != nil {
		return nil, err
	}
	return dict.PostingsList([]byte(term), s.Deleted(), nil)
}

// bitmap returns the chunks of a list. The caller must not modify it.
func bitmap(list segment.PostingsList) *roaring.Bitmap {
	it, ok := list.Iterator(false, false, false, nil).(segment.OptimizablePostingsIterator)
	if !ok {
		return roaring.New() // unreachable: zap's iterators have this type
	}
	if d, ok := it.DocNum1Hit(); ok {
		return roaring.BitmapOf(uint32(d))
	}
	if bm := it.ActualBitmap(); bm != nil {
		return bm
	}
	return roaring.New()
}

// lengthCache caches the lengths of all chunks in the current segments, 4 bytes per chunk.
// Segments never change; deleted chunks are subtracted from the total.
type lengthCache struct {
	mu   sync.Mutex
	segs map[uint64]segmentLengths
}

type segmentLengths struct {
	words []uint32 // by chunk
	total uint64
}

// of returns the lengths of each segment's chunks, and the average over the live chunks
// (at least 1).
func (c *lengthCache) of(snap *scorch.IndexSnapshot) ([][]uint32, float64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	segs := make(map[uint64]segmentLengths)
	lengths := make([][]uint32, len(snap.Segments()))
	var total, docs uint64
	for i, s := range snap.Segments() {
		l, ok := c.segs[s.Id()]
		if !ok {
			var err error
			if l, err = readLengths(s.Segment()); err != nil {
				return nil, 0, err
			}
		}
		segs[s.Id()] = l
		lengths[i] = l.words
		total += l.total
		docs += uint64(len(l.words))
		if s.Deleted() != nil {
			for it := s.Deleted().Iterator(); it.HasNext(); {
				total -= uint64(l.words[it.Next()])
				docs--
			}
		}
	}
	c.segs = segs
	return lengths, max(1, float64(total)/float64(max(1, docs))), nil
}

func readLengths(seg segment.Segment) (segmentLengths, error) {
	l := segmentLengths{words: make([]uint32, seg.Count())}
	dict, err := seg.Dictionary(textField)
	if err != nil {
		return l, err
	}
	list, err := dict.PostingsList([]byte(lengthTerm), nil, nil)
	if err != nil {
		return l, err
	}
	for it := list.Iterator(true, false, false, nil); ; {
		p, err := it.Next()
		if err != nil || p == nil {
			return l, err
		}
		n := max(p.Frequency(), 1) - 1
		l.words[p.Number()] = uint32(n)
		l.total += n
	}
}
