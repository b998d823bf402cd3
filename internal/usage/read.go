package usage

import (
	"fmt"
	"time"

	"cairn/graphrank"
	"cairn/internal/kv"
)

// Read calls fn with the graph as it is now. fn must neither change the graph
// nor keep it, and must not call the store.
func (s *Store) Read(fn func(*graphrank.Graph) error) error {
	if err := s.refresh(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return fn(s.graph)
}

// Generation grows with every write; 0 is a graph that was never written.
func (s *Store) Generation() (uint64, error) {
	if err := s.refresh(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.meta.generation, nil
}

// refresh brings memory up to date when other processes have written, or the
// counts have aged.
func (s *Store) refresh() error {
	if s.o.Journal == nil {
		if err := s.readBase(); err != nil {
			return fmt.Errorf("reading the usage graph: %w", err)
		}
		return nil
	}
	mark, err := s.o.Journal.Mark()
	if err != nil {
		return fmt.Errorf("reading the usage graph: %w", err)
	}
	s.mu.RLock()
	first := s.graph == nil
	current := !first && s.mark == mark && mark.Epoch != 0 && s.o.Now().Sub(s.loaded) < refresh
	s.mu.RUnlock()
	if current {
		return nil
	}
	if first { // in Open: the larger part is read while others write
		if err := s.readBase(); err != nil {
			return fmt.Errorf("reading the usage graph: %w", err)
		}
	}
	release, err := s.o.Journal.Lock(false)
	if err != nil {
		return err
	}
	defer release()
	return s.catchUp()
}

// catchUp reads what other processes have written. The journal is locked.
func (s *Store) catchUp() error {
	err := overtaken(func() error {
		err := s.readBase()
		if err == nil && s.o.Journal != nil {
			err = s.replay()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the usage graph: %w", err)
	}
	return nil
}

// readBase loads the graph of the database when it was never loaded, is another
// than what memory stands on, or the counts have aged.
func (s *Store) readBase() error {
	now := s.o.Now()
	s.mu.RLock()
	have, base, known := s.meta, s.base, s.graph != nil && now.Sub(s.loaded) < refresh
	s.mu.RUnlock()
	seen := false
	err := s.db.View(func(tx *kv.Tx) error {
		seen = true
		m, err := readMeta(tx)
		if err != nil || known && m == base {
			return err
		}
		if known && m.generation == have.generation && m.epoch == base.epoch+1 {
			// Another process has folded in what is known here already.
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.meta == have && s.base == base {
				s.meta, s.base, s.over, s.end, s.mark = m, m, overlay{}, 0, kv.JournalMark{}
			}
			return nil
		}
		g, err := s.load(tx, now)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.graph == nil || s.meta == have && s.base == base { // else a write overtook this view
			s.graph, s.meta, s.base, s.loaded = g, m, m, now
			s.recent = recent{from: m.generation}
			s.over, s.end, s.mark = overlay{}, 0, kv.JournalMark{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.graph == nil || !seen && !known { // nothing was ever stored in it
		s.graph, s.meta, s.base, s.loaded = &graphrank.Graph{}, meta{}, meta{}, now
		s.recent = recent{}
		s.over, s.end, s.mark = overlay{}, 0, kv.JournalMark{}
	}
	return nil
}

// replay lays the records of the journal that are new over the database. The
// journal is locked.
func (s *Store) replay() error {
	s.mu.RLock()
	epoch, from := s.base.epoch+1, s.end
	s.mu.RUnlock()
	mark, err := s.o.Journal.Mark()
	if err != nil {
		return err
	}
	end, err := s.o.Journal.Read(epoch, from, func(payload []byte) error {
		c, now, err := decodeChange(payload)
		if err != nil {
			return err
		}
		o, err := s.prepare(c, now)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.install(o)
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end, s.mark = end, mark
	return nil
}

func (s *Store) load(tx *kv.Tx, now time.Time) (*graphrank.Graph, error) {
	b, err := tx.Bucket(edgesBucket)
	if err != nil {
		return nil, err
	}
	g := &graphrank.Graph{}
	b.ForEach(func(key, value []byte) bool {
		var e edge
		if e, err = s.decodeEdge(key, value, now); err == nil && e.alive(now) && !e.weak {
			g.Set(e.Edge)
		}
		return err == nil
	})
	return g, err
}
