package keyword

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
)

// withPhrase returns the live chunks of a segment that contain the phrase: its words in
// order, at the same distances. Stop words have no positions, so any stop word matches
// between two words, and a phrase of stop words only matches a chunk that contains all of
// them anywhere.
func withPhrase(s *scorch.SegmentSnapshot, p phrase) (*roaring.Bitmap, error) {
	var all *roaring.Bitmap
	lists := make([]segment.PostingsList, len(p))
	for i, t := range p {
		list, err := postings(s, textField, t.term)
		if err != nil {
			return nil, err
		}
		lists[i] = list
		if all == nil {
			all = bitmap(list)
		} else {
			all = roaring.And(all, bitmap(list))
		}
	}
	if len(p) == 1 || all.IsEmpty() || p[0].kind == stop {
		return all, nil
	}

	iters := make([]segment.PostingsIterator, len(p))
	for i, list := range lists {
		iters[i] = list.Iterator(true, true, true, nil)
		restrict(iters[i], all)
	}
	matches := roaring.New()
	for n := all.GetCardinality(); n > 0; n-- {
		var doc uint64
		var starts []uint64 // possible positions of the phrase
		for i, it := range iters {
			posting, err := it.Next()
			if err != nil {
				return nil, err
			}
			if posting == nil {
				return matches, nil // unreachable: every list contains the chunks of all
			}
			doc = posting.Number()
			offset := uint64(p[i].pos - p[0].pos)
			if i == 0 {
				for _, l := range posting.Locations() {
					starts = append(starts, l.Pos())
				}
				continue
			}
			starts = slices.DeleteFunc(starts, func(start uint64) bool {
				return !slices.ContainsFunc(posting.Locations(), func(l segment.Location) bool {
					return l.Pos() == start+offset
				})
			})
		}
		if len(starts) > 0 {
			matches.Add(uint32(doc))
		}
	}
	return matches, nil
}
