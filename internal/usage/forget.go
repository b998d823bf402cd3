package usage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"cairn/internal/kv"
)

// Forgotten counts what was removed.
type Forgotten struct {
	Edges   int `json:"edges"`
	Intents int `json:"intents"`
}

// ForgetNode removes a tool or document with its edges, and the intents it served.
func (s *Store) ForgetNode(id string) (Forgotten, error) {
	return s.forget(func(key, _ []byte) (bool, error) {
		from, to, _ := bytes.Cut(key, []byte{0})
		return string(from) == id || string(to) == id, nil
	}, func(m *Intent) bool { return slices.Contains(m.Tools, id) })
}

// ForgetBefore removes the edges and intents that were last seen before t. What
// was seen since keeps its whole count: single sights are not kept apart.
func (s *Store) ForgetBefore(t time.Time) (Forgotten, error) {
	return s.forget(func(key, value []byte) (bool, error) {
		e, err := s.decodeEdge(key, value, t)
		return e.last.Before(t), err
	}, func(m *Intent) bool { return m.Last.Before(t) })
}

// ForgetAll removes everything, also what is damaged.
func (s *Store) ForgetAll() (Forgotten, error) {
	return s.removing(func(tx *kv.Tx, _ *meta) (f Forgotten, err error) {
		for bucket, n := range map[string]*int{edgesBucket: &f.Edges, intentsBucket: &f.Intents} {
			b, err := tx.Bucket(bucket)
			if err != nil {
				return f, err
			}
			b.ForEach(func(_, _ []byte) bool {
				*n++
				return true
			})
			if err := tx.Drop(bucket); err != nil {
				return f, err
			}
		}
		return f, nil
	})
}

// forget removes what the functions say.
func (s *Store) forget(edge func(key, value []byte) (bool, error), intent func(*Intent) bool) (Forgotten, error) {
	return s.removing(func(tx *kv.Tx, _ *meta) (f Forgotten, err error) {
		if f.Edges, err = deleteWhere(tx, edgesBucket, edge); err != nil {
			return f, err
		}
		f.Intents, err = deleteWhere(tx, intentsBucket, func(_, value []byte) (bool, error) {
			one, err := decodeIntent(value)
			return err == nil && intent(&one), err
		})
		return f, err
	})
}

// removing runs fn in one transaction, after what the journal holds, and loads
// what is left.
func (s *Store) removing(fn func(*kv.Tx, *meta) (Forgotten, error)) (f Forgotten, err error) {
	s.commit.Lock()
	defer s.commit.Unlock()
	if s.o.Journal != nil {
		release, err := s.o.Journal.Lock(true)
		if err != nil {
			return Forgotten{}, err
		}
		defer release()
	}
	err = overtaken(func() error {
		f, err = s.removeOnce(fn)
		return err
	})
	return f, err
}

func (s *Store) removeOnce(fn func(*kv.Tx, *meta) (Forgotten, error)) (Forgotten, error) {
	if s.o.Journal != nil {
		if err := s.catchUp(); err != nil {
			return Forgotten{}, err
		}
		if err := s.seal(); err != nil {
			return Forgotten{}, err
		}
	}
	var f Forgotten
	var m meta
	err := s.db.Update(func(tx *kv.Tx) (err error) {
		if m, err = readMeta(tx); err != nil {
			return err
		}
		if m, err = s.putOverlay(tx, m, &news{}); err != nil {
			return err
		}
		if f, err = fn(tx, &m); err != nil {
			return err
		}
		m.generation++
		if f.Intents > 0 {
			m.intents = m.generation
			m.remembered -= min(m.remembered, uint64(f.Intents))
		}
		return writeMeta(tx, m)
	})
	if err != nil {
		return Forgotten{}, fmt.Errorf("forgetting: %w", err)
	}
	s.mu.Lock()
	s.loaded = time.Time{} // what is left is read anew
	err = s.emptied(m)
	s.mu.Unlock()
	return f, errors.Join(err, s.readBase())
}
