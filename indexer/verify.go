package indexer

import (
	"context"
	"fmt"

	"cairn/internal/store/docs"
)

// Derived is an index that is built from the documents.
type Derived interface {
	Count() (int, error)
	Position() uint64
	Close() error
}

// DivergedError reports a derived index whose number of chunks differs from that of the
// documents, although nothing is pending, even after it was filled again. It contains
// unknown chunks, so the caller must remove and rebuild it.
type DivergedError struct {
	Kind       docs.Kind
	Have, Want int // chunks
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("the index of %s holds %d chunks, the documents have %d: remove and rebuild the index", e.Kind, e.Have, e.Want)
}

// reconcile calls update until the index of the kind has as many chunks as the
// documents, and no older position. If the index lost chunks, because its files were removed
// or restored from a backup, reconcile fills it again, once. The caller must hold the lock of
// the phase.
func (x *Indexer) reconcile(ctx context.Context, kind docs.Kind, index Derived, update func() error) error {
	for renewed := false; ; renewed = true {
		if err := update(); err != nil {
			return err
		}
		counts, err := x.stores.Docs.Counts()
		if err != nil {
			return err
		}
		meta, err := x.stores.Docs.Meta()
		if err != nil {
			return err
		}
		if counts.Pending(kind).Files > 0 {
			return nil // documents changed during update; the next call continues
		}
		have, err := index.Count()
		if err != nil {
			return fmt.Errorf("counting the chunks of the index of %s: %w", kind, err)
		}
		switch {
		case have == counts.Chunks && index.Position() >= meta.Positions[kind]:
			return nil
		case renewed:
			return &DivergedError{Kind: kind, Have: have, Want: counts.Chunks}
		}
		if err := x.stores.Docs.Renew(ctx, kind); err != nil {
			return fmt.Errorf("marking all documents for the index of %s: %w", kind, err)
		}
	}
}
