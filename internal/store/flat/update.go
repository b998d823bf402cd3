package flat

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"cairn/internal/store"
)

// Garbage beyond a quarter of all slots is compacted away, from minGarbage
// slots on: below that the file is too small to matter.
const minGarbage = 4096

// compactRecord is how many vectors a record holds that a compaction writes.
const compactRecord = 4096

// Update applies one batch: stale chunks leave, entries enter or replace; of
// two entries for one chunk the later stays. A refused vector changes nothing.
// One Update costs one sync of the disk, so batches pay.
func (s *Store) Update(ctx context.Context, entries []store.VectorEntry, stale []string) error {
	if s.options.ReadOnly {
		return ErrReadOnly
	}
	for i := range entries {
		if err := s.checkEntry(&entries[i]); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	snap := s.snap.Load()
	if snap == nil {
		return ErrClosed
	}
	if s.broken != nil {
		return fmt.Errorf("writing vectors %s: %w", s.path, s.broken)
	}
	entries = lastOfEach(entries)
	r := newRecord(entries, known(snap, stale))
	if len(r.ids)+len(r.stale) == 0 {
		return nil
	}
	codes := make([]byte, len(entries)*s.dim)
	r.scales = make([]float32, len(entries))
	for i := range entries {
		r.scales[i] = quantise(codes[i*s.dim:][:s.dim], entries[i].Vector)
	}
	next := snap.next()
	if snap.log != nil {
		l, err := s.append(snap.log, r, codes, entries)
		if err != nil {
			return fmt.Errorf("writing vectors %s: %w", s.path, err)
		}
		next.log = l
	}
	first := next.apply(r, s.docIndex)
	for i := range entries {
		b, slot := next.blocks[(first+i)/blockLen], (first+i)%blockLen
		copy(b.codes[slot*next.stride:], codes[i*s.dim:][:s.dim])
		if b.vectors != nil {
			copy(b.vectors[slot*s.dim:], entries[i].Vector)
		}
	}
	s.snap.Store(next)
	if garbage := next.n - next.live; garbage >= minGarbage && garbage > next.n/4 {
		if err := s.compact(next); err != nil {
			s.options.Logger.Warn("compacting the vector file went wrong; it is used as it is", "path", s.path, "error", err)
		}
	}
	return nil
}

func (s *Store) checkEntry(e *store.VectorEntry) error {
	if e.Chunk == "" {
		return errors.New("an entry has no chunk id")
	}
	if err := s.checkVector(e.Vector); err != nil {
		return fmt.Errorf("chunk %.200q: %w", e.Chunk, err)
	}
	return nil
}

// lastOfEach drops entries that a later one of the same chunk replaces.
func lastOfEach(entries []store.VectorEntry) []store.VectorEntry {
	last := make(map[string]int, len(entries))
	for i := range entries {
		last[entries[i].Chunk] = i
	}
	if len(last) == len(entries) {
		return entries
	}
	kept := make([]store.VectorEntry, 0, len(last))
	for i := range entries {
		if last[entries[i].Chunk] == i {
			kept = append(kept, entries[i])
		}
	}
	return kept
}

func known(snap *snapshot, ids []string) []string {
	var known []string
	for _, id := range ids {
		if _, ok := snap.lookup(id); ok {
			known = append(known, id)
		}
	}
	return known
}

// newRecord names entries. Their ids are copied into one string: the store must
// not hold on to strings that keep something larger in memory.
func newRecord(entries []store.VectorEntry, stale []string) *record {
	r := &record{stale: stale, ids: make([]string, len(entries)), doc: make([]uint32, len(entries))}
	index := map[string]uint32{}
	var arena []byte
	for i := range entries {
		p := payload{path: entries[i].Path, labels: entries[i].Labels}
		key := p.append(nil)
		doc, ok := index[string(key)]
		if !ok {
			doc = uint32(len(r.docs))
			index[string(key)] = doc
			d := decoder{s: string(key)}
			r.docs = append(r.docs, d.payload())
		}
		r.doc[i] = doc
		arena = append(arena, entries[i].Chunk...)
	}
	ids := string(arena)
	for i := range entries {
		n := len(entries[i].Chunk)
		r.ids[i], ids = ids[:n], ids[n:]
	}
	return r
}

// append writes a record behind the last whole one and syncs. After an error
// the file is as before, or ends in what the next Open drops.
func (s *Store) append(l *log, r *record, codes []byte, entries []store.VectorEntry) (*log, error) {
	floats := make([]byte, 0, 4*len(codes))
	for i := range entries {
		for _, x := range entries[i].Vector {
			floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(x))
		}
	}
	b := r.encode(codes, floats)
	r.at, r.codes, r.floats = l.end, int64(len(codes)), int64(len(floats))
	r.names = int64(len(b)) - headerSize - r.codes - r.floats
	_, err := l.file.WriteAt(b, l.end)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, l.file.Truncate(l.end))
	}
	return &log{file: l.file, end: r.end()}, nil
}

// compact makes a snapshot, and on disk a file, without garbage. Whoever
// searches the old ones keeps them until he is done.
func (s *Store) compact(old *snapshot) error {
	if old.log == nil {
		return s.compactMemory(old)
	}
	if err := s.replace(func(f *os.File) error { return s.writeLive(f, old) }); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		// What is open has no name any more: writing to it would be lost.
		s.broken = fmt.Errorf("reading the compacted file: %w", err)
		return s.broken
	}
	return nil
}

func (s *Store) writeLive(f *os.File, old *snapshot) error {
	w := bufio.NewWriterSize(f, 1<<20)
	return old.eachLive(compactRecord, func(slots []int) error {
		entries, codes, r, err := old.entries(slots)
		if err != nil {
			return err
		}
		floats := make([]byte, 0, 4*len(codes))
		for i := range entries {
			for _, x := range entries[i].Vector {
				floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(x))
			}
		}
		if _, err := w.Write(r.encode(codes, floats)); err != nil {
			return err
		}
		return w.Flush()
	})
}

// compactMemory is compact for a store without a file.
func (s *Store) compactMemory(old *snapshot) error {
	next, index := newSnapshot(s.dim, nil), map[string]uint32{}
	next.table = newIDTable(old.live)
	err := old.eachLive(compactRecord, func(slots []int) error {
		entries, codes, r, err := old.entries(slots)
		if err != nil {
			return err
		}
		first := next.apply(r, index)
		for i := range entries {
			b, slot := next.blocks[(first+i)/blockLen], (first+i)%blockLen
			copy(b.codes[slot*next.stride:], codes[i*s.dim:][:s.dim])
			copy(b.vectors[slot*s.dim:], entries[i].Vector)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.docIndex = index
	s.snap.Store(next)
	return nil
}

// eachLive calls fn with the live slots, n at a time, in order.
func (s *snapshot) eachLive(n int, fn func(slots []int) error) error {
	var slots []int
	for slot := range s.n {
		if !s.isDead(slot) {
			slots = append(slots, slot)
		}
		if len(slots) == n || slot == s.n-1 && len(slots) > 0 {
			if err := fn(slots); err != nil {
				return err
			}
			slots = slots[:0]
		}
	}
	return nil
}

// entries reads slots back, as Update was given them, with their codes.
func (s *snapshot) entries(slots []int) ([]store.VectorEntry, []byte, *record, error) {
	entries, scales := make([]store.VectorEntry, len(slots)), make([]float32, len(slots))
	codes := make([]byte, 0, len(slots)*s.dim)
	read := s.reader()
	for i, slot := range slots {
		vector, err := read.vector(slot)
		if err != nil {
			return nil, nil, nil, err
		}
		b, at := s.blocks[slot/blockLen], slot%blockLen
		p := s.docs[b.doc[at]]
		entries[i] = store.VectorEntry{Chunk: b.id[at], Path: p.path, Labels: p.labels, Vector: append([]float32(nil), vector...)}
		scales[i] = b.scale[at]
		codes = append(codes, b.codes[at*s.stride:][:s.dim]...)
	}
	r := newRecord(entries, nil)
	r.scales = scales
	return entries, codes, r, nil
}
