package flat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"cairn/internal/atomicfile"
)

// create makes a file without vectors when there is none.
func (s *Store) create() error {
	if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(s.model) > maxModel {
		return fmt.Errorf("model ID of %d bytes, want at most %d", len(s.model), maxModel)
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return err
	}
	return s.replace(func(f *os.File) error { return nil })
}

// replace writes a new file, header first and then what write adds, and gives
// it the store's name.
func (s *Store) replace(write func(*os.File) error) error {
	f, err := atomicfile.Create(s.path, 0o644)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(fileHeader(s.dim, s.model)); err != nil {
		return err
	}
	if err := write(f.File); err != nil {
		return err
	}
	return f.Commit()
}

// load reads the file into a first snapshot. The writer cuts a torn tail off.
func (s *Store) load() error {
	flag := os.O_RDWR
	if s.options.ReadOnly {
		flag = os.O_RDONLY
	} else {
		atomicfile.RemoveLeftovers(s.path) // of compactions that were cut off
	}
	f, err := os.OpenFile(s.path, flag, 0)
	if err != nil {
		return err
	}
	snap, index, err := s.loadFile(f)
	if err != nil {
		f.Close()
		return err
	}
	s.docIndex = index
	s.snap.Store(snap)
	return nil
}

func (s *Store) loadFile(f *os.File) (*snapshot, map[string]uint32, error) {
	start, err := readFileHeader(f, s.dim, s.model)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	l := &log{file: f, end: start}
	records, err := s.walk(f, start, info.Size())
	if err != nil {
		return nil, nil, err
	}
	if err := readAllNames(f, records); err != nil {
		return nil, nil, err
	}
	snap, index := newSnapshot(s.dim, l), map[string]uint32{}
	total := 0
	for _, r := range records {
		total += r.entries
	}
	snap.table = newIDTable(total)
	if err := snap.add(f, records, index); err != nil {
		return nil, nil, err
	}
	if n := len(records); n > 0 {
		l.end = records[n-1].end()
	}
	if dropped := info.Size() - l.end; dropped > 0 && !s.options.ReadOnly {
		s.dropped = dropped
		s.options.Logger.Warn("dropping the torn end of the vector file", "path", s.path, "bytes", dropped, "kept", l.end)
		if err := f.Truncate(l.end); err != nil {
			return nil, nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, nil, err
		}
	}
	return snap, index, nil
}

// walk finds the whole records from offset at on. Only the last one's vectors
// are checked.
func (s *Store) walk(f *os.File, at, size int64) ([]*record, error) {
	var records []*record
	for {
		r, err := readRecordHeader(f, at, size, s.dim)
		if err != nil {
			return nil, err
		}
		if r == nil {
			break
		}
		records = append(records, r)
		at = r.end()
	}
	if n := len(records); n > 0 {
		last := records[n-1]
		ok, err := last.readNames(f)
		if ok && err == nil {
			ok, err = last.checkVectors(f)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			records = records[:n-1]
		}
	}
	return records, nil
}

func workers() *errgroup.Group {
	g := new(errgroup.Group)
	g.SetLimit(runtime.GOMAXPROCS(0))
	return g
}

func readAllNames(f *os.File, records []*record) error {
	g := workers()
	for _, r := range records {
		if r.ids != nil {
			continue // walk has read the last one's
		}
		g.Go(func() error {
			ok, err := r.readNames(f)
			if err == nil && !ok {
				err = &CorruptError{Path: f.Name(), Reason: fmt.Sprintf("the record at %d is damaged", r.at)}
			}
			return err
		})
	}
	return g.Wait()
}

// add takes records into the snapshot and reads their codes in place. index
// finds payloads already interned.
func (s *snapshot) add(f *os.File, records []*record, index map[string]uint32) error {
	g := workers()
	for _, r := range records {
		first := s.apply(r, index)
		blocks := s.blocks // grows with the next record
		g.Go(func() error { return s.readCodes(f, r, blocks, first) })
	}
	return g.Wait()
}

// apply takes the names of a record in and returns the slot of its first entry.
func (s *snapshot) apply(r *record, index map[string]uint32) (first int) {
	for _, id := range r.stale {
		s.kill(id)
	}
	docs := make([]uint32, len(r.docs))
	for i := range r.docs {
		key := string(r.docs[i].append(nil))
		doc, ok := index[key]
		if !ok {
			doc = uint32(len(s.docs))
			s.docs = append(s.docs, r.docs[i])
			index[key] = doc
		}
		docs[i] = doc
	}
	for _, id := range r.ids {
		s.kill(id)
	}
	first = s.grow(len(r.ids))
	for i, id := range r.ids {
		slot := first + i
		s.name(slot, id, docs[r.doc[i]])
		b := s.blocks[slot/blockLen]
		b.scale[slot%blockLen] = r.scales[i]
		b.at[slot%blockLen] = r.floatsAt() + int64(4*s.dim*i)
	}
	return first
}

// readCodes reads the codes of r into the slots from first on.
func (s *snapshot) readCodes(f *os.File, r *record, blocks []*block, first int) error {
	var crc uint32
	at := r.codesAt()
	var buffer []byte
	for slot, end := first, first+r.entries; slot < end; {
		n := min(end-slot, blockLen-slot%blockLen)
		codes := blocks[slot/blockLen].codes[slot%blockLen*s.stride:]
		target := codes[:n*s.dim]
		if s.dim != s.stride {
			if buffer == nil {
				buffer = make([]byte, blockLen*s.dim)
			}
			target = buffer[:n*s.dim]
		}
		if _, err := f.ReadAt(target, at); err != nil {
			return err
		}
		crc = updateChecksum(crc, target)
		if s.dim != s.stride {
			for i := range n {
				copy(codes[i*s.stride:], target[i*s.dim:][:s.dim])
			}
		}
		slot += n
		at += int64(len(target))
	}
	if crc != r.checksums[1] {
		return &CorruptError{Path: f.Name(), Reason: fmt.Sprintf("the codes of the record at %d are damaged", r.at)}
	}
	return nil
}

// follow takes over what the writing process has added since snap, or its new
// file after a compaction. While one caller does so the others go on with what
// there is.
func (s *Store) follow(snap *snapshot) (*snapshot, error) {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return snap, nil // being rebuilt: what is open stays readable
	}
	if err != nil {
		return nil, fmt.Errorf("following vectors %s: %w", s.path, err)
	}
	own, err := snap.log.file.Stat()
	if errors.Is(err, os.ErrClosed) {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("following vectors %s: %w", s.path, err)
	}
	same := os.SameFile(info, own)
	if same && info.Size() == snap.log.end {
		return snap, nil
	}
	// An end that is not whole is not read again before the writer comes back.
	seen := fileState{size: info.Size(), modTime: info.ModTime().UnixNano()}
	if last := s.torn.Load(); same && last != nil && *last == seen || !s.mu.TryLock() {
		return snap, nil
	}
	defer s.mu.Unlock()
	if s.snap.Load() != snap { // another caller was faster, or Close
		if snap = s.snap.Load(); snap == nil {
			return nil, ErrClosed
		}
		return snap, nil
	}
	if !same || info.Size() < snap.log.end {
		// The old file is closed when the last search on it lets go of it.
		if err := s.load(); err != nil {
			return nil, fmt.Errorf("following vectors %s: %w", s.path, err)
		}
		return s.snap.Load(), nil
	}
	next, err := s.followTail(snap, info.Size())
	if err != nil {
		return nil, fmt.Errorf("following vectors %s: %w", s.path, err)
	}
	if next.log.end < info.Size() {
		s.torn.Store(&seen)
	}
	return next, nil
}

// fileState tells whether a file has changed.
type fileState struct{ size, modTime int64 }

func index(docs []payload) map[string]uint32 {
	index := make(map[string]uint32, len(docs))
	for i := range docs {
		index[string(docs[i].append(nil))] = uint32(i)
	}
	return index
}

// followTail takes over whole records behind those of snap. The writer may be
// in the middle of one, so each is checked in full.
func (s *Store) followTail(snap *snapshot, size int64) (*snapshot, error) {
	var records []*record
	l := &log{file: snap.log.file, end: snap.log.end}
	for {
		r, err := readRecordHeader(l.file, l.end, size, s.dim)
		if err != nil {
			return nil, err
		}
		if r == nil {
			break
		}
		ok, err := r.readNames(l.file)
		if ok && err == nil {
			ok, err = r.checkVectors(l.file)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		records = append(records, r)
		l.end = r.end()
	}
	if len(records) == 0 {
		return snap, nil
	}
	next := snap.next()
	next.log = l
	if err := next.add(l.file, records, s.docIndex); err != nil {
		s.docIndex = index(snap.docs) // without those of next, which is thrown away
		return nil, err
	}
	s.snap.Store(next)
	return next, nil
}
