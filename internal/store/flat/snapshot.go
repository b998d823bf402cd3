package flat

import (
	"hash/maphash"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"cairn/internal/store"
	"cairn/models/offheap"
)

// blockLen is the number of vectors of a block. A kernel processes one block a call; at
// 384 dimensions its codes fit into a second-level cache.
const blockLen = 1024

// block holds consecutive slots. A slot is written once, before the first snapshot that
// includes it is published, so that readers need no lock. What grows with the number of
// vectors is outside of Go's heap, for which the collector would reserve as much memory
// again.
type block struct {
	// rows is nil in a block that seal has left without codes. Such a block has a sketch.
	rows   atomic.Pointer[rows]
	low    []byte // blockLen x dim, the low bytes; nil if they are in the file
	scale  *[blockLen]float32
	vector *[blockLen]uint32 // the number of the vector in the file
	doc    *[blockLen]uint32
	ids    ids
	sketch atomic.Pointer[sketch] // of a full block; made after the first searches

	memory []byte // of scale, vector, doc and ids.end
	image  *image // that owns memory; nil if the block does
}

// blockSize is the size of the memory of a block.
const blockSize = 4 * 4 * blockLen

func blockOf(memory []byte, img *image) *block {
	part := func(i int) unsafe.Pointer { return unsafe.Pointer(&memory[i*4*blockLen]) }
	return &block{
		scale:  (*[blockLen]float32)(part(0)),
		vector: (*[blockLen]uint32)(part(1)),
		doc:    (*[blockLen]uint32)(part(2)),
		ids:    ids{end: (*[blockLen]uint32)(part(3))},
		memory: memory,
		image:  img,
	}
}

// rows are the codes of a block, see quantise.
type rows struct{ codes []byte } // blockLen x stride

// makeRows returns the codes of b, which the caller sets.
func (b *block) makeRows(stride int) []byte {
	r := b.rows.Load()
	if r == nil {
		r = &rows{offheap.Allocate(blockLen * stride)}
		runtime.AddCleanup(r, offheap.Free, r.codes)
		b.rows.Store(r)
	}
	return r.codes
}

// ids holds the chunk IDs of a block, without the path of the document where they begin with
// it. One slice for all takes a third of the memory of a string for each. Slots are set in
// order.
type ids struct {
	text atomic.Pointer[idText] // replaced when it is full
	end  *[blockLen]uint32      // of each ID, times 2, plus 1 if the ID is whole
}

// idText is memory outside of Go's heap.
type idText struct {
	bytes []byte
	image *image // that owns bytes; nil if the text does
}

func (d *ids) set(i int, id string, whole bool) {
	begin := d.begin(i)
	end := begin + len(id)
	text := d.text.Load()
	if text == nil || end > len(text.bytes) {
		larger := &idText{bytes: offheap.Allocate(max(8<<10, 2*begin, end))}
		runtime.AddCleanup(larger, offheap.Free, larger.bytes)
		if text != nil {
			copy(larger.bytes, text.bytes)
			runtime.KeepAlive(text)
		}
		text = larger
		d.text.Store(text)
	}
	copy(text.bytes[begin:], id)
	d.end[i] = 2 * uint32(end)
	if whole {
		d.end[i]++
	}
}

// begin returns where the ID of slot i begins.
func (d *ids) begin(i int) int {
	if i == 0 {
		return 0
	}
	return int(d.end[i-1] / 2)
}

// get returns the ID of slot i and whether it is whole. The caller keeps in alive while it
// uses id.
func (d *ids) get(i int) (in *idText, id []byte, whole bool) {
	in = d.text.Load()
	return in, in.bytes[d.begin(i) : d.end[i]/2], d.end[i]&1 == 1
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
	partitions  *partitions
}

func newSnapshot(dim int, l *log) *snapshot {
	return &snapshot{dim: dim, stride: strideOf(dim), table: newTable(0), log: l, partitions: unordered}
}

// next returns a copy of s that the writer may change.
func (s *snapshot) next() *snapshot {
	c := *s
	c.dead = append(make([]uint64, 0, len(s.dead)+blockLen/64), s.dead...)
	return &c
}

func (s *snapshot) isDead(slot int) bool { return s.dead[slot>>6]>>(slot&63)&1 != 0 }

// liveSlots returns the live slots in order.
func (s *snapshot) liveSlots() []uint32 {
	live := make([]uint32, 0, s.live)
	for slot := range s.n {
		if !s.isDead(slot) {
			live = append(live, uint32(slot))
		}
	}
	return live
}

// id returns the ID of the chunk in a slot.
func (s *snapshot) id(slot int) string {
	in, path, rest := s.idParts(slot)
	id := path + string(rest)
	runtime.KeepAlive(in)
	return id
}

// idParts returns the two parts of the ID of the chunk in a slot. The first is "" unless it
// is the path of the document. The caller keeps in alive while it uses the second.
func (s *snapshot) idParts(slot int) (in *idText, path string, rest []byte) {
	b, i := s.blocks[slot/blockLen], slot%blockLen
	in, rest, whole := b.ids.get(i)
	if !whole {
		path = s.docs[b.doc[i]].path
	}
	return in, path, rest
}

// hasID reports whether id is the ID of the chunk in a slot.
func (s *snapshot) hasID(slot int, id string) bool {
	in, path, rest := s.idParts(slot)
	after, ok := strings.CutPrefix(id, path)
	ok = ok && after == string(rest)
	runtime.KeepAlive(in)
	return ok
}

// grow adds n live slots and returns the first.
func (s *snapshot) grow(n int) (first int) {
	first = s.n
	s.n += n
	s.live += n
	for len(s.blocks)*blockLen < s.n {
		b := blockOf(offheap.Allocate(blockSize), nil)
		runtime.AddCleanup(b, offheap.Free, b.memory)
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

// kill removes the chunk in a slot.
func (s *snapshot) kill(slot int, c *contents) {
	s.dead[slot>>6] |= 1 << (slot & 63)
	s.live--
	if c != nil {
		c.release(s.blocks[slot/blockLen].vector[slot%blockLen])
	}
}

// clear removes every chunk and every slot.
func (s *snapshot) clear(c *contents) {
	for _, slot := range s.liveSlots() {
		s.kill(int(slot), c)
	}
	s.cleared += s.n
	s.blocks, s.n, s.dead, s.table, s.partitions = nil, 0, nil, newTable(0), unordered
	if c != nil {
		c.retained = c.cached
	}
}

// fillTable inserts the first n slots into the table.
func (s *snapshot) fillTable(n int) {
	var hashes [fetchedHashes]uint64
	var id []byte
	for first := 0; first < n; first += len(hashes) {
		batch := hashes[:min(len(hashes), n-first)]
		for i := range batch {
			in, path, rest := s.idParts(first + i)
			id = append(append(id[:0], path...), rest...)
			runtime.KeepAlive(in)
			batch[i] = s.table.hashBytes(id)
		}
		s.table.fetch(batch)
		for i, hash := range batch {
			if !s.isDead(first + i) {
				s.table.insert(hash, first+i)
			}
		}
	}
}

// name sets the ID and the payload of a slot, makes lookup find it, and removes the chunk
// that had the ID before. hash is that of the ID in the table.
func (s *snapshot) name(slot int, id string, hash uint64, doc uint32, c *contents) {
	if old := s.table.insertOver(hash, slot, func(n int) bool { return s.holds(n, id) }); old >= 0 {
		s.kill(old, c)
	}
	b := s.blocks[slot/blockLen]
	rest, found := strings.CutPrefix(id, s.docs[doc].path)
	b.ids.set(slot%blockLen, rest, !found)
	b.doc[slot%blockLen] = doc
}

// holds reports whether a slot has the live chunk id. The table may also have slots of later
// snapshots.
func (s *snapshot) holds(slot int, id string) bool {
	return slot < s.n && !s.isDead(slot) && s.hasID(slot, id)
}

// lookup returns the live slot of a chunk, or -1.
func (s *snapshot) lookup(id string) int {
	s.table.wait()
	return s.table.find(s.table.hash(id), func(slot int) bool { return s.holds(slot, id) })
}

// table maps hashes to numbers, with open addressing. Nothing is deleted from it: the
// writer inserts while readers probe, and a reader ignores numbers that its snapshot does
// not have.
type table struct {
	seed maphash.Seed
	// slots have a number + 1 in the lower half, and the upper half of the hash, which
	// spares a look at most other numbers. 0 is free. They are outside of Go's heap.
	slots []uint64
	mask  uint64
	// filling ends when a table that was made in the background is filled; see wait.
	filling sync.WaitGroup
	fault   any
	// Only the writer uses these.
	used    int
	fetched uint64 // of no meaning
}

const upperHalf = math.MaxUint32 << 32

// newTable has room for n numbers and half as many to come.
func newTable(n int) *table {
	size := 512 // a page
	for size < 2*n {
		size *= 2
	}
	memory := offheap.Allocate(8 * size)
	t := &table{seed: maphash.MakeSeed(), slots: unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), size), mask: uint64(size - 1)}
	runtime.AddCleanup(t, offheap.Free, memory)
	return t
}

func (t *table) hash(key string) uint64 { return maphash.String(t.seed, key) }

func (t *table) hashBytes(key []byte) uint64 { return maphash.Bytes(t.seed, key) }

// wait waits until the table is filled. It panics with the fault of reading mapped memory
// that was met meanwhile; see recoverFault.
func (t *table) wait() {
	t.filling.Wait()
	if t.fault != nil {
		panic(t.fault)
	}
}

// fits reports whether the table has room for n more numbers.
func (t *table) fits(n int) bool { return 4*(t.used+n) <= 3*len(t.slots) }

// fetch reads the slots of hashes, so that the misses of the cache overlap. Without it,
// they take most of the time in which a large store is opened.
func (t *table) fetch(hashes []uint64) {
	for _, hash := range hashes {
		t.fetched ^= t.slots[hash&t.mask]
	}
}

func (t *table) insert(hash uint64, n int) {
	t.insertOver(hash, n, func(int) bool { return false })
}

// insertOver inserts a number and returns the last one before it under hash that match
// accepts, or -1.
func (t *table) insertOver(hash uint64, n int, match func(n int) bool) int {
	i, old := hash, -1
	for {
		v := t.slots[i&t.mask] // only the writer writes, so it may read plainly
		if v == 0 {
			break
		}
		if v&upperHalf == hash&upperHalf && match(int(uint32(v)-1)) {
			old = int(uint32(v) - 1)
		}
		i++
	}
	atomic.StoreUint64(&t.slots[i&t.mask], hash&upperHalf|uint64(n+1))
	t.used++
	return old
}

// find returns the first number under hash that match accepts, or -1.
func (t *table) find(hash uint64, match func(n int) bool) int {
	for i := hash; ; i++ {
		v := atomic.LoadUint64(&t.slots[i&t.mask])
		if v == 0 {
			return -1
		}
		if n := int(uint32(v) - 1); v&upperHalf == hash&upperHalf && match(n) {
			return n
		}
	}
}
