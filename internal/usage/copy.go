package usage

import (
	"errors"
	"fmt"

	"cairn/internal/kv"
)

// CopyTo makes another store know what this one does, in place of what it knows.
// A store that never learnt anything is not copied.
func (s *Store) CopyTo(other *Store) error {
	var edges, intents []kv.Entry
	var have meta
	read := func() error {
		// What the journal holds is read from the database, where it gets now.
		if s.o.Journal != nil {
			if err := s.tidy(); err != nil {
				return err
			}
		}
		return s.db.View(func(tx *kv.Tx) (err error) {
			if have, err = readMeta(tx); err == nil {
				edges, err = tx.Entries(edgesBucket)
			}
			if err == nil {
				intents, err = tx.Entries(intentsBucket)
			}
			return err
		})
	}
	if g, err := s.Generation(); err != nil || g == 0 {
		return err
	}
	s.commit.Lock()
	err := read()
	s.commit.Unlock()
	if err != nil {
		return fmt.Errorf("reading the usage graph: %w", err)
	}
	_, err = other.removing(func(tx *kv.Tx, m *meta) (f Forgotten, err error) {
		if err := errors.Join(tx.Replace(edgesBucket, edges), tx.Replace(intentsBucket, intents)); err != nil {
			return f, err
		}
		m.generation = max(m.generation, have.generation)
		m.intents, m.remembered, m.swept = m.generation+1, have.remembered, have.swept
		return f, nil
	})
	return err
}
