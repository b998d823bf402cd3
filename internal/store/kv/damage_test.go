package kv

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cairn/internal/base/testutil"
)

// fill writes records of several sizes, a large one among them, and returns them.
func fill(t *testing.T, db *DB) map[string]string {
	t.Helper()
	want := map[string]string{}
	for i := range 400 {
		want[fmt.Sprintf("b%d/key %04d", i%3, i)] = strings.Repeat(fmt.Sprint("value ", i, " "), i%40)
	}
	want["b0/large"] = strings.Repeat("large ", 5000)
	for _, part := range []string{"b0", "b1", "b2"} { // several commits, so that pages are free
		if err := db.Update(func(tx *Tx) error {
			b, err := tx.Bucket(part)
			if err != nil {
				return err
			}
			for name, value := range want {
				if key, ok := strings.CutPrefix(name, part+"/"); ok {
					if err := b.Put([]byte(key), []byte(value)); err != nil {
						return err
					}
				}
			}
			return b.Delete([]byte("absent"))
		}); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

// readAll reads every record.
func readAll(db *DB) (map[string]string, error) {
	got := map[string]string{}
	err := db.View(func(tx *Tx) error {
		for _, name := range []string{"b0", "b1", "b2"} {
			b, err := tx.Bucket(name)
			if err != nil {
				return err
			}
			b.ForEach(func(key, value []byte) bool {
				got[name+"/"+string(key)] = string(value)
				return true
			})
		}
		return nil
	})
	return got, err
}

func parsed(content []byte) (header, error) {
	h, _, err := readHeaders(bytes.NewReader(content))
	return h, err
}

// faults are kinds of damage to the bytes of a file.
var faults = []func(r *rand.Rand, b []byte) []byte{
	func(r *rand.Rand, b []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b },
	func(r *rand.Rand, b []byte) []byte {
		at := r.IntN(len(b) - 16)
		for i := range 16 {
			b[at+i] = byte(r.Uint32())
		}
		return b
	},
	func(r *rand.Rand, b []byte) []byte { clear(b[r.IntN(len(b)/4096)*4096:][:4096]); return b },
	func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] },
	func(_ *rand.Rand, b []byte) []byte { return append(b, strings.Repeat("garbage ", 700)...) },
	func(*rand.Rand, []byte) []byte { return nil },
}

// TestDamageIsFoundAndRecovered damages a file in many ways. No read returns a wrong
// or an incomplete result, or panics, and Recover brings every record back.
func TestDamageIsFoundAndRecovered(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.db")
	db := open(t, whole, &Options{Snapshots: true})
	want := fill(t, db)
	if c, err := db.Verify(); err != nil || len(c.Problems) > 0 || c.Records != len(want) {
		t.Fatalf("Verify of a whole file: %+v, %v", c, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := parsed(content); err != nil {
		t.Fatal(err)
	} else {
		content = content[:h.pages*uint64(h.pageSize)] // the rest is not in use
	}
	snapshot, err := os.ReadFile(whole + ".snapshot")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	tries := testutil.Few(600)
	for n := range tries {
		path := filepath.Join(dir, fmt.Sprint(n, ".db"))
		fault := n % len(faults)
		if err := errors.Join(os.WriteFile(path, faults[fault](r, append([]byte(nil), content...)), 0o600), os.WriteFile(path+".snapshot", snapshot, 0o600)); err != nil {
			t.Fatal(err)
		}
		db, err := Open(path, &Options{Snapshots: true})
		var got map[string]string
		if err == nil {
			got, err = readAll(db)
			if err == nil && !maps.Equal(got, want) {
				t.Errorf("fault %d of kind %d: %d records of %d, or others, without an error", n, fault, len(got), len(want))
			}
			db.Close()
		}
		if err == nil {
			continue
		}
		found++
		if _, ok := errors.AsType[*CorruptError](err); !ok {
			t.Errorf("fault %d of kind %d: %v, want a *CorruptError", n, fault, err)
		}
		if report, err := Recover(path); err != nil || !strings.Contains(report.Repaired, fmt.Sprint(len(want), " records were recovered")) || strings.Contains(report.Repaired, "the last") {
			t.Fatalf("fault %d of kind %d: recovering: %+v, %v", n, fault, report, err)
		}
		db = open(t, path, &Options{Snapshots: true})
		if got, err := readAll(db); err != nil || !maps.Equal(got, want) {
			t.Errorf("fault %d of kind %d: recovered %d records of %d, %v", n, fault, len(got), len(want), err)
		}
		db.Close()
		os.Remove(path)
		os.Remove(path + ".damaged")
	}
	t.Logf("%d of %d faults were found, the others changed nothing", found, tries)
	if found < tries/2 {
		t.Errorf("%d of %d faults were found, want more", found, tries)
	}
}

// spoil flips a bit of every place at which the file at path has text.
func spoil(t *testing.T, path, text string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.ReplaceAll(content, []byte(text), []byte(text[:len(text)-1]+string(text[len(text)-1]^1)))
	if bytes.Equal(damaged, content) {
		t.Fatalf("%s has no %q", path, text)
	}
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecoverSaysWhatIsLost damages a file after changes that its snapshot lacks: the
// records are those of the snapshot, and the report counts the lost changes.
func TestRecoverSaysWhatIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	db := open(t, path, &Options{Snapshots: true})
	want := fill(t, db)
	db.Close()
	db = open(t, path, nil)
	put(t, db, "new", "one")
	put(t, db, "newer", "two")
	db.Close()
	spoil(t, path, "value 33 value 33")
	r, err := Recover(path)
	if err != nil || !strings.Contains(r.Repaired, fmt.Sprint(len(want), " records")) || !strings.Contains(r.Repaired, "the last 2 changes are lost") {
		t.Fatalf("Recover: %v, %v, want all records of the snapshot", r, err)
	}
	db = open(t, path, nil)
	if got, err := readAll(db); err != nil || !maps.Equal(got, want) {
		t.Errorf("recovered %d records of %d, %v", len(got), len(want), err)
	}
	db.Close()
	if again, err := Recover(path); again.Problems != nil || err != nil {
		t.Errorf("recovering a whole file: %+v, %v", again, err)
	}
	spoil(t, path, "value 33 value 33")
	spoil(t, path+".snapshot", `{"sum":1`)
	if r, err := Recover(path); err != nil || !strings.Contains(r.Repaired, "; changes after it are lost") || len(r.Problems) != 2 {
		t.Errorf("with a damaged snapshot: %+v, %v, want its undamaged records", r, err)
	}
	spoil(t, path, "value 34 value 34")
	if err := os.Remove(path + ".snapshot"); err != nil {
		t.Fatal(err)
	}
	if r, err := Recover(path); err != nil || !strings.Contains(r.Repaired, "its records are lost") {
		t.Errorf("without a snapshot: %v, %v", r, err)
	}
}

// TestMissingFileIsRecovered removes a file, empties it, and replaces it by an older copy:
// both a reader and a check get the records of its snapshot. A file without a snapshot is new.
func TestMissingFileIsRecovered(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for name, spoil := range map[string]func(path string) error{
			"missing": os.Remove,
			"empty":   func(path string) error { return os.Truncate(path, 0) },
			"older":   func(path string) error { return os.Rename(path+".copy", path) },
		} {
			path := filepath.Join(t.TempDir(), "kv.db")
			db := open(t, path, &Options{Snapshots: true})
			want := fill(t, db)
			db.Close()
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path+".copy", content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			db = open(t, path, &Options{Snapshots: true})
			put(t, db, "later", "change")
			want["b/later"] = "change"
			db.Close()
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			f := NewFile(path, &FileOptions{Shared: shared})
			var got map[string]string
			if err := f.View(func(tx *Tx) (err error) {
				got = map[string]string{}
				return tx.each(func(bucket string, key, value []byte) { got[bucket+"/"+string(key)] = string(value) })
			}); err != nil || len(got) != len(want) {
				t.Errorf("%s, shared %v: %d records of %d, %v", name, shared, len(got), len(want), err)
			}
			found, err := f.Part().Check(t.Context())
			if err != nil || len(found.Problems) == 0 || !strings.Contains(found.Problems[0], name) || !strings.Contains(found.Repaired, "records were recovered") {
				t.Errorf("%s, shared %v: verify finds %+v, %v", name, shared, found, err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if reason := lost(filepath.Join(t.TempDir(), "new.db")); reason != "" {
		t.Errorf("a file that never was: %s", reason)
	}
}

// TestPanicOfACallerGoesOn makes sure that a caller's own mistake is not taken for
// damage.
func TestPanicOfACallerGoesOn(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "kv.db"), nil)
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "index out of range") {
			t.Errorf("recovered %v, want the caller's panic", v)
		}
		put(t, db, "k", "the file is still usable")
	}()
	var none []int
	_ = db.Update(func(*Tx) error { none[len(none)]++; return nil })
}

// TestFullDiskIsNoDamage reports an error of the system as it is.
func TestFullDiskIsNoDamage(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, fmt.Errorf("writing: %w", syscall.EDQUOT)} {
		if !isSystem(err) {
			t.Errorf("%v is taken for damage", err)
		}
	}
	if isSystem(errors.New("unexpected EOF")) {
		t.Error("a file that ends too early is not taken for damage")
	}
}

// FuzzPages checks any bytes as a file: the check ends, and does not panic.
func FuzzPages(f *testing.F) {
	path := filepath.Join(f.TempDir(), "kv.db")
	db, err := Open(path, nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := db.Update(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		return b.Put([]byte("key"), []byte("value"))
	}); err != nil {
		f.Fatal(err)
	}
	db.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content[:8*4096], 3*4096+20, byte(7))
	f.Fuzz(func(t *testing.T, content []byte, at int, with byte) {
		if len(content) > 0 {
			content[uint(at)%uint(len(content))] ^= with
		}
		if h, err := parsed(content); err == nil {
			_ = checkPages(bytes.NewReader(content), h)
		}
	})
}

// TestSharedFindsMissingRecords flips a bit of a key, so that looking for it finds nothing:
// the first transaction of a process notices and recovers the file.
func TestSharedFindsMissingRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	shared := NewFile(path, &FileOptions{Shared: true})
	if err := shared.Update(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		return b.Put([]byte("a long key"), []byte("value"))
	}); err != nil {
		t.Fatal(err)
	}
	if err := shared.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, "a long key")
	shared = NewFile(path, &FileOptions{Shared: true})
	defer shared.Close()
	got := ""
	if err := shared.View(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		got = string(b.Get([]byte("a long key")))
		return nil
	}); err != nil || got != "value" || shared.recovered.Problems == nil {
		t.Errorf("reading %q, %v, recovery %v, want the value and a recovery", got, err, shared.recovered)
	}
}

// TestMissingChecksums renames the bucket of the digests: the file is damaged.
func TestMissingChecksums(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	db := open(t, path, &Options{Snapshots: true})
	want := fill(t, db)
	db.Close()
	spoil(t, path, sumsBucket)
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		if _, err := Open(path, o); err == nil {
			t.Errorf("%+v: the file opens", o)
		} else if _, corrupt := errors.AsType[*CorruptError](err); !corrupt {
			t.Errorf("%+v: %v, want a *CorruptError", o, err)
		}
	}
	if _, err := Recover(path); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(open(t, path, nil)); err != nil || !maps.Equal(got, want) {
		t.Errorf("recovered %d records of %d, %v", len(got), len(want), err)
	}
}

// TestOpenFileRecovers damages a file that this process keeps open: the transactions that
// read the damage fail, and those after them see the records of the snapshot.
func TestOpenFileRecovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	f := NewFile(path, nil)
	defer f.Close()
	if err := f.Update(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		return b.Put([]byte("key"), []byte("a long value"))
	}); err != nil {
		t.Fatal(err)
	}
	read := func() (value string, err error) {
		err = f.View(func(tx *Tx) error {
			b, err := tx.Bucket("b")
			if err == nil {
				value = string(b.Get([]byte("key")))
			}
			return err
		})
		return value, err
	}
	spoil(t, path, "a long value")
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 20 {
				value, err := read()
				if err == nil && value != "a long value" || err != nil && !errors.Is(err, ErrClosed) && !strings.Contains(err.Error(), "recovered") {
					t.Errorf("reading %q, %v", value, err)
				}
			}
		})
	}
	readers.Wait()
	if value, err := read(); err != nil || value != "a long value" {
		t.Errorf("after the recovery: %q, %v", value, err)
	}
	if found, err := f.check(t.Context()); err != nil || len(found.Problems) == 0 || !strings.Contains(found.Repaired, "nothing is lost") {
		t.Errorf("Verify: %+v, %v, want the recovery", found, err)
	}
}
