package embedded

import (
	"context"

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
			if old == nil || old.Machine.Version < r.State.Machine.Version {
				err = put(tx, old, r.State, &stage.Effects{Entry: r.Entry})
			} else {
				err = putEntry(tx, r.Entry)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
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
