package flat

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"cairn/internal/store"
)

const (
	// margin is what an 8-bit cosine may be off, measured on 10,000 MiniLM
	// vectors as a standard deviation of 0.0006 (see TestErrorOfCodes). A
	// vector whose 8-bit cosine is twice as much below the k-th best cannot be
	// among the best k.
	margin = 0.004
	// threadBytes of codes are worth a goroutine of their own: some 0.2 ms.
	threadBytes = 4 << 20
	// readBatch vectors are read from the file before the work is divided anew.
	readBatch = 16
)

// candidate is a slot with its score in units of the query's scale.
type candidate struct {
	score float32
	slot  uint32
}

// scratch is what one scanning goroutine needs.
type scratch struct {
	dots [blockLen]int32
	best selection
}

// Search returns the k chunks nearest to the unit vector query that pass the
// filter, by cosine in float32, best first, ties by chunk id.
func (s *Store) Search(ctx context.Context, queryVector []float32, k int, f store.Filter) ([]store.Hit, error) {
	if err := s.checkVector(queryVector); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	snap, err := s.snapshot(ctx)
	if err != nil || k <= 0 || snap.live == 0 {
		return nil, err
	}
	k = min(k, snap.live)
	scan := &scan{
		ctx: ctx, snap: snap, kernel: s.kernel, pool: &s.scratch,
		query: newQuery(queryVector, snap.stride), k: k, allowed: snap.allowed(f),
	}
	scan.slack = 2 * margin / scan.query.scale
	threads := s.threads(snap)
	near, err := scan.run(threads)
	if err != nil {
		return nil, err
	}
	return snap.rescore(near, queryVector, k, threads)
}

func (s *Store) threads(snap *snapshot) int {
	n := s.options.Threads
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return max(1, min(n, snap.n*snap.stride/threadBytes))
}

// allowed evaluates the filter once a document. Nil means that all pass.
func (s *snapshot) allowed(f store.Filter) []uint64 {
	if f.IsZero() {
		return nil
	}
	bits := make([]uint64, (len(s.docs)+63)/64)
	for i := range s.docs {
		if f.Match(s.docs[i].path, s.docs[i].labels) {
			bits[i>>6] |= 1 << (i & 63)
		}
	}
	return bits
}

// scan is the first pass of one search.
type scan struct {
	ctx     context.Context
	snap    *snapshot
	kernel  kernel
	pool    *sync.Pool
	query   *query
	k       int
	slack   float32 // twice the margin, in units of the query's scale
	allowed []uint64
}

// run returns every slot that can be among the best k, in no order.
func (c *scan) run(threads int) ([]candidate, error) {
	blocks := (c.snap.n + blockLen - 1) / blockLen
	workers := make([]*scratch, threads)
	share(threads, blocks, func(worker, i int) {
		if c.ctx.Err() != nil {
			return
		}
		work := workers[worker]
		if work == nil {
			if work, _ = c.pool.Get().(*scratch); work == nil {
				work = new(scratch)
			}
			work.best.reset(c.k, c.slack)
			workers[worker] = work
		}
		b, n := c.snap.blocks[i], min(blockLen, c.snap.n-i*blockLen)
		dots := work.dots[:n]
		c.kernel.dots(dots, b.codes, c.query, c.snap.stride)
		c.collect(&work.best, dots, b, i*blockLen)
	})
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	var all selection
	all.reset(c.k, c.slack)
	for _, work := range workers {
		if work != nil {
			all.items = append(all.items, work.best.items...)
			c.pool.Put(work)
		}
	}
	all.cut()
	return all.items, nil
}

// collect offers the slots of a block to best.
func (c *scan) collect(best *selection, dots []int32, b *block, first int) {
	scales := b.scale[:len(dots)]
	for i, d := range dots {
		score := float32(d-c.query.bias) * scales[i]
		if score < best.floor {
			continue
		}
		slot := first + i
		if c.snap.isDead(slot) {
			continue
		}
		if doc := b.doc[i]; c.allowed != nil && c.allowed[doc>>6]>>(doc&63)&1 == 0 {
			continue
		}
		best.add(candidate{score: score, slot: uint32(slot)})
	}
}

// rescore scores candidates with their float32 vectors and returns the best k.
func (s *snapshot) rescore(near []candidate, queryVector []float32, k, threads int) ([]store.Hit, error) {
	slots := make([]int, len(near))
	for i, c := range near {
		slots[i] = int(c.slot)
	}
	slices.Sort(slots) // the order of the file
	scores, err := s.exact(queryVector, slots, threads)
	if err != nil {
		return nil, err
	}
	hits := make([]store.Hit, len(slots))
	for i, slot := range slots {
		hits[i] = store.Hit{Chunk: s.id(slot), Score: scores[i]}
	}
	slices.SortFunc(hits, compareHits)
	return slices.Clip(hits[:min(k, len(hits))]), nil
}

// exact returns the cosines of slots in float32, NaN for slot -1.
func (s *snapshot) exact(queryVector []float32, slots []int, threads int) ([]float64, error) {
	scores := make([]float64, len(slots))
	errs := make([]error, threads)
	readers := make([]*vectorReader, threads)
	share(threads, (len(slots)+readBatch-1)/readBatch, func(worker, batch int) {
		if readers[worker] == nil {
			readers[worker] = s.reader()
		}
		for i := batch * readBatch; i < min((batch+1)*readBatch, len(slots)) && errs[worker] == nil; i++ {
			if slots[i] < 0 {
				scores[i] = math.NaN()
				continue
			}
			vector, err := readers[worker].vector(slots[i])
			if err != nil {
				errs[worker] = err
				return
			}
			scores[i] = dot(queryVector, vector)
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return scores, nil
}

func compareHits(a, b store.Hit) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	return strings.Compare(a.Chunk, b.Chunk)
}
