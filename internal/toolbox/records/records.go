// Package records stores small sets of records with a transaction for each write. It neither
// interprets values nor answers queries: callers read all records at the beginning and keep
// the data in memory.
package records

import (
	"context"
	"slices"
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
		type name struct{ bucket, key string }
		removed := map[name]bool{}
		for _, r := range there.Records {
			removed[name{r.Bucket, r.Key}] = true
		}
		next := slices.Clone(list)
		for _, r := range next {
			delete(removed, name{r.Bucket, r.Key})
		}
		for n := range removed {
			next = append(next, Record{Bucket: n.bucket, Key: n.key})
		}
		return next, nil
	})
	return err
}
