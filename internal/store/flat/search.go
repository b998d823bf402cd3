package flat

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"cairn/internal/store"
)

const (
	// margin bounds the error of an 8-bit cosine, whose standard deviation over 10,000
	// MiniLM vectors is 0.0006 (see TestErrorOfCodes). A vector whose 8-bit cosine is
	// more than twice the margin below the k-th best cannot be among the best k.
	margin = 0.004
	// threadBytes is the size of codes that justifies another goroutine: some 0.2 ms of
	// work.
	threadBytes = 4 << 20
	// readBatch is the number of vectors that a goroutine scores at a time.
	readBatch = 16
)

// candidate is a slot with its score in units of the query's scale.
type candidate struct {
	score float32
	slot  uint32
}

// gathered is the number of rows that are copied for one call of a kernel.
const gathered = 64

// seeds is how many times k slots with the highest estimates are scored first.
const seeds = 3

// scratch is the working memory of one scanning goroutine.
type scratch struct {
	dots   [blockLen]int32
	best   selection
	seeds  selection // by estimate
	places []uint16
	coarse [blockLen]float32 // estimates of places
	rows   []byte            // gathered x stride
}

// Search returns the k chunks that pass the filter and are nearest to the unit vector
// query, best first. Scores are cosines with 16 bits a coordinate. Search breaks ties by
// chunk ID.
func (s *Store) Search(ctx context.Context, queryVector []float32, k int, f store.Filter) (hits []store.Hit, err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	if err := s.checkVector(queryVector); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	snap, err := s.snapshot(ctx)
	if err != nil || k <= 0 || snap.live == 0 {
		return nil, err
	}
	k = min(k, snap.live)
	scan := &scan{
		ctx: ctx, snap: snap, kernel: s.kernel, store: s,
		query: newQuery(queryVector, snap.stride), k: k, allowed: snap.allowed(f),
	}
	scan.slack = 2 * margin / scan.query.scale
	scan.open(queryVector, snap.n >= sketchFrom && k <= snap.n/16) // for a larger k, sketches rule out little
	threads := snap.threads()
	near, err := scan.run(threads)
	if err != nil {
		return nil, err
	}
	if scan.unsketched && s.searches.Add(1) > 1 { // a command searches once
		s.sketchAll(snap)
	}
	return snap.rescore(s.kernel, near, queryVector, k, threads)
}

// threads returns the number of goroutines of a search.
func (s *snapshot) threads() int {
	return max(1, min(runtime.GOMAXPROCS(0), s.n*s.stride/threadBytes))
}

// allowed returns a bit for each document that passes the filter, or nil if all do.
func (s *snapshot) allowed(f store.Filter) []uint64 {
	if f.IsZero() {
		return nil
	}
	bits := make([]uint64, (len(s.docs)+63)/64)
	match := func(from, end int) {
		for i := from; i < end; i++ {
			if f.Match(s.docs[i].path, s.docs[i].labels) {
				bits[i>>6] |= 1 << (i & 63)
			}
		}
	}
	match(s.withPrefix(f.PathPrefix))
	match(s.partitions.docs(), len(s.docs))
	return bits
}

// scan is the part of one search that reads codes.
type scan struct {
	ctx     context.Context
	snap    *snapshot
	kernel  kernel
	store   *Store // of the pools
	query   *query
	k       int
	slack   float32  // twice the margin, in units of the query's scale
	allowed []uint64 // a bit for each document
	chosen  []uint64 // a bit for each slot; nil unless these are few

	blocks     []scanned
	visit      []int        // numbers of blocks
	centred    int          // blocks, from the first, with the score of the centre
	sketch     *sketchQuery // nil if no block is scanned by its sketch
	unsketched bool         // a full block has no sketch yet
}

// scanned is what a search scans of a block: its codes, or its sketch. It keeps both in
// memory.
type scanned struct {
	rows   *rows   // nil if the block is sealed
	sketch *sketch // nil if the search reads all codes
	centre float32 // score of the sketch's centre
	// estimates are those of the vectors, or the coarse ones of the chosen slots in order.
	estimates *[blockLen]float32
}

// open sets the blocks. sketches says whether to use the sketches of blocks that are not
// sealed.
func (c *scan) open(queryVector []float32, sketches bool) {
	c.blocks = make([]scanned, len(c.snap.blocks))
	full := c.snap.n / blockLen
	for i, b := range c.snap.blocks {
		c.blocks[i].rows = b.rows.Load() // first, because seal stores the sketch before
		if c.blocks[i].rows != nil && (i >= full || !sketches) {
			continue
		}
		c.blocks[i].sketch = b.sketch.Load()
		if c.blocks[i].sketch == nil {
			c.unsketched = true
		} else if c.sketch == nil {
			c.sketch = newSketchQuery(queryVector, c.query, c.kernel)
		}
	}
	c.narrow()
}

// run returns every slot that can be among the best k, in any order.
func (c *scan) run(threads int) ([]candidate, error) {
	workers := make([]*scratch, threads)
	each := func(do func(work *scratch, i int) error) error {
		return share(threads, len(c.visit), func(worker, n int) error {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			if workers[worker] == nil {
				work, _ := c.store.scratch.Get().(*scratch)
				if work == nil {
					work = new(scratch)
				}
				work.best.reset(c.k, c.slack)
				work.seeds.reset(seeds*c.k, 0)
				workers[worker] = work
			}
			return do(workers[worker], c.visit[n])
		})
	}
	if c.sketch != nil {
		held, _ := c.store.estimates.Get().(*[][blockLen]float32)
		if held == nil || len(*held) < len(c.visit) {
			estimates := make([][blockLen]float32, len(c.visit))
			held = &estimates
		}
		defer c.store.estimates.Put(held)
		for n, i := range c.visit {
			c.blocks[i].estimates = &(*held)[n]
		}
	}
	err := each(func(work *scratch, i int) error {
		if c.blocks[i].sketch != nil {
			c.estimate(work, i)
			return nil
		}
		dots := work.dots[:min(blockLen, c.snap.n-i*blockLen)]
		c.kernel.dots(dots, c.blocks[i].rows.codes, c.query, c.snap.stride)
		c.collect(&work.best, dots, nil, i)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.sketch != nil {
		floor, err := c.floor(workers)
		if err != nil {
			return nil, err
		}
		err = each(func(work *scratch, i int) error {
			if c.blocks[i].sketch == nil {
				return nil
			}
			return c.reach(work, i, floor)
		})
		if err != nil {
			return nil, err
		}
	}
	var all selection
	all.reset(c.k, c.slack)
	for _, work := range workers {
		if work != nil {
			all.items = append(all.items, work.best.items...)
			c.store.scratch.Put(work)
		}
	}
	all.cut()
	runtime.KeepAlive(c) // and the blocks, whose memory is outside of Go's heap
	return all.items, nil
}

// collect offers the scored slots of a block to best: those at places, or if that is
// nil, the first len(dots).
func (c *scan) collect(best *selection, dots []int32, places []uint16, block int) {
	b, first := c.snap.blocks[block], block*blockLen
	for i, d := range dots {
		if places != nil {
			i = int(places[i])
		}
		score := float32(d-c.query.bias) * b.scale[i]
		if score < best.floor {
			continue
		}
		if slot := first + i; c.wanted(slot) {
			best.add(candidate{score: score, slot: uint32(slot)})
		}
	}
}

// wanted reports whether a slot is live and passes the filter. A block that was sealed
// since the snapshot can have more slots than the snapshot.
func (c *scan) wanted(slot int) bool {
	if slot >= c.snap.n || c.snap.isDead(slot) {
		return false
	}
	if c.chosen != nil {
		return c.chosen[slot>>6]>>(slot&63)&1 != 0
	}
	doc := c.snap.blocks[slot/blockLen].doc[slot%blockLen]
	return c.allowed == nil || c.allowed[doc>>6]>>(doc&63)&1 != 0
}

// estimate sets the estimates of block i, which has a sketch, and offers them to the seeds.
func (c *scan) estimate(work *scratch, i int) {
	b := &c.blocks[i]
	out := b.estimates
	if i >= c.centred {
		b.centre = b.sketch.score(c.kernel, c.query)
	}
	offer := func(at uint16, score float32) {
		if score >= work.seeds.floor && c.wanted(i*blockLen+int(at)) {
			work.seeds.add(candidate{score: score, slot: uint32(i*blockLen + int(at))})
		}
	}
	if c.chosen != nil {
		work.places = appendBits(work.places[:0], c.chosenIn(i))
		c.coarse(work, i)
		copy(out[:], work.coarse[:len(work.places)])
		for n, at := range work.places {
			offer(at, out[n])
		}
		return
	}
	c.kernel.estimates(out, b.sketch, c.sketch, b.centre)
	// With a spread of 0, any deviations do. The estimates are in the cache.
	work.places = reaching(c.kernel, work.places[:0], out, out, 0, work.seeds.floor)
	for _, at := range work.places {
		offer(at, out[at])
	}
}

// floor returns a lower bound of the k-th best score, less the slack: the k-th best score
// among the slots with the highest coarse estimates among those with the highest estimates.
func (c *scan) floor(workers []*scratch) (float32, error) {
	var near, nearer, best selection
	near.reset(seeds*c.k, 0)
	nearer.reset(c.k+c.k/4, 0)
	best.reset(c.k, c.slack)
	for _, work := range workers {
		if work != nil {
			near.items = append(near.items, work.seeds.items...)
			best.items = append(best.items, work.best.items...)
		}
	}
	near.cut()
	work := new(scratch)
	_ = work.eachBlock(near.items, func(block int) error {
		c.coarse(work, block)
		for i, at := range work.places {
			nearer.add(candidate{score: work.coarse[i], slot: uint32(block*blockLen + int(at))})
		}
		return nil
	})
	nearer.cut()
	err := work.eachBlock(nearer.items, func(block int) error { return c.score(work, &best, block) })
	best.cut()
	return best.floor, err
}

// eachBlock calls do for each block with the places of its candidates. It sorts candidates.
func (s *scratch) eachBlock(candidates []candidate, do func(block int) error) error {
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.slot, b.slot) })
	for i := 0; i < len(candidates); {
		block := int(candidates[i].slot) / blockLen
		s.places = s.places[:0]
		for ; i < len(candidates) && int(candidates[i].slot)/blockLen == block; i++ {
			s.places = append(s.places, uint16(candidates[i].slot%blockLen))
		}
		if err := do(block); err != nil {
			return err
		}
	}
	return nil
}

// coarse sets work.coarse to the coarse estimates of the places of a block.
func (c *scan) coarse(work *scratch, block int) {
	b := &c.blocks[block]
	b.sketch.estimateCoarse(c.kernel, &work.coarse, &work.dots, work.places, c.sketch, b.centre)
}

// reach offers the slots of a sketched block that can reach floor. It ignores the floor
// that the worker has found since, because the result must not depend on the order in
// which workers take blocks.
func (c *scan) reach(work *scratch, i int, floor float32) error {
	work.best.floor = max(work.best.floor, floor)
	s := c.blocks[i].sketch
	coarse := &work.coarse
	if c.chosen != nil {
		work.places, coarse = appendBits(work.places[:0], c.chosenIn(i)), c.blocks[i].estimates
	} else {
		work.places = reaching(c.kernel, work.places[:0], c.blocks[i].estimates, s.bySign.sigma, c.sketch.spread, floor)
		if c.allowed != nil { // if few slots pass, the floor rules out nothing
			work.places = slices.DeleteFunc(work.places, func(at uint16) bool { return !c.wanted(i*blockLen + int(at)) })
		}
		c.coarse(work, i)
	}
	kept := work.places[:0]
	for n, at := range work.places {
		if coarse[n]+c.sketch.coarseSpread*s.byCoarse.sigma[at] >= floor && c.wanted(i*blockLen+int(at)) {
			kept = append(kept, at)
		}
	}
	work.places = kept
	return c.score(work, &work.best, i)
}

// score scores the places of a block and offers them to best.
func (c *scan) score(work *scratch, best *selection, block int) error {
	rows, stride := c.blocks[block].rows, c.snap.stride
	if len(work.rows) < gathered*stride {
		work.rows = make([]byte, gathered*stride)
	}
	for places := range slices.Chunk(work.places, gathered) {
		for i, at := range places {
			row := work.rows[i*stride:][:stride]
			if rows != nil {
				copy(row, rows.codes[int(at)*stride:])
			} else if err := c.snap.readCode(row[:c.snap.dim], c.snap.blocks[block].vector[at]); err != nil {
				return err
			}
		}
		dots := work.dots[:len(places)]
		c.kernel.dots(dots, work.rows, c.query, stride)
		c.collect(best, dots, places, block)
	}
	return nil
}

// rescore scores candidates with 16 bits a coordinate and returns the best, at most most.
func (s *snapshot) rescore(k kernel, near []candidate, queryVector []float32, most, threads int) ([]store.Hit, error) {
	slots := make([]int, len(near))
	for i, c := range near {
		slots[i] = int(c.slot)
	}
	slices.Sort(slots) // the order of the file
	scores, err := s.exact(k, queryVector, slots, threads)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, slot := range slots {
		_, path, rest := s.idParts(slot)
		size += len(path) + len(rest)
	}
	var ids strings.Builder // in one piece
	ids.Grow(size)
	hits := make([]store.Hit, len(slots))
	for i, slot := range slots {
		in, path, rest := s.idParts(slot)
		from := ids.Len()
		ids.WriteString(path)
		ids.Write(rest)
		runtime.KeepAlive(in)
		hits[i] = store.Hit{Chunk: ids.String()[from:], Score: scores[i]}
	}
	runtime.KeepAlive(s) // and its blocks
	slices.SortFunc(hits, store.CompareHits)
	return slices.Clip(hits[:min(most, len(hits))]), nil
}
