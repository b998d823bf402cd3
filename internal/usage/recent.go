package usage

import "cairn/graphrank"

// Changes are what was written since a generation.
type Changes struct {
	Generation uint64
	// Edges are those that were seen, as they were then; of one that stands
	// twice the later holds.
	Edges []graphrank.Edge
	// Intents were not remembered before.
	Intents []Intent
}

// Since returns what was written after a generation, for who keeps a copy of the
// graph and the memory. ok is false when that is not known: too much was, or
// something was forgotten or rewritten; then a copy has to be made anew.
func (s *Store) Since(generation uint64) (c Changes, ok bool, err error) {
	if err := s.refresh(); err != nil {
		return c, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	c.Generation = s.meta.generation
	if generation < s.recent.from || generation > c.Generation {
		return c, false, nil
	}
	for _, w := range s.recent.writes {
		if w.generation <= generation {
			continue
		}
		if w.partial {
			return c, false, nil
		}
		c.Edges, c.Intents = append(c.Edges, w.edges...), append(c.Intents, w.intents...)
	}
	return c, true, nil
}

// news is what one write changes of the graph and the memory.
type news struct {
	edges   []graphrank.Edge
	intents []Intent // that were not remembered before
	partial bool     // it is not all: something was rewritten or removed
}

// intent notes that next is remembered now, and was old where it was known.
func (n *news) intent(old *Intent, known bool, next *Intent) {
	switch {
	case next.Weak:
	case !known || old.Weak:
		n.intents = append(n.intents, *next)
	default:
		n.partial = n.partial || !old.sameUse(next)
	}
}

func (n *news) size() int { return 1 + len(n.edges) + len(n.intents) }

// maxRecent bounds the edges, intents and writes that are held for Since.
const maxRecent = 4096

// recent holds the last writes.
type recent struct {
	from   uint64 // all writes after this generation are held
	size   int
	writes []struct {
		generation uint64
		news
	}
}

func (r *recent) add(generation uint64, n news) {
	r.writes = append(r.writes, struct {
		generation uint64
		news
	}{generation, n})
	for r.size += n.size(); r.size > maxRecent; r.writes = r.writes[1:] {
		r.from, r.size = r.writes[0].generation, r.size-r.writes[0].size()
	}
}
