package flat

import (
	"hash/maphash"
	"runtime"
	"sync/atomic"

	"cairn/internal/store"
)

// blockLen is the number of vectors of a block. A kernel processes one block a call; at
// 384 dimensions its codes fit into a second-level cache.
const blockLen = 1024

// block holds consecutive slots. A slot is written once, before the first snapshot that
// includes it is published, so that readers need no lock.
type block struct {
	// rows is nil in a block that seal has left without codes. Such a block has a sketch.
	rows   atomic.Pointer[rows]
	low    []byte // blockLen x dim, the low bytes; nil if they are in the file
	scale  [blockLen]float32
	vector [blockLen]uint32 // the number of the vector in the file
	doc    [blockLen]uint32
	id     [blockLen]string
	sketch atomic.Pointer[sketch] // of a full block; made after the first searches
}

// rows are the codes of a block, see quantise. They are outside of Go's heap, for which the
// collector would reserve as much memory again.
type rows struct{ codes []byte } // blockLen x stride

// makeRows returns the codes of b, which the caller sets.
func (b *block) makeRows(stride int) []byte {
	r := b.rows.Load()
	if r == nil {
		r = &rows{allocate(blockLen * stride)}
		runtime.AddCleanup(r, free, r.codes)
		b.rows.Store(r)
	}
	return r.codes
}

// payload holds the properties of a document that filters use.
type payload struct {
	path   string
	labels store.Labels
}

// snapshot is an immutable state of the store. Slots are numbered in the order in which
// they were added; those of replaced and removed chunks are dead.
type snapshot struct {
	dim, stride int
	blocks      []*block // shared with later snapshots
	n           int      // slots
	live        int
	cleared     int      // slots that clear has removed; the file still has their names
	dead        []uint64 // a bit for each slot
	docs        []payload
	vectors     vectors // in the file
	table       *table
	log         *log // nil in memory
}

func newSnapshot(dim int, l *log) *snapshot {
	return &snapshot{dim: dim, stride: (dim + strideUnit - 1) / strideUnit * strideUnit, table: newTable(0), log: l}
}

// next returns a copy of s that the writer may change.
func (s *snapshot) next() *snapshot {
	c := *s
	c.dead = append(make([]uint64, 0, len(s.dead)+blockLen/64), s.dead...)
	return &c
}

func (s *snapshot) isDead(slot int) bool { return s.dead[slot>>6]>>(slot&63)&1 != 0 }

func (s *snapshot) id(slot int) string { return s.blocks[slot/blockLen].id[slot%blockLen] }

// grow adds n live slots and returns the first.
func (s *snapshot) grow(n int) (first int) {
	first = s.n
	s.n += n
	s.live += n
	for len(s.blocks)*blockLen < s.n {
		b := new(block)
		if s.log == nil {
			b.low = make([]byte, blockLen*s.dim)
		}
		s.blocks = append(s.blocks, b)
	}
	for len(s.dead)*64 < s.n {
		s.dead = append(s.dead, 0)
	}
	return first
}

// kill removes the chunk with that ID, if it exists.
func (s *snapshot) kill(id string, c *contents) {
	if slot, ok := s.lookup(id); ok {
		s.killSlot(slot, c)
	}
}

func (s *snapshot) killSlot(slot int, c *contents) {
	s.dead[slot>>6] |= 1 << (slot & 63)
	s.live--
	if c != nil {
		c.release(s.blocks[slot/blockLen].vector[slot%blockLen])
	}
}

// clear removes every chunk and every slot.
func (s *snapshot) clear(c *contents) {
	for slot := range s.n {
		if !s.isDead(slot) {
			s.killSlot(slot, c)
		}
	}
	s.cleared += s.n
	s.blocks, s.n, s.dead, s.table = nil, 0, nil, newTable(0)
	if c != nil {
		c.retained = c.cached
	}
}

// name sets the ID and the payload of a slot, and makes lookup find it.
func (s *snapshot) name(slot int, id string, doc uint32) {
	b := s.blocks[slot/blockLen]
	b.id[slot%blockLen] = id
	b.doc[slot%blockLen] = doc
	if s.table.full() {
		s.table = newTable(s.live)
		for old := range slot {
			if !s.isDead(old) {
				s.table.insert(s.table.hash(s.id(old)), old)
			}
		}
	}
	s.table.insert(s.table.hash(id), slot)
}

// lookup returns the live slot of a chunk. The table may also have slots of later
// snapshots.
func (s *snapshot) lookup(id string) (slot int, ok bool) {
	return s.table.find(s.table.hash(id), func(slot int) bool { return slot < s.n && !s.isDead(slot) && s.id(slot) == id })
}

// table maps hashes to numbers, with open addressing. Nothing is deleted from it: the
// writer inserts while readers probe, and a reader ignores numbers that its snapshot does
// not have.
type table struct {
	seed  maphash.Seed
	slots []uint32 // number + 1; 0 is free
	mask  uint64
	used  int // the writer's
}

// newTable has room for n numbers and half as many to come.
func newTable(n int) *table {
	size := 64
	for size < 2*n {
		size *= 2
	}
	return &table{seed: maphash.MakeSeed(), slots: make([]uint32, size), mask: uint64(size - 1)}
}

func (t *table) hash(key string) uint64 { return maphash.String(t.seed, key) }

func (t *table) full() bool { return 4*(t.used+1) > 3*len(t.slots) }

func (t *table) insert(hash uint64, n int) {
	i := hash
	for t.slots[i&t.mask] != 0 { // only the writer writes, so it may read plainly
		i++
	}
	atomic.StoreUint32(&t.slots[i&t.mask], uint32(n+1))
	t.used++
}

// find returns the first number under hash that match accepts.
func (t *table) find(hash uint64, match func(n int) bool) (n int, ok bool) {
	for i := hash; ; i++ {
		v := atomic.LoadUint32(&t.slots[i&t.mask])
		if v == 0 {
			return 0, false
		}
		if n := int(v - 1); match(n) {
			return n, true
		}
	}
}
