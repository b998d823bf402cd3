package flat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sort"
	"unsafe"

	"cairn/internal/base/checksum"
	"cairn/internal/store"
	"cairn/models/offheap"
)

// contentKey is the part of a store.Key that the store keeps: 128 bits of a SHA-256. A
// vector with the zero key is found by its chunk only.
type contentKey [keySize]byte

func keyOf(k store.Key) contentKey { return contentKey(k[:keySize]) }

// content is a vector in the file.
type content struct {
	fresh
	refs uint32 // chunks that use it; only the writer reads it
}

// extent is the position of a record's vectors in the file.
type extent struct {
	first, end uint32 // the numbers of its first vector and of the one after its last
	codes, low int64  // offsets of its codes and low bytes
}

// contentSize is the size of the memory of a contentBlock.
const contentSize = blockLen * int(unsafe.Sizeof(content{}))

// contentBlock holds consecutive vectors, outside of Go's heap.
type contentBlock struct {
	entries *[blockLen]content
	memory  []byte
	image   *image // that owns memory; nil if the block does
}

func contentBlockOf(memory []byte, img *image) *contentBlock {
	return &contentBlock{(*[blockLen]content)(unsafe.Pointer(&memory[0])), memory, img}
}

// vectors describes the n vectors of the file, in its order. The writer only appends, so
// that a snapshot may keep a copy of the headers of both slices.
type vectors struct {
	blocks  []*contentBlock
	n       int
	extents []extent
}

// at returns vector n. The caller keeps v alive while it uses the vector.
func (v *vectors) at(n uint32) *content { return &v.blocks[n/blockLen].entries[n%blockLen] }

// append adds a vector that no chunk uses.
func (v *vectors) append(f fresh) {
	if v.n == len(v.blocks)*blockLen {
		b := contentBlockOf(offheap.Allocate(contentSize), nil)
		runtime.AddCleanup(b, offheap.Free, b.memory)
		v.blocks = append(v.blocks, b)
	}
	*v.at(uint32(v.n)) = content{fresh: f}
	v.n++
}

// contents indexes the vectors of the file for the writer.
type contents struct {
	vectors
	table  *table // by key; nil until find needs it
	cached int    // vectors with a key and without a chunk
	// retained is the number of vectors that were cached at the last Clear and that no
	// chunk has used since. An index that is being rebuilt will use them again, so they
	// do not count towards Options.MaxCached.
	retained int
}

// extent returns the extent that holds vector n.
func (v *vectors) extent(n uint32) extent {
	return v.extents[sort.Search(len(v.extents), func(i int) bool { return v.extents[i].end > n })]
}

// offsets returns the offsets of the code and of the low bytes of vector n.
func (e extent) offsets(n uint32, dim int) (code, low int64) {
	before := int64(n-e.first) * int64(dim)
	return e.codes + before, e.low + before
}

// extent returns the extent of the vectors of r, of which the first has that number.
func (r *record) extent(first int) extent {
	return extent{first: uint32(first), end: uint32(first + r.added), codes: r.codesAt(), low: r.lowAt()}
}

// add adds the vectors of a record whose offset is set.
func (c *contents) add(r *record) error {
	base := c.n
	if len(r.fresh) > 0 {
		c.extents = append(c.extents, r.extent(base))
	}
	for _, v := range r.fresh {
		c.append(v)
		if v.key == (contentKey{}) {
			continue
		}
		c.cached++
		if c.table != nil {
			c.insert(c.n - 1)
		}
	}
	for i := range r.ids {
		if int(r.vectors[i]) >= c.n {
			return fmt.Errorf("chunk %.200q refers to vector %d of %d", r.ids[i], r.vectors[i], c.n)
		}
	}
	return nil
}

// insert makes find find vector n.
func (c *contents) insert(n int) {
	if !c.table.fits(1) {
		c.index(n)
	}
	c.table.insert(c.table.hashBytes(c.at(uint32(n)).key[:]), n)
}

// index makes a table of the first n vectors.
func (c *contents) index(n int) {
	c.table = newTable(n)
	for i := range n {
		if c.at(uint32(i)).key != (contentKey{}) {
			c.insert(i)
		}
	}
}

// find returns the newest vector with the key, or -1.
func (c *contents) find(key contentKey) int {
	if key == (contentKey{}) {
		return -1
	}
	if c.table == nil {
		c.index(c.n)
	}
	n := -1
	c.table.find(c.table.hashBytes(key[:]), func(i int) bool {
		if c.at(uint32(i)).key == key {
			n = max(n, i) // older ones are damaged
		}
		return false
	})
	return n
}

// refer adds a reference to vector n and returns it.
func (c *contents) refer(n uint32) *content {
	v := c.at(n)
	if v.refs == 0 && v.key != (contentKey{}) {
		c.cached--
		c.retained = max(0, c.retained-1)
	}
	v.refs++
	return v
}

// release drops a reference to vector n.
func (c *contents) release(n uint32) {
	v := c.at(n)
	v.refs--
	if v.refs == 0 && v.key != (contentKey{}) {
		c.cached++
	}
}

// read returns the code and the low bytes of vector n, which is in extent e and which v
// describes. whole is false if they are damaged.
func (s *Store) read(l *log, e extent, n uint32, v *fresh) (code, low []byte, whole bool, err error) {
	b := make([]byte, 2*s.dim)
	code, low = b[:s.dim], b[s.dim:]
	codeAt, lowAt := e.offsets(n, s.dim)
	if err := errors.Join(l.read(code, codeAt), l.read(low, lowAt)); err != nil {
		return nil, nil, false, err
	}
	return code, low, checksum.Of(code) == v.codeSum && checksum.Of(low) == v.sum, nil
}

// readContent is read for vector n of the file. The caller holds s.mu.
func (s *Store) readContent(l *log, n uint32) (code, low []byte, whole bool, err error) {
	return s.read(l, s.contents.extent(n), n, &s.contents.at(n).fresh)
}

// Get returns the vectors of keys, in that order and with 16 bits a coordinate. The
// vector of an unknown key, or one that is damaged, is nil. A store in memory has no keys.
func (s *Store) Get(keys []store.Key) (vectors [][]float32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	snap, err := s.snapshot(context.Background())
	if err != nil {
		return nil, err
	}
	vectors = make([][]float32, len(keys))
	for i := range keys {
		n := s.contents.find(keyOf(keys[i]))
		if n < 0 {
			continue
		}
		code, low, whole, err := s.readContent(snap.log, uint32(n))
		if err != nil {
			return nil, err
		}
		if whole {
			vectors[i] = restore(code, low, s.contents.at(uint32(n)).scale)
		}
	}
	return vectors, nil
}

// Put stores one vector for each key, without a chunk. A known key keeps its vector. If
// Put returns an error, it has stored nothing. On a store in memory, Put does nothing.
func (s *Store) Put(keys []store.Key, vectors [][]float32) (err error) {
	if len(keys) != len(vectors) {
		return fmt.Errorf("%d keys for %d vectors", len(keys), len(vectors))
	}
	for i, v := range vectors {
		if err := s.checkVector(v); err != nil {
			return fmt.Errorf("vector %d: %w", i, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	snap, err := s.writable(context.Background())
	if err != nil {
		return err
	}
	return s.write(snap, new(record), keys, vectors)
}

// quantised are vectors in 16 bits a coordinate, one after the other.
type quantised struct {
	codes, low []byte
	scales     []float32
}

func (s *Store) quantise(vectors [][]float32) *quantised {
	n := len(vectors)
	q := &quantised{make([]byte, n*s.dim), make([]byte, n*s.dim), make([]float32, n)}
	for i, v := range vectors {
		q.scales[i] = quantise(q.codes[i*s.dim:][:s.dim], q.low[i*s.dim:], v)
	}
	return q
}

// place finds each vector in the file by its key, or adds it to record r. It sets
// r.vectors and returns the codes and low bytes of the added vectors.
func (s *Store) place(l *log, r *record, keys []store.Key, vectors *quantised) (codes, low []byte, err error) {
	added := map[contentKey]uint32{}
	numbers := make([]uint32, len(keys))
	for i := range keys {
		key := keyOf(keys[i])
		if n, ok := added[key]; ok {
			numbers[i] = n
			continue
		}
		if n := s.contents.find(key); n >= 0 {
			_, _, whole, err := s.readContent(l, uint32(n))
			if err != nil {
				return nil, nil, err
			}
			if whole {
				numbers[i] = uint32(n)
				continue
			}
		}
		numbers[i] = uint32(s.contents.n + len(r.fresh))
		if key != (contentKey{}) {
			added[key] = numbers[i]
		}
		code, lowBytes := vectors.codes[i*s.dim:][:s.dim], vectors.low[i*s.dim:][:s.dim]
		r.fresh = append(r.fresh, fresh{key: key, scale: vectors.scales[i], codeSum: checksum.Of(code), sum: checksum.Of(lowBytes)})
		codes, low = append(codes, code...), append(low, lowBytes...)
	}
	if len(r.ids) > 0 {
		r.vectors = numbers
	}
	return codes, low, nil
}

// Clear removes every chunk. Get still returns their vectors.
func (s *Store) Clear(ctx context.Context) error {
	return s.update(ctx, nil, nil, true)
}

// Salvage copies the undamaged vectors with a key from the store in folder dir into s,
// and returns their number. That store may be damaged, but must have the same model and
// dimension.
func (s *Store) Salvage(dir string) (int, error) {
	f, err := os.Open(filepath.Join(dir, fileName))
	if err != nil {
		return 0, fmt.Errorf("salvaging vectors: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("salvaging vectors: %w", err)
	}
	at, _, err := readFileHeader(f, s.dim, s.model)
	if err != nil {
		return 0, fmt.Errorf("salvaging vectors: %w", err)
	}
	l, n := &log{file: f}, 0
	for {
		r, err := nextRecord(f, at, info.Size(), s.dim)
		if err != nil || r == nil {
			return n, err
		}
		at = r.end()
		if ok, err := r.readNames(f); err != nil || !ok {
			continue
		}
		var keys []store.Key
		var vectors [][]float32
		for i, v := range r.fresh {
			code, low, whole, err := s.read(l, r.extent(0), uint32(i), &v)
			if err != nil || !whole || v.key == (contentKey{}) {
				continue
			}
			if vector := restore(code, low, v.scale); s.checkVector(vector) == nil {
				var key store.Key // of which the store keeps the first part
				copy(key[:], v.key[:])
				keys, vectors = append(keys, key), append(vectors, vector)
			}
		}
		if err := s.Put(keys, vectors); err != nil {
			return n, err
		}
		n += len(keys)
	}
}
