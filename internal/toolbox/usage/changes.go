package usage

import (
	"cmp"
	"slices"

	"cairn/graphrank"
)

// Changes are the edges and intents written since a generation.
type Changes struct {
	Generation uint64
	// Edges holds changed edges with their new counts. A later edge replaces an earlier
	// one between the same nodes.
	Edges []graphrank.Edge
	// Intents holds the new intents.
	Intents []Intent
}

// maxHistory bounds the edges, intents and writes that Since can return.
const maxHistory = 4096

// history holds the last writes.
type history struct {
	from   uint64 // writes holds all writes after this generation
	size   int
	writes []Changes
}

func (h *history) add(c Changes) {
	size := func(c *Changes) int { return 1 + len(c.Edges) + len(c.Intents) }
	h.writes = append(h.writes, c)
	for h.size += size(&c); h.size > maxHistory; h.writes = h.writes[1:] {
		h.from, h.size = h.writes[0].Generation, h.size-size(&h.writes[0])
	}
}

// Since returns the changes after a generation, for a caller that keeps a copy of the graph
// and the intents. ok is false if there were too many changes, or if a write has removed or
// rewritten a record. The caller must then copy everything.
func (s *Store) Since(generation uint64) (c Changes, ok bool, err error) {
	err = s.view(func() error {
		c.Generation = s.generation
		ok = generation >= s.history.from && generation <= c.Generation
		for _, w := range s.history.writes {
			if ok && w.Generation > generation {
				c.Edges, c.Intents = append(c.Edges, w.Edges...), append(c.Intents, w.Intents...)
			}
		}
		return nil
	})
	return c, ok, err
}

// Intents returns all intents, sorted by text, then by tools. The caller must not change
// the slice. Calls return the same slice until an intent is added, observed again or
// removed.
func (s *Store) Intents() ([]Intent, error) {
	if err := s.load(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed == nil {
		s.listed = []Intent{}
		for _, m := range s.intents {
			if !m.Weak {
				s.listed = append(s.listed, m)
			}
		}
		slices.SortFunc(s.listed, func(a, b Intent) int {
			return cmp.Or(cmp.Compare(a.Text, b.Text), slices.Compare(a.Tools, b.Tools))
		})
	}
	return s.listed, nil
}
