package kv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/health"
)

// A snapshot is a copy of all records in a second file, from which Recover makes a new file.
// Its first record is the number of the commit. With Options.Snapshots, Close and, at most
// every snapshotEvery, Update replace the snapshot if there are changes.
const snapshotEvery = time.Minute

func snapshotOf(path string) string { return path + ".snapshot" }

// record is a record of a snapshot.
type record struct {
	Commit uint64 `json:"commit,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Key    []byte `json:"key,omitempty"`
	Value  []byte `json:"value,omitempty"`
}

// lost returns why a file lacks records of its snapshot: it is empty, missing, older than the
// snapshot or no regular file. It returns "" for any other file.
func lost(path string) (reason string) {
	s, err := readSnapshot(path, 256) // the first line, before the commit of the file, which may grow
	if err != nil || s.written.IsZero() {
		return ""
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() == 0:
		return "it is empty, its snapshot is not"
	case err == nil && !info.Mode().IsRegular():
		return "it is not a regular file, its snapshot is"
	case errors.Is(err, fs.ErrNotExist):
		return "it is missing, its snapshot is not"
	}
	if v := VersionOf(path); v.info != nil && v.last < s.commit {
		return "it is older than its snapshot"
	}
	return ""
}

// snapshotIfDue writes a snapshot if the file has changed and the snapshot is at least age
// old. It ignores errors, because the change itself is durable.
func (db *DB) snapshotIfDue(age time.Duration) {
	if !db.options.Snapshots || !db.changed.Load() || !db.snapshotting.TryLock() {
		return
	}
	defer db.snapshotting.Unlock()
	info, err := os.Stat(snapshotOf(db.path))
	if err == nil && time.Since(info.ModTime()) < age {
		return
	}
	err = atomicfile.WriteBy(snapshotOf(db.path), 0o600, func(f *os.File) error {
		return db.view(func(tx *Tx) error { return tx.writeRecords(f) })
	})
	if err == nil {
		db.changed.Store(false)
	}
}

func (t *Tx) writeRecords(to io.Writer) error {
	w := NewLineWriter(to)
	w.Write(record{Commit: uint64(t.ID())})
	if err := t.each(func(bucket string, key, value []byte) {
		w.Write(record{Bucket: bucket, Key: key, Value: value})
	}); err != nil {
		return err
	}
	return w.Close()
}

// snapshot is the content of a snapshot.
type snapshot struct {
	commit  uint64    // 0 if there is no snapshot, or its first line is damaged
	written time.Time // zero if there is no snapshot
	records []record
	damaged int // lines
}

// readSnapshot reads at most limit bytes of the snapshot of the file at path.
func readSnapshot(path string, limit int64) (s snapshot, err error) {
	f, err := os.Open(snapshotOf(path))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return s, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		s.written = info.ModTime()
	}
	s.damaged, err = ReadLines(io.LimitReader(f, limit), func(r record) error {
		if r.Commit > 0 {
			s.commit = r.Commit
		} else {
			s.records = append(s.records, r)
		}
		return nil
	})
	if errors.Is(err, syscall.EISDIR) {
		s.damaged, err = 1, nil
	}
	return s, err
}

// DamagedSuffix is the suffix of a damaged file that Recover has replaced.
const DamagedSuffix = ".damaged"

// Recover replaces a damaged file by a new one with the records of its snapshot. It waits
// for other processes that have the file open. It returns the problems and what it did, or
// nothing if the file is not damaged.
func Recover(path string) (found health.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("recovering %s: %w", path, err)
		}
	}()
	problem, err := problemOf(path)
	if problem == "" {
		return found, err
	}
	s, err := readSnapshot(path, math.MaxInt64)
	if err != nil {
		return found, err
	}
	found.Problems = []string{problem}
	if s.damaged > 0 {
		found.Problems = append(found.Problems, fmt.Sprintf("%d lines of its snapshot are damaged", s.damaged))
	}
	found.Repaired = fmt.Sprintf("%s was damaged (%s): %s", path, problem, s.loss(path))
	if _, err := os.Stat(path); err == nil {
		found.Repaired += "; the damaged file is kept as " + path + DamagedSuffix
	}
	return found, replace(path, path+DamagedSuffix, s.records)
}

// loss says what the file at path loses if the records of s replace its own.
func (s *snapshot) loss(path string) string {
	if s.written.IsZero() {
		return "it has no snapshot, so that its records are lost"
	}
	lost := "changes after it are lost"
	if v := VersionOf(path); v.info != nil && s.damaged == 0 {
		lost = "nothing is lost"
		if v.last > s.commit {
			lost = fmt.Sprintf("the last %d changes are lost", v.last-s.commit)
		}
	}
	return fmt.Sprintf("%d records were recovered from the snapshot of %s; %s", len(s.records), s.written.Format(time.DateTime), lost)
}

// Repair is Recover, but also replaces a damaged snapshot of an undamaged file. It returns
// what it did.
func Repair(path string) (did string, err error) {
	found, err := Recover(path)
	if err != nil || found.Repaired != "" {
		return found.Repaired, err
	}
	db, err := Open(path, &Options{Snapshots: true, Timeout: sharedTimeout})
	if err != nil {
		return "", err
	}
	db.changed.Store(true)
	err = os.RemoveAll(snapshotOf(path)) // no file can replace a directory
	return "its damaged snapshot is replaced", errors.Join(err, db.Close())
}

// problemOf returns the damage of a file, "" for none.
func problemOf(path string) (string, error) {
	db, err := Open(path, &Options{Snapshots: true, Timeout: sharedTimeout})
	if err == nil {
		_, err = db.check()
		err = errors.Join(err, db.Close())
	}
	if corrupt, ok := errors.AsType[*CorruptError](err); ok {
		return corrupt.Reason, nil
	}
	return "", err
}

// replace renames the file at path, if it exists, to damaged, and gives its path to a new file with
// records, and the path of its snapshot to a new snapshot.
func replace(path, damaged string, records []record) error {
	next := path + ".recovered"
	if err := errors.Join(os.RemoveAll(next), os.RemoveAll(snapshotOf(next))); err != nil {
		return err
	}
	db, err := Open(next, &Options{Snapshots: true})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *Tx) error {
		for _, r := range records {
			b, err := tx.Bucket(r.Bucket)
			if err == nil {
				err = b.Put(r.Key, r.Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() { // a directory cannot replace a file
		if err := os.RemoveAll(damaged); err != nil {
			return err
		}
	}
	for _, step := range [][2]string{{path, damaged}, {snapshotOf(next), snapshotOf(path)}, {next, path}} {
		if err := os.Rename(step[0], step[1]); err != nil && !(step[0] == path && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// Verify reads the whole file at its last commit and compares all checksums. A damaged
// snapshot is a problem too.
func (db *DB) Verify() (health.File, error) {
	found, err := db.check()
	if corrupt, ok := errors.AsType[*CorruptError](err); ok {
		found.Problems, err = append(found.Problems, corrupt.Reason), nil
	}
	if err != nil || !db.options.Snapshots {
		return found, err
	}
	s, err := readSnapshot(db.path, math.MaxInt64)
	if s.damaged > 0 {
		found.Problems = append(found.Problems, "the snapshot "+filepath.Base(snapshotOf(db.path))+" is damaged")
	}
	return found, err
}

// check reads the whole file. It fails with a *CorruptError if the file is damaged.
func (db *DB) check() (found health.File, err error) {
	found.Name = filepath.Base(db.path)
	err = db.View(func(tx *Tx) error {
		f, err := os.Open(db.path)
		if err != nil {
			return fmt.Errorf("verifying %s: %w", db.path, err)
		}
		defer f.Close()
		h, before, err := readHeaders(f)
		if h.tx != uint64(tx.ID()) { // another transaction has ended since tx began
			h = before
		}
		if err == nil && h.tx == uint64(tx.ID()) { // nothing changes these pages until tx ends
			err = checkPages(f, h)
		}
		if err != nil {
			return &CorruptError{Path: db.path, Reason: err.Error()}
		}
		found.Bytes = tx.tx.Size()
		return tx.each(func(string, []byte, []byte) { found.Records++ })
	})
	return found, err
}

// each calls fn with every record. Records may not be missing.
func (t *Tx) each(fn func(bucket string, key, value []byte)) error {
	for _, name := range t.buckets() {
		b, err := t.Bucket(name)
		if err != nil {
			return err
		}
		b.ForEach(func(key, value []byte) bool {
			fn(name, key, value)
			return true
		})
	}
	return nil
}
