package indexer

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"math/bits"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// The bounds of match.
const (
	preferredFiles = 256       // most files in the result
	preferredBytes = 4 << 20   // most bytes of them
	matchFile      = 1 << 20   // most bytes of a file to read
	matchRead      = 256 << 20 // most bytes to read in all

	// bestFiles is the size of the first group, which is indexed first, for searches
	// that do not wait for the other files.
	bestFiles = 32
)

// match returns the files whose words match terms best. Like a chunk in a search, a part
// of about 150 words scores by the rarity of its terms. The score of a file is that of
// its best part plus a quarter of the score of all its terms. The best files form the
// first group.
func (x *Indexer) match(ctx context.Context, terms []string, paths []string) (groups []map[string]bool, err error) {
	m := newMatcher(terms)
	found := make([]matched, len(paths))
	var next, read atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			var lowered []byte
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(paths) || read.Load() > matchRead {
					return nil
				}
				data, _, err := x.stores.Files.ReadFile(paths[i], matchFile)
				if err != nil {
					data = nil // too large or unreadable: match the name only
				}
				read.Add(int64(len(data)))
				found[i], lowered = m.match(paths[i], data, lowered)
			}
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	size := 0
	for n, i := range m.best(found) {
		if size += found[i].size; n > 0 && size > preferredBytes {
			break
		}
		if n == 0 || n == bestFiles {
			groups = append(groups, map[string]bool{})
		}
		groups[len(groups)-1][paths[i]] = true
	}
	return groups, nil
}

// matcher looks for its terms in files.
type matcher [][]byte

func newMatcher(terms []string) (m matcher) {
	for _, t := range terms {
		// The stemmer changes a final y to i.
		if len(t) > 3 {
			t = strings.TrimSuffix(t, "i")
		}
		m = append(m, []byte(t))
	}
	return m
}

// matched is the set of terms in a file, as bits.
type matched struct {
	size  int
	all   uint32
	parts []uint32 // distinct sets of the parts of the file
}

// partSize is half the size in bytes of a part of a file; parts overlap by half.
const partSize = 512

// match finds the terms with which words of a file begin, including the words of names in
// camel case. The terms in the name of the file and in its first bytes, where the title
// is, count for every part. match returns the buffer lowered for the next call.
func (m matcher) match(name string, data, lowered []byte) (matched, []byte) {
	f := matched{size: len(data)}
	lowered = lowerASCII(lowered[:0], data)
	title := lowerASCII(nil, []byte(path.Base(name)))
	halves := make([]uint32, len(data)/partSize+1)
	var everywhere uint32
	for t, term := range m {
		bit := uint32(1) << t
		if bytes.Contains(title, term) {
			everywhere |= bit
		}
		for at := 0; ; {
			n := bytes.Index(lowered[at:], term)
			if n < 0 {
				break
			}
			at += n
			if at == 0 || !isWordByte(data[at-1]) || isUpper(data[at]) && !isUpper(data[at-1]) {
				halves[at/partSize] |= bit
				at = (at/partSize+1)*partSize - 1 // skip to the next half
			}
			at = min(at+1, len(lowered))
		}
	}
	everywhere |= halves[0]
	for i, h := range halves {
		part := everywhere | h
		if i > 0 {
			part |= halves[i-1]
		}
		f.all |= part
		if !slices.Contains(f.parts, part) {
			f.parts = append(f.parts, part)
		}
	}
	return f, lowered
}

// best returns the indices of the files with the highest scores, best first.
func (m matcher) best(found []matched) []int {
	weights := make([]float64, len(m))
	for t := range m {
		n := 0
		for _, f := range found {
			n += int(f.all >> t & 1)
		}
		weights[t] = math.Log1p(float64(len(found)) / float64(n+1))
	}
	sum := func(terms uint32) (s float64) {
		for ; terms != 0; terms &= terms - 1 {
			s += weights[bits.TrailingZeros32(terms)]
		}
		return s
	}
	scores := make([]float64, len(found))
	var order []int
	for i, f := range found {
		if f.all == 0 {
			continue
		}
		for _, part := range f.parts {
			scores[i] = max(scores[i], sum(part))
		}
		scores[i] += sum(f.all) / 4
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order[:min(len(order), preferredFiles)]
}

// lowerASCII appends s to dst with ASCII letters in lower case.
func lowerASCII(dst, s []byte) []byte {
	dst = append(dst, s...)
	for i, c := range dst {
		if isUpper(c) {
			dst[i] = c + 'a' - 'A'
		}
	}
	return dst
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isWordByte(c byte) bool {
	return isUpper(c) || 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}
