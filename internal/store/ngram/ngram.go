// Package ngram records which trigrams occur in the lines of each file of a folder, so that
// a search for a string or a regular expression reads only the files that can match. It
// decides nothing else: the caller reads every candidate and looks for the pattern.
//
// The records are in one file of package kv, by path: size and times as varints, whether the
// file is text as a byte, and a Bloom filter of its trigrams. They are read into memory, and a
// search tests the filters of all files.
package ngram

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"cairn/internal/base/health"
	"cairn/internal/base/packed"
	"cairn/internal/store/kv"
)

// File is a file of the folder. Its size and times, in Unix nanoseconds, tell a later state
// of the file from the recorded one. ModTime is 0 if the file may have changed since
// without a trace in them.
type File struct {
	Path                      string
	Size, ModTime, ChangeTime int64
	// Text reports that the file is text, and can match.
	Text bool
}

// Options configures Open. Nil and the zero value mean the defaults.
type Options struct {
	// Rules names the rules by which the text of a file is made from its bytes. Records of
	// other rules are removed.
	Rules string
	// Held, if not nil, is called before each change of the file. It returns an error if
	// another process may own it.
	Held func() error
	// Logger receives warnings. Nil discards them.
	Logger *slog.Logger
}

// Index records the trigrams of files. It is safe for concurrent use.
type Index struct {
	path    string
	options Options

	mu       sync.Mutex
	db       *kv.DB // nil until its first use
	damage   error  // why the file cannot be used until Clear
	files    []Record
	at       map[string]int // by path, in files
	complete bool
}

// Record is the record of a file.
type Record struct {
	File
	filter []byte // empty if the file is not text
}

// The buckets of the file.
const (
	filesBucket = "files"
	rulesBucket = "rules"
)

// Open returns the Index in the file at path, which need not exist; "" is always empty. The
// first use reads the file. A damaged one counts as empty, and the next Update replaces it.
func Open(path string, o *Options) *Index {
	x := &Index{path: path, options: *cmp.Or(o, &Options{}), at: map[string]int{}}
	x.options.Logger = cmp.Or(x.options.Logger, slog.New(slog.DiscardHandler))
	return x
}

// errRules is returned for records of other rules.
var errRules = errors.New("made by other rules")

// load opens and reads the file at the first use. The caller holds x.mu.
func (x *Index) load() error {
	if x.db != nil || x.path == "" || x.damage != nil {
		return x.damage
	}
	if err := x.held(); err != nil {
		return err
	}
	err := x.open()
	if errors.Is(err, errRules) {
		if err = os.RemoveAll(x.path); err == nil {
			err = x.open()
		}
	}
	if err != nil && !errors.As(err, new(*kv.LockedError)) {
		x.damage = err
		x.options.Logger.Warn("the n-grams cannot be used before the next run of the indexer", "error", err)
	}
	return err
}

// open opens and reads the file. It fails with errRules for records of other rules.
func (x *Index) open() (err error) {
	db, err := kv.Open(x.path, &kv.Options{Owned: true})
	if err != nil {
		return err
	}
	x.forget()
	key, want := []byte(rulesBucket), []byte("1 "+x.options.Rules)
	err = db.Update(func(tx *kv.Tx) error {
		rules, err := tx.Bucket(rulesBucket)
		if err != nil {
			return err
		}
		if have := rules.Get(key); have == nil {
			return rules.Put(key, want)
		} else if !bytes.Equal(have, want) {
			return errRules
		}
		files, err := tx.Bucket(filesBucket)
		if err == nil {
			files.ForEach(func(path, value []byte) bool { x.put(decode(path, value)); return true })
		}
		return err
	})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	x.db = db
	return nil
}

func (x *Index) held() error {
	if x.options.Held == nil {
		return nil
	}
	return x.options.Held()
}

// Clear removes all records.
func (x *Index) Clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.clear()
}

func (x *Index) clear() {
	x.complete, x.damage = false, nil
	x.forget()
	if x.db != nil {
		_ = x.db.Close() // what it holds is removed
		x.db = nil
	}
	if x.path != "" && x.held() == nil {
		os.RemoveAll(x.path) // a file that remains is opened again
	}
}

// SetComplete records whether all files are recorded. It remains so until Clear.
func (x *Index) SetComplete(complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.complete = complete
}

// Files calls fn with the recorded files in no particular order, and whether their text can
// have lines that fulfil q. complete reports that all files are recorded. No method of x may
// be called meanwhile.
func (x *Index) Files(q *Query, fn func(f *File, can bool)) (complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.load(); err != nil {
		x.options.Logger.Debug("opening the n-grams", "error", err)
		return false
	}
	for i := range x.files {
		r := &x.files[i]
		fn(&r.File, r.Text && q.match(r.filter))
	}
	return x.complete
}

// Update stores records, and removes those of the removed paths. After an error the Index is
// empty. Calls of Update must not overlap.
func (x *Index) Update(records []Record, removed []string) error {
	x.mu.Lock()
	if x.damage != nil {
		x.clear()
	}
	err := cmp.Or(x.load(), x.held())
	db := x.db
	x.mu.Unlock()
	if err != nil || db == nil {
		return err
	}
	if err = db.Update(func(tx *kv.Tx) error {
		b, err := tx.Bucket(filesBucket)
		if err != nil {
			return err
		}
		for _, path := range removed {
			if err := b.Delete([]byte(path)); err != nil {
				return err
			}
		}
		for _, r := range records {
			if err := b.Put([]byte(r.Path), r.encode()); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		x.Clear()
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, path := range removed {
		x.remove(path)
	}
	for _, r := range records {
		x.put(r)
	}
	return nil
}

// put, remove and forget change the records in memory. The caller holds x.mu.
func (x *Index) put(r Record) {
	x.remove(r.Path)
	x.at[r.Path] = len(x.files)
	x.files = append(x.files, r)
}

func (x *Index) remove(path string) {
	if i, ok := x.at[path]; ok {
		last := len(x.files) - 1
		x.files[i], x.files[last] = x.files[last], Record{}
		x.files, x.at[x.files[i].Path] = x.files[:last], i
		delete(x.at, path)
	}
}

func (x *Index) forget() {
	x.files = nil
	clear(x.at)
}

// Close closes the file.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	db := x.db
	x.db, x.path, x.complete = nil, "", false
	x.forget()
	if db == nil {
		return nil
	}
	return db.Close()
}

// Verify reads the file and compares its checksums. An Index without a file has no name.
func (x *Index) Verify() (f health.File, err error) {
	x.mu.Lock()
	err = x.load()
	db, damage := x.db, x.damage
	x.mu.Unlock()
	if damage != nil {
		return health.File{Name: filepath.Base(x.path), Problems: []string{damage.Error()}}, nil
	}
	if err != nil || db == nil {
		return f, err
	}
	return db.Verify()
}

// encode returns the stored value of r.
func (r *Record) encode() []byte {
	text := byte(0)
	if r.Text {
		text = 1
	}
	value := make([]byte, 0, 3*binary.MaxVarintLen64+1+len(r.filter))
	for _, n := range []int64{r.Size, r.ModTime, r.ChangeTime} {
		value = binary.AppendUvarint(value, uint64(n))
	}
	return append(append(value, text), r.filter...)
}

func decode(path, value []byte) Record {
	p := packed.Reader{Rest: string(value)}
	f := File{Path: string(path), Size: int64(p.Number()), ModTime: int64(p.Number()), ChangeTime: int64(p.Number()), Text: p.Byte() == 1}
	return Record{f, []byte(p.Rest)}
}
