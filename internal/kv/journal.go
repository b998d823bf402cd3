package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A journal file, format 1. Numbers are little-endian, checksums CRC-32C.
//
//	magic    8 bytes "cairnlog"
//	version  uint32
//	epoch    uint64
//	checksum uint32, of all above
//	records  to the end: length uint32, checksum of the payload uint32, payload
//
// The first record that is not whole ends the file: it is what a killed
// process was writing, and the next writer cuts it off.
const (
	journalMagic   = "cairnlog"
	journalVersion = 1
	journalHeader  = 24
	// MaxRecord bounds one record of a journal in bytes.
	MaxRecord = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// syncEvery is how long a record may stay in the memory of the operating
// system before it is written to the disk.
const syncEvery = time.Second

// lockLimit is how long a journal waits for another process. They hold it for
// microseconds, or for the length of a transaction.
const lockLimit = 20 * time.Second

// Journal is an append-only file of records beside a database, for changes
// that are too small and too many for a transaction each. Many processes share
// one. A record is kept from the end of Append on whatever becomes of the
// process; a failure of the machine or its power may take the records of the
// last second, never a part of one.
//
// Its records are of an epoch. Who has put them into the database stores there,
// in the same transaction, that the next epoch has begun, and then Resets the
// journal: records of an epoch that is over are none.
//
// Epochs count from 1. It is safe for concurrent use; Read, Append and Reset are called within Lock.
type Journal struct {
	path    string
	prepare func() error

	hold sync.Mutex // held within Lock
	lock *os.File   // nil until needed

	mu      sync.Mutex // guards what follows
	file    *os.File   // nil while there is none
	dirty   *time.Timer
	syncing sync.WaitGroup
	closed  bool
}

// JournalMark is how far a journal has come. No journal is the zero mark.
type JournalMark struct {
	Epoch uint64
	Size  int64 // bytes
}

// OpenJournal returns the journal at path. It creates nothing before the first
// Append, which calls prepare, unless that is nil. It is nil on systems that
// have no locks which end with their process.
func OpenJournal(path string, prepare func() error) *Journal {
	if !canLock {
		return nil
	}
	if prepare == nil {
		prepare = func() error { return nil }
	}
	return &Journal{path: path, prepare: prepare}
}

// Lock keeps other processes from writing and, when exclusive, from reading,
// until release is called.
func (j *Journal) Lock(exclusive bool) (release func(), err error) {
	j.hold.Lock()
	defer func() {
		if err != nil {
			j.hold.Unlock()
			err = fmt.Errorf("locking %s: %w", j.path, err)
		}
	}()
	if exclusive {
		if err := j.prepare(); err != nil {
			return nil, err
		}
	}
	if j.lock == nil {
		flag := os.O_RDONLY
		if exclusive {
			flag |= os.O_CREATE
		}
		j.lock, err = os.OpenFile(j.path+".lock", flag, 0o644)
		if err != nil && !exclusive { // nobody has written yet, or nobody can
			j.lock = nil
			return j.hold.Unlock, nil
		}
		if err != nil {
			j.lock = nil
			return nil, err
		}
	}
	if err := lockFor(j.lock, exclusive, lockLimit); err != nil {
		if errors.Is(err, errBusy) {
			err = &LockedError{Path: j.path, Waited: lockLimit}
		}
		return nil, err
	}
	return func() {
		_ = unlock(j.lock) // an open file can always be unlocked
		j.hold.Unlock()
	}, nil
}

// Mark says how far the journal has come, without a lock.
func (j *Journal) Mark() (JournalMark, error) {
	f, err := j.open(false)
	if f == nil || err != nil {
		return JournalMark{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return JournalMark{}, err
	}
	epoch, err := readEpoch(f)
	return JournalMark{epoch, info.Size()}, err
}

// open returns the file, nil when there is none and it is not to be made.
func (j *Journal) open(create bool) (*os.File, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, ErrClosed
	}
	if j.file != nil {
		return j.file, nil
	}
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	f, err := os.OpenFile(j.path, flag, 0o600)
	if errors.Is(err, fs.ErrPermission) && !create {
		f, err = os.Open(j.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j.file = f
	return f, nil
}

// readEpoch reads the header; 0 when there is no whole one.
func readEpoch(f *os.File) (uint64, error) {
	var b [journalHeader]byte
	if _, err := f.ReadAt(b[:], 0); errors.Is(err, io.EOF) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	if string(b[:8]) != journalMagic || binary.LittleEndian.Uint32(b[20:]) != crc32.Checksum(b[:20], castagnoli) {
		return 0, nil // what a failure of power has left of it
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != journalVersion {
		return 0, &CorruptError{Path: f.Name(), Reason: fmt.Sprintf("format %d, want %d", v, journalVersion)}
	}
	return binary.LittleEndian.Uint64(b[12:]), nil
}

// Read calls fn with each record of epoch from byte from on, 0 for the first,
// and returns where it ended. Payloads are valid during the call.
func (j *Journal) Read(epoch uint64, from int64, fn func(payload []byte) error) (end int64, err error) {
	f, err := j.open(false)
	if f == nil || err != nil {
		return 0, err
	}
	if have, err := readEpoch(f); err != nil || have != epoch {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	end = max(from, journalHeader)
	rest := make([]byte, max(0, info.Size()-end))
	n, err := f.ReadAt(rest, end)
	if err != nil && !errors.Is(err, io.EOF) {
		return end, fmt.Errorf("reading %s: %w", j.path, err)
	}
	for rest = rest[:n]; len(rest) >= 8; {
		size := int(binary.LittleEndian.Uint32(rest))
		if size > MaxRecord || len(rest) < 8+size || binary.LittleEndian.Uint32(rest[4:]) != crc32.Checksum(rest[8:8+size], castagnoli) {
			break
		}
		if err := fn(rest[8 : 8+size]); err != nil {
			return end, err
		}
		end += int64(8 + size)
		rest = rest[8+size:]
	}
	return end, nil
}

// Append adds a record of epoch at byte end, which Read has returned, and
// returns the new end. What lies behind end is cut off. After an error the
// record is not there.
func (j *Journal) Append(epoch uint64, end int64, payload []byte) (int64, error) {
	if len(payload) > MaxRecord {
		return end, fmt.Errorf("writing %s: a record of %d bytes, want at most %d", j.path, len(payload), MaxRecord)
	}
	f, err := j.open(true)
	if err != nil {
		return end, fmt.Errorf("writing %s: %w", j.path, err)
	}
	var b []byte
	at := end
	if end < journalHeader {
		b, at = header(epoch), 0
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	b = append(b, payload...)
	info, err := f.Stat()
	if err == nil && info.Size() > at {
		err = f.Truncate(at)
	}
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	if err != nil {
		return end, fmt.Errorf("writing %s: %w", j.path, errors.Join(err, f.Truncate(at)))
	}
	j.syncLater(f)
	return at + int64(len(b)), nil
}

func header(epoch uint64) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(journalMagic), journalVersion)
	b = binary.LittleEndian.AppendUint64(b, epoch)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Seal is called before the records of an epoch are put into the database. Lock
// keeps other writers out, so there is nothing to do.
func (j *Journal) Seal(uint64, int64) error { return nil }

// Reset begins an epoch without records.
func (j *Journal) Reset(epoch uint64) error {
	f, err := j.open(false)
	if f == nil || err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(header(epoch), 0)
	}
	if err != nil {
		return fmt.Errorf("emptying %s: %w", j.path, err)
	}
	return nil
}

// syncLater writes the file to the disk within syncEvery.
func (j *Journal) syncLater(f *os.File) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dirty != nil || j.closed {
		return
	}
	j.syncing.Add(1)
	j.dirty = time.AfterFunc(syncEvery, func() {
		defer j.syncing.Done()
		j.mu.Lock()
		j.dirty = nil
		j.mu.Unlock()
		_ = f.Sync() // the next one, or Close, meets the same failure
	})
}

// Close writes what is left to the disk. Closing twice is not an error.
func (j *Journal) Close() error {
	j.hold.Lock()
	defer j.hold.Unlock()
	j.mu.Lock()
	if j.dirty != nil && j.dirty.Stop() {
		j.syncing.Done()
	}
	unsynced := j.dirty != nil
	f, lock := j.file, j.lock
	j.closed, j.file, j.lock, j.dirty = true, nil, nil, nil
	j.mu.Unlock()
	j.syncing.Wait()
	var err error
	if f != nil {
		if unsynced {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if lock != nil {
		err = errors.Join(err, lock.Close())
	}
	if err != nil {
		return fmt.Errorf("closing %s: %w", j.path, err)
	}
	return nil
}
