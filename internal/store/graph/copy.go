package graph

import (
	"bytes"
	"fmt"

	"cairn/internal/kv"
)

// CopyTo makes another store know what this one does, in place of what it knows.
// A store that never learnt anything is not copied.
func (s *Store) CopyTo(other *Store) error {
	type entry struct{ key, value []byte }
	var edges, intents []entry
	var have meta
	read := func() error {
		// What the journal holds is read from the database, where it gets now.
		if s.o.Journal != nil {
			if err := s.tidy(); err != nil {
				return err
			}
		}
		return s.db.View(func(tx *kv.Tx) (err error) {
			edges, intents = nil, nil
			if have, err = readMeta(tx); err != nil {
				return err
			}
			for bucket, list := range map[string]*[]entry{edgesBucket: &edges, intentsBucket: &intents} {
				b, err := tx.Bucket(bucket)
				if err != nil {
					return err
				}
				b.ForEach(func(key, value []byte) bool {
					*list = append(*list, entry{bytes.Clone(key), bytes.Clone(value)})
					return true
				})
			}
			return nil
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
		for bucket, list := range map[string][]entry{edgesBucket: edges, intentsBucket: intents} {
			if err := tx.Drop(bucket); err != nil {
				return f, err
			}
			b, err := tx.Bucket(bucket)
			if err != nil {
				return f, err
			}
			for _, e := range list {
				if err := b.Put(e.key, e.value); err != nil {
					return f, err
				}
			}
		}
		m.generation = max(m.generation, have.generation)
		m.intents, m.remembered, m.swept = m.generation+1, have.remembered, have.swept
		return f, nil
	})
	return err
}
