// Package records stores small sets of records with a transaction for each write. It neither
// interprets values nor answers queries: callers read all records at the beginning and keep
// the data in memory.
package records

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"cairn/internal/store/kv"
)

// Record is a value under a key of a bucket. In a write, a nil Value removes the record.
type Record struct {
	Bucket, Key string
	Value       []byte
}

// Changes holds the records written after a generation.
type Changes struct {
	// Generation counts the writes. It is 0 for a store that was never written.
	Generation uint64
	// Whole reports that Records holds all records of the store, because some were
	// removed or the store cannot determine the changes.
	Whole bool
	// Records is sorted by bucket and key.
	Records []Record
}

// Store is a set of records. Implementations are safe for concurrent use, also by several
// processes if they share the store.
type Store interface {
	// Since returns the records written after a generation. The result of a shared
	// store may be slightly stale. Generation 0 returns all records.
	Since(ctx context.Context, generation uint64) (Changes, error)
	// Update calls write in a transaction that overlaps no other write, with the changes
	// after a generation, and stores the records that write returns. It may change their
	// slice. The records are durable when Update returns without an error. The new
	// generation is one above that of the changes, or equal to it if write returns no
	// records. Update may repeat the transaction and call write again.
	Update(ctx context.Context, generation uint64, write func(Changes) ([]Record, error)) (uint64, error)
}

// Replace replaces the records of a store.
func Replace(ctx context.Context, to Store, list []Record) error {
	_, err := to.Update(ctx, 0, func(there Changes) ([]Record, error) {
		kept := map[[2]string]bool{}
		for _, r := range list {
			kept[[2]string{r.Bucket, r.Key}] = true
		}
		next := slices.Clone(list)
		for _, r := range there.Records {
			if !kept[[2]string{r.Bucket, r.Key}] {
				next = append(next, Record{Bucket: r.Bucket, Key: r.Key})
			}
		}
		return next, nil
	})
	return err
}

// DB is a file of buckets. View may return nil without calling its function if nothing was
// ever stored.
type DB interface {
	View(func(*kv.Tx) error) error
	Update(func(*kv.Tx) error) error
}

// generationBucket holds the generation of a file: 8 bytes, little-endian.
const generationBucket = "generation"

var generationKey = []byte("generation")

// File is a Store in a file of buckets.
type File struct {
	db      DB
	buckets []string
}

var _ Store = (*File)(nil)

// NewFile returns the store of the named buckets of a file. The caller closes the
// file.
func NewFile(db DB, buckets ...string) *File { return &File{db, buckets} }

// Since implements Store.
func (f *File) Since(ctx context.Context, generation uint64) (c Changes, err error) {
	if err := ctx.Err(); err != nil {
		return c, err
	}
	err = f.db.View(func(tx *kv.Tx) error {
		c, err = f.since(tx, generation)
		return err
	})
	return c, err
}

func (f *File) since(tx *kv.Tx, generation uint64) (c Changes, err error) {
	b, err := tx.Bucket(generationBucket)
	if err != nil {
		return c, err
	}
	if v := b.Get(generationKey); len(v) == 8 {
		c.Generation = binary.LittleEndian.Uint64(v)
	}
	if c.Generation == generation && generation > 0 {
		return c, nil
	}
	c.Whole = true
	for _, name := range slices.Sorted(slices.Values(f.buckets)) {
		if b, err = tx.Bucket(name); err != nil {
			return c, err
		}
		b.ForEach(func(key, value []byte) bool {
			c.Records = append(c.Records, Record{name, string(key), bytes.Clone(value)})
			return true
		})
	}
	if len(c.Records) > 0 { // a file of an earlier version has no generation
		c.Generation = max(c.Generation, 1)
	}
	return c, nil
}

// Update implements Store.
func (f *File) Update(ctx context.Context, generation uint64, write func(Changes) ([]Record, error)) (next uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = f.db.Update(func(tx *kv.Tx) error {
		c, err := f.since(tx, generation)
		if err != nil {
			return err
		}
		next = c.Generation
		records, err := write(c)
		if err != nil || len(records) == 0 {
			return err
		}
		next++
		b, err := tx.Bucket(generationBucket)
		if err != nil {
			return err
		}
		if err := b.Put(generationKey, binary.LittleEndian.AppendUint64(nil, next)); err != nil {
			return err
		}
		return put(tx, records)
	})
	return next, err
}

// put writes records in the order of their keys, because bbolt splits pages only at the end
// of a transaction, and an insertion into a page moves all entries after it. put sets each
// Value to nil to release it, since the transaction has its own copy.
func put(tx *kv.Tx, records []Record) error {
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key)) })
	for i, r := range records {
		b, err := tx.Bucket(r.Bucket)
		if err != nil {
			return err
		}
		records[i].Value = nil
		if r.Value == nil {
			err = b.Delete([]byte(r.Key))
		} else {
			err = b.Put([]byte(r.Key), r.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
