// Package records stores small sets of records with a transaction for each write. It
// neither interprets values nor answers queries: callers read all records at start and
// keep what they need in memory.
package records

import (
	"context"
	"maps"
	"slices"
)

// Record is a value under a key of a bucket. In a write a nil Value removes the
// record.
type Record struct {
	Bucket, Key string
	Value       []byte
}

// Changes are the records written after a generation.
type Changes struct {
	// Generation counts the writes; 0 is a store that was never written.
	Generation uint64
	// Whole means that Records are all records of the store: some were removed, or the
	// store does not know which have changed.
	Whole bool
	// Records are ordered by bucket and key.
	Records []Record
}

// Store is a set of records. Implementations are safe for concurrent use, in
// one process and where they are shared between processes.
type Store interface {
	// Since returns the records written after a generation. The result of a shared
	// store may be slightly stale. Generation 0 returns all records.
	Since(ctx context.Context, generation uint64) (Changes, error)
	// Update runs write in a transaction that no other write overlaps, with the
	// changes after a generation, and stores the records it returns, whose slice it may
	// change. When Update returns without an error they are durable. The new generation
	// is one above that of the changes, or the same when write returns no records. write
	// may run again when the transaction has to be repeated.
	Update(ctx context.Context, generation uint64, write func(Changes) ([]Record, error)) (uint64, error)
	// Close releases the store.
	Close() error
}

// Copy replaces the records of one store with those of another. It does not copy an
// empty store.
func Copy(ctx context.Context, from, to Store) error {
	all, err := from.Since(ctx, 0)
	if err != nil || len(all.Records) == 0 {
		return err
	}
	return Replace(ctx, to, all.Records)
}

// Add writes the records that a store lacks, and returns their number.
func Add(ctx context.Context, to Store, list []Record) (added int, err error) {
	type name struct{ bucket, key string }
	_, err = to.Update(ctx, 0, func(there Changes) ([]Record, error) {
		known := map[name]bool{}
		for _, r := range there.Records {
			known[name{r.Bucket, r.Key}] = true
		}
		next := slices.DeleteFunc(slices.Clone(list), func(r Record) bool { return known[name{r.Bucket, r.Key}] })
		added = len(next)
		return next, nil
	})
	return added, err
}

// Replace replaces the records of a store.
func Replace(ctx context.Context, to Store, list []Record) error {
	type name struct{ bucket, key string }
	_, err := to.Update(ctx, 0, func(there Changes) ([]Record, error) {
		removed := map[name]bool{}
		for _, r := range there.Records {
			removed[name{r.Bucket, r.Key}] = true
		}
		next := slices.Clone(list)
		for _, r := range next {
			delete(removed, name{r.Bucket, r.Key})
		}
		for n := range maps.Keys(removed) {
			next = append(next, Record{Bucket: n.bucket, Key: n.key})
		}
		return next, nil
	})
	return err
}
