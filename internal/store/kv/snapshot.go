package kv

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"cairn/internal/base/atomicfile"
)

// A snapshot is a copy of all records in a second file, from which Recover restores lost
// records. Each line is a JSON object with a checksum. The first line, which has no
// bucket, holds the transaction and the number of records. With Options.Snapshots, Close
// and, at most every snapshotEvery, Update write a snapshot if there are changes. A
// snapshot replaces the newest one. If that is at least snapshotKept old, it is kept under
// another name; at most two are kept in this way.
const (
	snapshotEvery = time.Minute
	snapshotKept  = time.Hour
)

// snapshotFiles returns the paths of the snapshots of a file, the newest first.
func snapshotFiles(path string) []string {
	return []string{path + ".snapshot", path + ".snapshot.1", path + ".snapshot.2"}
}

// emptied reports whether a file is empty and has a snapshot.
func emptied(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return false
	}
	_, err = os.Stat(snapshotFiles(path)[0])
	return err == nil
}

// record is a line of a snapshot, with the checksum of a stored value.
type record struct {
	Bucket string `json:"bucket"`
	Key    []byte `json:"key"`
	Value  []byte `json:"value"`
	Sum    uint32 `json:"sum"`
}

func newRecord(bucket string, key, value []byte) record {
	return record{bucket, key, value, checksumOf(seed(bucket), key, value)}
}

// snapshotIfDue writes a snapshot if the file has changed and the newest snapshot is at
// least age old. It ignores errors, because the change itself is durable.
func (db *DB) snapshotIfDue(age time.Duration) {
	if !db.options.Snapshots || !db.changed.Load() || !db.snapshotting.TryLock() {
		return
	}
	defer db.snapshotting.Unlock()
	info, err := os.Stat(snapshotFiles(db.path)[0])
	if err == nil && time.Since(info.ModTime()) < age {
		return
	}
	if db.writeSnapshot(err == nil && time.Since(info.ModTime()) >= snapshotKept) == nil {
		db.changed.Store(false)
	}
}

func (db *DB) writeSnapshot(keep bool) error {
	names := snapshotFiles(db.path)
	f, err := atomicfile.Create(names[0], 0o600)
	if err != nil {
		return err
	}
	defer f.Discard()
	w := bufio.NewWriter(f)
	if err := db.view(func(tx *Tx) error { return tx.writeRecords(w) }); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if keep {
		for i := len(names) - 1; i > 0; i-- {
			_ = os.Rename(names[i-1], names[i]) // at first there is no older snapshot
		}
	}
	return f.Commit()
}

// writeRecords writes the lines of a snapshot.
func (t *Tx) writeRecords(w io.Writer) error {
	var names []string
	total := uint64(0)
	err := t.tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
		if string(name) != sumsBucket {
			names = append(names, string(name))
			total += t.digest(string(name)).count
		}
		return nil
	})
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(t.tx.ID())), total)
	if err := out.Encode(newRecord("", nil, head)); err != nil {
		return err
	}
	for _, name := range names {
		b, err := t.Bucket(name)
		if err != nil {
			return err
		}
		b.ForEach(func(key, value []byte) bool {
			err = out.Encode(newRecord(name, key, value))
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// records maps buckets and keys to values.
type records map[string]map[string][]byte

func (r records) put(bucket string, key, value []byte) {
	if r[bucket] == nil {
		r[bucket] = map[string][]byte{}
	}
	r[bucket][string(key)] = slices.Clone(value)
}

func (r records) count() (n int) {
	for _, b := range r {
		n += len(b)
	}
	return n
}

// readSnapshot returns the undamaged records of a snapshot, its transaction, and whether
// it is complete. A missing snapshot has no records.
func readSnapshot(path string) (found records, tx uint64, complete bool) {
	found = records{}
	f, err := os.Open(path)
	if err != nil {
		return found, 0, false
	}
	defer f.Close()
	total, damaged := -1, false
	for in := bufio.NewReader(f); err == nil; {
		var line []byte
		line, err = in.ReadBytes('\n')
		var r record
		if len(line) == 0 {
			break
		}
		if json.Unmarshal(line, &r) != nil || checksumOf(seed(r.Bucket), r.Key, r.Value) != r.Sum {
			damaged = true
			continue
		}
		if r.Bucket == "" && len(r.Value) == 16 {
			tx, total = binary.LittleEndian.Uint64(r.Value), int(binary.LittleEndian.Uint64(r.Value[8:]))
			continue
		}
		found.put(r.Bucket, r.Key, r.Value)
	}
	return found, tx, !damaged && found.count() == total
}

// Recovery is the result of Recover.
type Recovery struct {
	Path string `json:"path"`
	// Records counts the records of the recovered file, FromSnapshot those of them that
	// came from a snapshot.
	Records      int `json:"records"`
	FromSnapshot int `json:"from_snapshot"`
	// Incomplete reports that records may be lost.
	Incomplete bool `json:"incomplete"`
	// Damaged is the path of the damaged file.
	Damaged  string   `json:"damaged"`
	Problems []string `json:"problems"`
}

func (r *Recovery) String() string {
	s := fmt.Sprintf("%s was damaged (%s): %d records were recovered, %d of them from a snapshot; the damaged file is kept as %s", r.Path, r.Problems[0], r.Records, r.FromSnapshot, r.Damaged)
	if r.Incomplete {
		s += "; newer records may be lost"
	}
	return s
}

// DamagedSuffix is the suffix of a damaged file that Recover has replaced.
const DamagedSuffix = ".damaged"

// Recover replaces a damaged file by a new one with its readable records and the records
// of its snapshots. No process may have the file open. Recover returns nil if the file is
// not damaged.
func Recover(path string) (*Recovery, error) {
	r, err := recoverFile(path)
	if err != nil {
		return nil, fmt.Errorf("recovering %s: %w", path, err)
	}
	return r, nil
}

func recoverFile(path string) (*Recovery, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	kept := records{}
	s := scanFile(f, false, kept.put)
	if len(s.digests) == 0 && s.records == 0 { // an earlier version wrote no checksums
		kept = records{}
		if s = scanFile(f, true, kept.put); s.records > 0 {
			s.problem("it has no checksums")
		}
	}
	if len(s.problems) == 0 {
		return nil, nil
	}
	r := &Recovery{Path: path, Damaged: path + DamagedSuffix, Problems: s.problems}
	r.FromSnapshot, r.Incomplete = kept.fill(s, path)
	r.Records = kept.count()
	return r, kept.replace(path, r.Damaged)
}

// fill adds the records that only the snapshots have. It returns their number, and whether
// further records may be lost.
func (r records) fill(s *scan, path string) (added int, incomplete bool) {
	whole := map[string]bool{} // buckets that have all their records
	for name, want := range s.digests {
		whole[name] = s.found[name] != nil && s.found[name].equal(want)
	}
	incomplete = true
	for _, name := range snapshotFiles(path) {
		snapshot, tx, complete := readSnapshot(name)
		if complete && tx > s.header.tx { // the file has lost its last commit
			before := r.count()
			clear(r)
			maps.Copy(r, snapshot)
			return max(0, r.count()-before), false
		}
		for bucket, values := range snapshot {
			if whole[bucket] {
				continue
			}
			for key, value := range values {
				if _, ok := r[bucket][key]; !ok {
					r.put(bucket, []byte(key), value)
					added++
				}
			}
		}
		if complete {
			return added, tx < s.header.tx && len(s.problems) > 0 && !allWhole(whole)
		}
	}
	return added, incomplete
}

func allWhole(whole map[string]bool) bool {
	for _, ok := range whole {
		if !ok {
			return false
		}
	}
	return len(whole) > 0
}

// replace writes the records to a new file, renames the file at path to damaged, and gives
// the new file its path.
func (r records) replace(path, damaged string) error {
	next := path + ".recovered"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	db, err := Open(next, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *Tx) error {
		for _, bucket := range slices.Sorted(maps.Keys(r)) {
			b, err := tx.Bucket(bucket)
			if err != nil {
				return err
			}
			for _, key := range slices.Sorted(maps.Keys(r[bucket])) {
				if err := b.Put([]byte(key), r[bucket][key]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(path, damaged); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}
