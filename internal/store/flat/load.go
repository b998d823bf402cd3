package flat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/checksum"
	"cairn/internal/base/packed"
)

// fetchedHashes is the number of hashes that are computed and fetched at a time.
const fetchedHashes = 256

// namesBatch is how many records are in memory at a time while a store is opened.
const namesBatch = 32

// create creates an empty file unless one exists.
func (s *Store) create() error {
	if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(s.model) > maxModel {
		return fmt.Errorf("model ID of %d bytes, want at most %d", len(s.model), maxModel)
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	return s.replace(func(f *os.File) error { return nil })
}

// replace replaces the store's file with a header and what write adds to it.
func (s *Store) replace(write func(*os.File) error) error {
	return atomicfile.WriteBy(s.path, 0o600, func(f *os.File) error {
		if _, err := f.Write(fileHeader(s.dim, s.model)); err != nil {
			return err
		}
		return write(f)
	})
}

// load reads the file into the first snapshot. For writing, it truncates a torn record.
func (s *Store) load() (err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	defer func() {
		if errors.Is(err, syscall.EISDIR) {
			err = &CorruptError{Path: s.path, Reason: "it is a directory"}
		}
	}()
	flag := os.O_RDWR
	if s.options.ReadOnly {
		flag = os.O_RDONLY
	} else {
		atomicfile.RemoveLeftovers(s.path) // of compactions that were cut off
		atomicfile.RemoveLeftovers(s.imagePath())
	}
	f, err := os.OpenFile(s.path, flag, 0)
	if err != nil {
		return err
	}
	state, err := s.loadFile(f)
	if err != nil {
		f.Close()
		return err
	}
	state.snap.log.mapped = mapFile(f, state.snap.log.end)
	s.docIndex, s.contents = nil, state.contents
	if len(s.sealed(state.snap)) == 0 && !s.options.ReadOnly {
		_ = os.Remove(s.imagePath())
	}
	s.snap.Store(s.saveImage(state.snap, imageLacks))
	return nil
}

// loaded is the content of a file.
type loaded struct {
	snap     *snapshot
	contents contents
}

func (s *Store) loadFile(f *os.File) (*loaded, error) {
	start, version, err := readFileHeader(f, s.dim, s.model)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	l := &log{file: f, end: start}
	records, err := s.walk(f, start, info.Size())
	if err != nil {
		return nil, err
	}
	if n := len(records); n > 0 {
		l.end, l.position = records[n-1].end(), records[n-1].position
	}
	state, missing := s.restore(l, records)
	if err := state.read(f, missing); err != nil {
		return nil, err
	}
	if err := s.readBlocks(state.snap); err != nil {
		return nil, err
	}
	if version != formatVersion && !s.options.ReadOnly {
		if _, err := f.WriteAt(fileHeader(s.dim, s.model), 0); err != nil {
			return nil, err
		}
	}
	if dropped := info.Size() - l.end; dropped > 0 && !s.options.ReadOnly {
		s.dropped = dropped
		s.options.Logger.Warn("dropping the torn end of the vector file", "path", s.path, "bytes", dropped, "kept", l.end)
		if err := f.Truncate(l.end); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// walk returns the whole records from offset at, without the last one if a crash has torn
// it. It checks the vectors of the last one only, and returns a *CorruptError for damage
// before it.
func (s *Store) walk(f *os.File, at, size int64) (records []*record, err error) {
	r, err := readRecordHeader(f, at, size, s.dim)
	for ; r != nil; r, err = readRecordHeader(f, at, size, s.dim) {
		records = append(records, r)
		at = r.end()
	}
	if err == nil {
		r, err = nextRecord(f, at, size, s.dim)
	}
	if err != nil {
		return nil, err
	}
	if r != nil { // a crash tears the last record only
		return nil, &CorruptError{Path: f.Name(), Reason: fmt.Sprintf("the record at %d is damaged", at)}
	}
	if n := len(records); n > 0 {
		whole, err := records[n-1].check(f)
		if err != nil {
			return nil, err
		}
		if !whole {
			records = records[:n-1]
		}
	}
	return records, nil
}

func readAllNames(f *os.File, records []*record) error {
	return share(runtime.GOMAXPROCS(0), len(records), func(_, i int) error {
		r := records[i]
		if r.ids != nil {
			return nil // walk has read them
		}
		ok, err := r.readNames(f)
		if err == nil && !ok {
			err = &CorruptError{Path: f.Name(), Reason: fmt.Sprintf("the record at %d is damaged", r.at)}
		}
		return err
	})
}

// read applies records to the snapshot. It reads the names of a batch while it applies
// those of the batch before, and clears records, so that names are freed on the way.
func (st *loaded) read(f *os.File, records []*record) error {
	if len(records) == 0 {
		return nil
	}
	docIndex := st.snap.docIndex()
	batches := slices.Collect(slices.Chunk(records, namesBatch))
	ready := make(chan error, 1)
	ahead := func(i int) {
		if i < len(batches) {
			go func() { ready <- readAllNames(f, batches[i]) }()
		}
	}
	ahead(0)
	for i, batch := range batches {
		if err := <-ready; err != nil {
			return err
		}
		ahead(i + 1)
		for _, r := range batch {
			if _, err := st.snap.apply(r, docIndex, &st.contents); err != nil {
				return &CorruptError{Path: f.Name(), Reason: fmt.Sprintf("the record at %d: %v", r.at, err)}
			}
		}
		clear(batch)
	}
	return nil
}

// docIndex returns the number of each payload.
func (s *snapshot) docIndex() map[string]uint32 {
	index := make(map[string]uint32, len(s.docs))
	for i := range s.docs {
		index[string(s.docs[i].append(nil))] = uint32(i)
	}
	return index
}

// restore returns the state in the image, if there is one, and the records after it.
func (s *Store) restore(l *log, records []*record) (st *loaded, missing []*record) {
	entries := 0
	for _, r := range records {
		entries += r.entries
	}
	s.imaged = 0
	if entries >= s.options.sealedFrom {
		if img := s.openImage(records); img != nil {
			if st := img.restore(s, l, records[:img.Records]); st != nil {
				s.imaged = st.snap.n
				return st, records[img.Records:]
			}
		}
	}
	st = &loaded{snap: newSnapshot(s.dim, l)}
	st.snap.table = newTable(entries)
	return st, records
}

// readBlocks reads the codes of blocks without a sketch, and seals the blocks that are to be
// sealed.
func (s *Store) readBlocks(snap *snapshot) error {
	sealed := len(s.sealed(snap))
	return share(runtime.GOMAXPROCS(0), len(snap.blocks), func(_, i int) error {
		b := snap.blocks[i]
		if b.sketch.Load() != nil {
			return nil
		}
		err := snap.readCodes(b, min(blockLen, snap.n-i*blockLen))
		if err == nil && i < sealed {
			s.sealBlock(snap, b)
		}
		return err
	})
}

// apply applies the names of a record and returns the slot of its first entry. c is nil
// for a store in memory.
func (s *snapshot) apply(r *record, index map[string]uint32, c *contents) (first int, err error) {
	s.table.wait()
	if c != nil {
		if err := c.add(r); err != nil {
			return 0, err
		}
		s.vectors = c.vectors
	}
	if r.clear {
		s.clear(c)
	}
	for _, id := range r.stale {
		if slot := s.lookup(id); slot >= 0 {
			s.kill(slot, c)
		}
	}
	docs := make([]uint32, len(r.docs))
	for i := range r.docs {
		key := string(r.docs[i].append(nil))
		doc, ok := index[key]
		if !ok {
			doc = uint32(len(s.docs))
			s.docs = append(s.docs, readPayload(&packed.Reader{Rest: key})) // which keeps no memory of the record
			index[key] = doc
		}
		docs[i] = doc
	}
	first = s.grow(len(r.ids))
	if !s.table.fits(s.n - first) {
		s.table = newTable(s.live)
		s.fillTable(first)
	}
	hashes := make([]uint64, len(r.ids))
	for i, id := range r.ids {
		hashes[i] = s.table.hash(id)
	}
	for i, id := range r.ids {
		if i%fetchedHashes == 0 {
			s.table.fetch(hashes[i:min(i+fetchedHashes, len(hashes))])
		}
		slot := first + i
		s.name(slot, id, hashes[i], docs[r.doc[i]], c)
		if c != nil {
			b, v := s.blocks[slot/blockLen], c.refer(r.vectors[i])
			b.vector[slot%blockLen], b.scale[slot%blockLen] = r.vectors[i], v.scale
		}
	}
	return first, nil
}

// readCodes reads the codes of the first n slots of b.
func (s *snapshot) readCodes(b *block, n int) error {
	rows, f := b.makeRows(s.stride), s.log.file
	buffer := make([]byte, blockLen*s.dim)
	for i := 0; i < n; {
		e := s.vectors.extent(b.vector[i])
		at, _ := e.offsets(b.vector[i], s.dim)
		read := buffer[:e.run(b.vector[i:n])*s.dim]
		if _, err := f.ReadAt(read, at); err != nil {
			return err
		}
		for ; len(read) > 0; i++ {
			code := read[:s.dim]
			if checksum.Of(code) != s.vectors.at(b.vector[i]).codeSum {
				return &CorruptError{Path: f.Name(), Reason: fmt.Sprintf("the code of vector %d is damaged", b.vector[i])}
			}
			copy(rows[i*s.stride:], code)
			read = read[s.dim:]
		}
	}
	return nil
}

// run returns the number of leading vectors of numbers whose codes are consecutive in the
// file. The first is in e.
func (e extent) run(numbers []uint32) int {
	n := 1
	for n < len(numbers) && numbers[n] == numbers[n-1]+1 && numbers[n] < e.end {
		n++
	}
	return n
}
