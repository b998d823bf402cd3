package flat

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

// A large store orders the slots of its image so that a block has vectors that are near each
// other. A search without a filter visits the blocks whose centres are nearest to the query,
// and all blocks of vectors added since; within them it is exact. A search with a filter
// that few chunks pass visits only these chunks, and misses none.

const (
	// partitionedFrom is the number of vectors from which slots are ordered.
	partitionedFrom = 256 * blockLen
	// visitedShare times the root of the number of ordered blocks is the number visited.
	visitedShare = 6
	// spreadShare is how much of the distance of a block's vectors from its centre counts
	// for their best cosine.
	spreadShare = .3
	// chosenShare is the share of chunks that a filter may select to be visited alone, as a
	// divisor.
	chosenShare = 8
	// A set of vectors is divided into fanOut parts at a time, by means of sampled vectors
	// for each part, in rounds.
	fanOut  = 64
	sampled = 64
	rounds  = 6
)

// partitions describes the ordered slots of a snapshot, which are its first.
type partitions struct {
	// The first documents of the snapshot are sorted by path. Document d has the chunks in
	// of[starts[d]:starts[d+1]].
	starts, of []uint32
	// centres has the codes of the centres of full blocks, scale their scales, and spread
	// what the best vector of a block is expected to add to its centre's cosine.
	centres       []byte
	scale, spread []float32
	image         *image // that owns starts and of
}

// unordered are the partitions of a snapshot without ordered slots.
var unordered = &partitions{starts: make([]uint32, 1)}

// docs returns the number of sorted documents.
func (p *partitions) docs() int { return len(p.starts) - 1 }

// bytesOf returns the memory of numbers.
func bytesOf[N uint32 | uint64](numbers []N) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), int(unsafe.Sizeof(N(0)))*len(numbers))
}

// numbersOf returns the numbers in memory.
func numbersOf(memory []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/4)
}

// restorePartitions sets s.partitions to those in img.
func (s *snapshot) restorePartitions(img *image) bool {
	if img.Ordered == 0 {
		return img.OrderedDocs == 0
	}
	p := &partitions{
		starts: numbersOf(img.memory[img.starts:][:4*(img.OrderedDocs+1)]),
		of:     numbersOf(img.memory[img.of:][:4*img.Ordered]),
		image:  img,
	}
	if int(img.Ordered) > s.n || p.docs() > len(s.docs) || !slices.IsSorted(p.starts) || p.starts[0] != 0 ||
		int(p.starts[p.docs()]) != len(p.of) || int(slices.Max(p.of)) >= len(p.of) {
		return false
	}
	full := len(p.of) / blockLen
	p.centres = make([]byte, full*s.stride)
	p.scale, p.spread = make([]float32, full), make([]float32, full)
	for i := range full {
		sketch := s.blocks[i].sketch.Load()
		centre := p.centres[i*s.stride:][:s.stride]
		copy(centre, sketch.centre)
		p.scale[i] = *sketch.scale
		square := 0.0
		for _, c := range centre[:s.dim] {
			square += float64(int(c)-codeZero) * float64(int(c)-codeZero)
		}
		square *= float64(p.scale[i]) * float64(p.scale[i])
		p.spread[i] = spreadShare * float32(math.Sqrt(max(0, 1-square)))
	}
	s.partitions = p
	return true
}

// withPrefix returns the range of sorted documents whose paths have a prefix.
func (s *snapshot) withPrefix(prefix string) (from, end int) {
	docs := s.docs[:s.partitions.docs()]
	from = sort.Search(len(docs), func(i int) bool { return docs[i].path >= prefix })
	end = from + sort.Search(len(docs)-from, func(i int) bool { return !strings.HasPrefix(docs[from+i].path, prefix) })
	return from, end
}

// narrow sets the blocks that the search visits, and the slots if a filter selects few.
func (c *scan) narrow() {
	p, first := c.snap.partitions, 0 // first is that of the blocks to visit in any case
	if len(p.of) > 0 && c.sketch != nil && (c.allowed == nil || c.choose()) {
		first = len(p.scale)
		dots, near := make([]int32, first), make([]candidate, first)
		c.kernel.dots(dots, p.centres, c.query, c.snap.stride)
		for i, d := range dots {
			c.blocks[i].centre = float32(d-c.query.bias) * p.scale[i]
			near[i] = candidate{c.blocks[i].centre + p.spread[i]/c.query.scale, uint32(i)}
		}
		c.centred = first
		if c.chosen != nil {
			near = slices.DeleteFunc(near, func(b candidate) bool {
				return !slices.ContainsFunc(c.chosenIn(int(b.slot)), func(word uint64) bool { return word != 0 })
			})
		} else if most := max(int(visitedShare*math.Sqrt(float64(first))), chosenShare*c.k/blockLen); most < first {
			floor := nth(near, most-1)
			near = slices.DeleteFunc(near, func(b candidate) bool { return b.score < floor })
		}
		for _, b := range near {
			c.visit = append(c.visit, int(b.slot))
		}
		slices.Sort(c.visit)
	}
	for i := first; i < len(c.blocks); i++ {
		c.visit = append(c.visit, i)
	}
}

// choose sets the slots that pass the filter, and reports false if these are too many.
func (c *scan) choose() bool {
	p, n := c.snap.partitions, 0
	var lists [][]uint32 // of slots
	for word, b := range c.allowed {
		for doc := 64 * word; b != 0 && doc < p.docs(); doc, b = doc+1, b>>1 {
			if b&1 != 0 {
				lists = append(lists, p.of[p.starts[doc]:p.starts[doc+1]])
				n += len(lists[len(lists)-1])
			}
		}
	}
	if n > c.snap.n/chosenShare {
		return false
	}
	chosen := make([]uint64, len(c.blocks)*blockLen/64)
	for _, list := range lists {
		for _, slot := range list {
			chosen[slot>>6] |= 1 << (slot & 63)
		}
	}
	for slot := len(p.of); slot < c.snap.n; slot++ {
		if c.wanted(slot) {
			chosen[slot>>6] |= 1 << (slot & 63)
		}
	}
	c.chosen = chosen
	return true
}

// chosenIn returns the bits of the chosen slots of a block.
func (c *scan) chosenIn(block int) []uint64 { return c.chosen[block*blockLen/64:][:blockLen/64] }

// partitioned returns a snapshot of the live slots of old in the order of their vectors,
// and of the documents that they use, sorted. Its blocks have no codes and no sketches.
func (s *Store) partitioned(old *snapshot) (*snapshot, error) {
	order := old.liveSlots()
	used := make([]bool, len(old.docs))
	for _, slot := range order {
		used[old.blocks[slot/blockLen].doc[slot%blockLen]] = true
	}
	d := &divider{snap: old, kernel: s.kernel}
	if err := d.divide(order, runtime.GOMAXPROCS(0)); err != nil {
		return nil, err
	}
	next := newSnapshot(s.dim, old.log)
	next.vectors, next.cleared = old.vectors, old.cleared+old.n-old.live
	var docs []uint32
	for doc, is := range used {
		if is {
			docs = append(docs, uint32(doc))
		}
	}
	slices.SortFunc(docs, func(a, b uint32) int { return strings.Compare(old.docs[a].path, old.docs[b].path) })
	number := make([]uint32, len(old.docs))
	for n, doc := range docs {
		next.docs, number[doc] = append(next.docs, old.docs[doc]), uint32(n)
	}
	p := &partitions{starts: make([]uint32, len(docs)+1), of: make([]uint32, len(order))}
	next.grow(len(order))
	for slot, from := range order {
		b, at := old.blocks[from/blockLen], int(from%blockLen)
		to, i := next.blocks[slot/blockLen], slot%blockLen
		to.scale[i], to.vector[i], to.doc[i] = b.scale[at], b.vector[at], number[b.doc[at]]
		in, rest, whole := b.ids.get(at)
		to.ids.set(i, string(rest), whole)
		runtime.KeepAlive(in)
		p.starts[to.doc[i]+1]++
	}
	for doc := range docs {
		p.starts[doc+1] += p.starts[doc]
	}
	free := slices.Clone(p.starts)
	for slot := range order {
		doc := next.blocks[slot/blockLen].doc[slot%blockLen]
		p.of[free[doc]] = uint32(slot)
		free[doc]++
	}
	next.partitions = p
	runtime.KeepAlive(old)
	return next, nil
}

// divider orders slots by dividing them at the centres of a k-means of unit vectors, and
// each part again.
type divider struct {
	snap   *snapshot
	kernel kernel
}

func (d *divider) divide(slots []uint32, threads int) error {
	if len(slots) <= blockLen {
		return nil
	}
	centres, err := d.centres(slots, min(fanOut, (len(slots)+blockLen-1)/blockLen))
	if err != nil {
		return err
	}
	part := make([]uint8, len(slots))
	err = share(threads, (len(slots)+blockLen-1)/blockLen, func(_, i int) error {
		batch := slots[i*blockLen : min((i+1)*blockLen, len(slots))]
		rows, err := d.rows(batch)
		if err == nil {
			d.nearest(part[i*blockLen:][:len(batch)], rows, centres)
		}
		return err
	})
	if err != nil {
		return err
	}
	parts := make([][]uint32, len(centres))
	for i, slot := range slots {
		parts[part[i]] = append(parts[part[i]], slot)
	}
	at := slots
	for i, p := range parts {
		if len(p) == len(slots) {
			return nil // all are alike
		}
		copy(at, p)
		parts[i], at = at[:len(p)], at[len(p):]
	}
	return share(threads, len(parts), func(_, i int) error { return d.divide(parts[i], 1) })
}

// rows returns the codes of slots.
func (d *divider) rows(slots []uint32) ([]byte, error) {
	rows := make([]byte, len(slots)*d.snap.stride)
	for i, slot := range slots {
		if err := d.snap.code(rows[i*d.snap.stride:][:d.snap.dim], int(slot)); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// centres returns k centres of some of the vectors in slots.
func (d *divider) centres(slots []uint32, k int) ([]*query, error) {
	rng := rand.New(rand.NewPCG(uint64(len(slots)), uint64(slots[0]))) // the same order each time
	some := make([]uint32, min(len(slots), k*sampled))
	for i := range some {
		from := i * len(slots) / len(some)
		some[i] = slots[from+rng.IntN((i+1)*len(slots)/len(some)-from)]
	}
	rows, err := d.rows(some)
	if err != nil {
		return nil, err
	}
	dim, stride := d.snap.dim, d.snap.stride
	centres, v := make([]*query, k), make([]float32, dim)
	for i, at := range rng.Perm(len(some))[:k] {
		dequantise(v, rows[at*stride:], 1)
		centres[i] = newQuery(v, stride)
	}
	part := make([]uint8, len(some))
	for range rounds {
		d.nearest(part, rows, centres)
		sums := make([][]float32, k)
		for i, p := range part {
			if sums[p] == nil {
				sums[p] = make([]float32, dim)
			}
			at := int(some[i])
			dequantise(v, rows[i*stride:], d.snap.blocks[at/blockLen].scale[at%blockLen])
			for j, x := range v {
				sums[p][j] += x
			}
		}
		for i, sum := range sums {
			if sum != nil { // else the old centre
				centres[i] = newQuery(sum, stride)
			}
		}
	}
	return centres, nil
}

// nearest sets part to the number of the centre with the best cosine for each of rows.
func (d *divider) nearest(part []uint8, rows []byte, centres []*query) {
	best, dots := make([]float32, len(part)), make([]int32, len(part))
	for n, c := range centres {
		square := 0.0
		for _, x := range c.int16 {
			square += float64(x) * float64(x)
		}
		unit := float32(1 / math.Sqrt(max(1, square)))
		d.kernel.dots(dots, rows, c, d.snap.stride)
		for i, dot := range dots {
			if score := float32(dot-c.bias) * unit; n == 0 || score > best[i] {
				best[i], part[i] = score, uint8(n)
			}
		}
	}
}
