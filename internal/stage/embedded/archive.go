package embedded

import (
	"cmp"
	"context"
	"time"

	"cairn/internal/kv"
	"cairn/internal/stage"
)

// Archive is a stage.Archive in a file, for one process.
type Archive struct{ *Store }

var _ stage.Archive = (*Archive)(nil)

// OpenArchive returns the archive in db. close is called by Close and may be nil.
func OpenArchive(db DB, close func() error) *Archive { return &Archive{Open(db, close)} }

// Record implements stage.Archive.
func (a *Archive) Record(ctx context.Context, all ...stage.Record) error {
	return a.update(ctx, func(tx *kv.Tx) error {
		for _, r := range all {
			old, err := load(tx, r.State.ID)
			if err != nil {
				return &brokenError{err}
			}
			switch {
			case old == nil || older(old.Machine, r.State.Machine):
				err = put(tx, old, r.State, &stage.Effects{Entry: r.Entry})
			case old.Machine.Generation == r.State.Machine.Generation:
				err = putEntry(tx, r.Entry)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func older(a, b stage.Machine) bool {
	return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Version, b.Version)) < 0
}

// Resume implements stage.Archive.
func (a *Archive) Resume(ctx context.Context, at time.Time, ids ...string) ([]*stage.State, error) {
	list := []*stage.State{}
	err := a.update(ctx, func(tx *kv.Tx) error {
		for _, id := range ids {
			old, err := load(tx, id)
			if err != nil {
				return &brokenError{err}
			}
			if old == nil || old.Status.Final() {
				continue
			}
			st, fx := stage.Restore(old, at)
			if err := put(tx, old, st, fx); err != nil {
				return err
			}
			list = append(list, st)
		}
		return nil
	})
	return list, err
}

// Unfinished implements stage.Archive.
func (a *Archive) Unfinished(_ context.Context, after string, limit int) ([]*stage.State, error) {
	list := []*stage.State{}
	err := a.db.View(func(tx *kv.Tx) error {
		b, err := tx.Bucket(active)
		if err != nil {
			return err
		}
		var failed error
		b.Seek([]byte(after+"\x00"), func(k, _ []byte) bool {
			st, err := load(tx, string(k))
			if failed = err; err != nil {
				return false
			}
			if !st.Status.Final() {
				list = append(list, st)
			}
			return len(list) < limit
		})
		return failed
	})
	return list, err
}
