package flat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"cairn/internal/store"
)

// minGarbage is the number of dead slots below which a store is not compacted.
const minGarbage = 4096

// compactRecord is the number of vectors of a record that a compaction writes.
const compactRecord = 4096

// Update removes the stale chunks, then adds or replaces entries. If two entries have the
// same chunk, the later one wins. If Update refuses a vector, it changes nothing. An
// Update syncs the file once, so callers should batch.
func (s *Store) Update(ctx context.Context, entries []store.VectorEntry, stale []string) error {
	for i := range entries {
		e := &entries[i]
		if e.Chunk == "" {
			return errors.New("an entry has no chunk id")
		}
		if err := s.checkVector(e.Vector); err != nil {
			return fmt.Errorf("chunk %.200q: %w", e.Chunk, err)
		}
	}
	return s.update(ctx, entries, stale, false)
}

func (s *Store) update(ctx context.Context, entries []store.VectorEntry, stale []string, clear bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	snap, err := s.writable(ctx)
	if err != nil {
		return err
	}
	r := newRecord(entries, present(snap, stale))
	r.clear = clear
	keys, vectors := make([]store.Key, len(entries)), make([][]float32, len(entries))
	for i := range entries {
		keys[i], vectors[i] = entries[i].Key, entries[i].Vector
	}
	return s.write(snap, r, keys, vectors)
}

// write stores r with the vectors of its entries, or those of keys if it has no entries. The
// caller holds s.mu.
func (s *Store) write(snap *snapshot, r *record, keys []store.Key, vectors [][]float32) error {
	q := s.quantise(vectors)
	var codes, low []byte
	var c *contents // nil in memory
	var err error
	if snap.log != nil {
		c = &s.contents
		codes, low, err = s.place(snap.log, r, keys, q)
	}
	if err == nil && len(r.ids)+len(r.stale)+len(r.fresh) == 0 && !r.clear {
		return nil
	}
	next := snap.next()
	if c != nil && err == nil {
		next.log, err = snap.log.append(r, codes, low)
	}
	if err != nil {
		return fmt.Errorf("writing vectors %s: %w", s.path, err)
	}
	if s.docIndex == nil && len(r.docs) > 0 {
		s.docIndex = next.docIndex()
	}
	first, err := next.apply(r, s.docIndex, c)
	if err != nil {
		return err // unreachable: place numbers vectors that are there
	}
	next.fill(first, q)
	s.seal(next)
	s.snap.Store(next)
	s.tidy(next)
	return nil
}

// fill copies codes, and in memory the low bytes and the scales, into the slots from first.
func (s *snapshot) fill(first int, q *quantised) {
	for i := range s.n - first {
		b, slot := s.blocks[(first+i)/blockLen], (first+i)%blockLen
		copy(b.makeRows(s.stride)[slot*s.stride:], q.codes[i*s.dim:][:s.dim])
		if b.low != nil {
			copy(b.low[slot*s.dim:], q.low[i*s.dim:][:s.dim])
			b.scale[slot] = q.scales[i]
		}
	}
}

// writable returns the newest snapshot, or an error if the store cannot be written. The
// caller holds s.mu.
func (s *Store) writable(ctx context.Context) (*snapshot, error) {
	if s.options.ReadOnly {
		return nil, ErrReadOnly
	}
	if s.broken != nil {
		return nil, fmt.Errorf("writing vectors %s: %w", s.path, s.broken)
	}
	return s.snapshot(ctx)
}

// tidy compacts the store if more than a quarter of its slots is garbage, or too many
// vectors have no chunk. Otherwise it writes the image if that lacks many slots. The caller
// holds s.mu.
func (s *Store) tidy(snap *snapshot) {
	slots, garbage := snap.n, snap.n-snap.live
	if s.contents.retained <= s.options.MaxCached/2 { // else an index is being rebuilt
		slots, garbage = slots+snap.cleared, garbage+snap.cleared
	}
	if (garbage < minGarbage || garbage <= slots/4) && s.contents.cached <= s.maxCached() {
		s.snap.Store(s.saveImage(snap, imageLacks))
		return
	}
	if err := s.compact(snap); err != nil {
		s.options.Logger.Warn("compacting the vector file failed; the old file stays in use", "path", s.path, "error", err)
	}
}

// maxCached returns how many vectors without a chunk the file may have. The caller holds
// s.mu.
func (s *Store) maxCached() int { return max(s.options.MaxCached, s.contents.retained) }

// present returns the ids that snap has.
func present(snap *snapshot, ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return snap.lookup(id) < 0 })
}

// newRecord returns the record of entries and stale chunks, without vectors.
func newRecord(entries []store.VectorEntry, stale []string) *record {
	r := &record{stale: stale, ids: make([]string, len(entries)), doc: make([]uint32, len(entries))}
	index := map[string]uint32{}
	for i := range entries {
		p := payload{path: entries[i].Path, labels: entries[i].Labels}
		key := p.append(nil)
		doc, ok := index[string(key)]
		if !ok {
			doc = uint32(len(r.docs))
			index[string(key)] = doc
			r.docs = append(r.docs, p)
		}
		r.doc[i], r.ids[i] = doc, entries[i].Chunk
	}
	return r
}

// append appends r to the file and syncs it. After an error, the file is unchanged or ends
// in a partial record, which the next Open truncates.
func (l *log) append(r *record, codes, low []byte) (*log, error) {
	r.position = store.NextPosition(l.position)
	b := r.encode(codes, low)
	r.at = l.end
	_, err := l.file.WriteAt(b, l.end)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, l.file.Truncate(l.end))
	}
	next := &log{file: l.file, end: r.end(), position: r.position, mapped: l.mapped}
	if !next.mapped.covers(next.end) {
		next.mapped = mapFile(l.file, next.end)
	}
	return next, nil
}

// compact replaces the snapshot, and the file if there is one, by one without garbage.
// Searches in progress keep the old ones.
func (s *Store) compact(old *snapshot) error {
	if old.log == nil {
		return s.compactMemory(old)
	}
	if err := s.replace(func(f *os.File) error { return s.writeLive(f, old) }); err != nil {
		return err
	}
	retained := s.contents.retained
	if err := s.load(); err != nil {
		// The open file was replaced: writes to it would be lost.
		s.broken = fmt.Errorf("reading the compacted file: %w", err)
		return s.broken
	}
	s.contents.retained = retained
	return nil
}

// writeLive writes the newest vectors without a chunk, then the live chunks with their
// vectors.
func (s *Store) writeLive(f *os.File, old *snapshot) error {
	w := &compaction{store: s, old: old.log, w: f, numbers: make([]uint32, s.contents.n)}
	keep := min(s.contents.cached, s.maxCached()-s.options.MaxCached/4)
	skip := s.contents.cached - keep
	var cached []uint32
	for n := range s.contents.n {
		if v := s.contents.at(uint32(n)); v.refs > 0 || v.key == (contentKey{}) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		cached = append(cached, uint32(n))
	}
	for batch := range slices.Chunk(cached, compactRecord) {
		if err := w.write(new(record), batch); err != nil {
			return err
		}
	}
	if len(cached)+old.live == 0 { // for the position
		return w.write(new(record), nil)
	}
	for slots := range slices.Chunk(old.liveSlots(), compactRecord) {
		vectors := make([]uint32, len(slots))
		for i, slot := range slots {
			vectors[i] = old.blocks[slot/blockLen].vector[slot%blockLen]
		}
		if err := w.write(newRecord(old.entries(slots), nil), vectors); err != nil {
			return err
		}
	}
	return nil
}

// compaction copies records into a new file.
type compaction struct {
	store   *Store
	old     *log
	w       *os.File
	numbers []uint32 // of vectors in the new file, plus 1; 0 for one not copied
	copied  uint32
}

// write writes r. vectors are the numbers, in the old file, of the vectors of its entries,
// or of vectors without a chunk if r has no entries. write copies those that it has not
// copied before; a damaged one keeps its old checksums.
func (c *compaction) write(r *record, vectors []uint32) error {
	var codes, low []byte
	for _, n := range vectors {
		v := c.store.contents.at(n)
		if c.numbers[n] == 0 {
			code, lowBytes, _, err := c.store.readContent(c.old, n)
			if err != nil {
				return err
			}
			codes, low = append(codes, code...), append(low, lowBytes...)
			r.fresh = append(r.fresh, v.fresh)
			c.copied++
			c.numbers[n] = c.copied
		}
		if len(r.ids) > 0 {
			r.vectors = append(r.vectors, c.numbers[n]-1)
		}
	}
	r.position = c.old.position
	_, err := c.w.Write(r.encode(codes, low))
	return err
}

// compactMemory is compact for a store without a file.
func (s *Store) compactMemory(old *snapshot) error {
	next, index := newSnapshot(s.dim, nil), map[string]uint32{}
	next.table = newTable(old.live)
	for slots := range slices.Chunk(old.liveSlots(), compactRecord) {
		q := new(quantised)
		for _, slot := range slots {
			b, at := old.blocks[slot/blockLen], int(slot%blockLen)
			q.codes = append(q.codes, b.rows.Load().codes[at*old.stride:][:s.dim]...)
			q.low = append(q.low, b.low[at*s.dim:][:s.dim]...)
			q.scales = append(q.scales, b.scale[at])
		}
		first, err := next.apply(newRecord(old.entries(slots), nil), index, nil)
		if err != nil {
			return err // unreachable: no vector is in a file
		}
		next.fill(first, q)
	}
	s.docIndex = index
	s.snap.Store(next)
	return nil
}

// entries returns the entries of slots, without vectors.
func (s *snapshot) entries(slots []uint32) []store.VectorEntry {
	entries := make([]store.VectorEntry, len(slots))
	for i, slot := range slots {
		p := s.docs[s.blocks[slot/blockLen].doc[slot%blockLen]]
		entries[i] = store.VectorEntry{Chunk: s.id(int(slot)), Path: p.path, Labels: p.labels}
	}
	return entries
}
