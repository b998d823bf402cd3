package keyword

import (
	"math"
	"testing"

	segment "github.com/blevesearch/scorch_segment_api/v2"
)

// listed is a postings list of numbers and frequencies.
type listed struct {
	segment.PostingsList
	postings [][2]uint64
}

type listIterator struct {
	segment.PostingsIterator
	rest [][2]uint64
}

type listPosting struct {
	segment.Posting
	number, freq uint64
}

func (l listed) Iterator(bool, bool, bool, segment.PostingsIterator) segment.PostingsIterator {
	return &listIterator{rest: l.postings}
}

func (it *listIterator) Next() (segment.Posting, error) {
	if len(it.rest) == 0 {
		return nil, nil
	}
	p := it.rest[0]
	it.rest = it.rest[1:]
	return listPosting{number: p[0], freq: p[1]}, nil
}

func (p listPosting) Number() uint64    { return p.number }
func (p listPosting) Frequency() uint64 { return p.freq }

// TestDecodedList scores lists with gaps of more than 65,536 chunks and large frequencies.
func TestDecodedList(t *testing.T) {
	var d decodedList // reused
	for _, l := range [][][2]uint64{
		{{0, 254}, {65535, 255}, {65536, 256}, {65537, 1}, {400000, 70000}},
		{{200000, 3}, {200001, 300}},
		{},
	} {
		if err := d.decode(listed{postings: l}); err != nil {
			t.Fatal(err)
		}
		lengths := make([]uint32, 400001)
		s := &scorer{avg: 1, scratch: &scratch{scores: make([]float32, len(lengths))}}
		s.add(1, &d, lengths, nil, false)
		if len(s.touched) != len(l) {
			t.Fatalf("%d chunks have a score, want %d", len(s.touched), len(l))
		}
		for i, p := range l {
			f := float64(p[1]) / bodyFreq
			if want := f / (f + k1*(1-b)); s.touched[i] != uint32(p[0]) || math.Abs(float64(s.scores[p[0]])-want) > 1e-6 {
				t.Errorf("posting %d: chunk %d has score %v, want chunk %d and %v", i, s.touched[i], s.scores[p[0]], p[0], want)
			}
		}
	}
}
