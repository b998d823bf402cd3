package usage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"cairn/graphrank"
)

// Exported is an edge or an intent in an export.
type Exported struct {
	Edge   *ExportedEdge `json:"edge,omitempty"`
	Intent *Intent       `json:"intent,omitempty"`
}

// ExportedEdge is an edge with its count at its last observation.
type ExportedEdge struct {
	From         string    `json:"from"`
	To           string    `json:"to"`
	Type         string    `json:"type"`
	Source       string    `json:"source"`
	Count        float64   `json:"count"`
	Last         time.Time `json:"last"`
	Observations uint32    `json:"observations"`
	// Weak reports that the edge is not in the graph yet, see Observation.
	Weak bool `json:"weak,omitempty"`
}

// Export returns all edges and intents, in a fixed order.
func (s *Store) Export() (list []Exported, err error) {
	err = s.view(func() {
		for _, p := range slices.SortedFunc(maps.Keys(s.edges), comparePairs) {
			e := s.edges[p]
			list = append(list, Exported{Edge: &ExportedEdge{
				From: p[0], To: p[1], Type: e.kind.String(), Source: e.source.String(), Count: e.count,
				Last: e.time().UTC(), Observations: e.observations, Weak: e.weak,
			}})
		}
		for _, key := range slices.Sorted(maps.Keys(s.intents)) {
			m := s.intents[key]
			m.Last = m.Last.UTC().Truncate(time.Second) // the precision of the stored time
			list = append(list, Exported{Intent: &m})
		}
	})
	return list, err
}

// Merge adds edges and intents. It replaces an existing one only if the new one was observed
// later. It does not add counts, so that a second merge changes nothing.
func (s *Store) Merge(ctx context.Context, list []Exported) (changed int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	new := newDelta()
	for i, x := range list {
		err := fmt.Errorf("neither an edge nor an intent")
		switch {
		case x.Edge != nil:
			var e edge
			if e, err = x.Edge.decode(); err == nil {
				new.edges[pair{x.Edge.From, x.Edge.To}] = &e
			}
		case x.Intent != nil:
			if err = x.Intent.check(); err == nil {
				new.intents[string(x.Intent.key())] = x.Intent
			}
		}
		if err != nil {
			return 0, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	err = s.update(func(d *delta, _ time.Time) {
		changed = 0
		for p, e := range new.edges {
			if have, known := s.edges[p]; !known || have.last < e.last {
				d.edges[p] = e
				changed++
			}
		}
		for key, m := range new.intents {
			if have, known := s.intents[key]; !known || have.Last.Before(m.Last) {
				d.intents[key] = m
				changed++
			}
		}
		s.evict(d)
	})
	if err != nil {
		return 0, fmt.Errorf("writing the usage graph: %w", err)
	}
	return changed, nil
}

func (x *ExportedEdge) decode() (e edge, err error) {
	e = edge{count: x.Count, last: unix(x.Last), observations: x.Observations, weak: x.Weak}
	types := []graphrank.Type{graphrank.Sequence, graphrank.Provides, graphrank.Contains, graphrank.Dependency}
	sources := []graphrank.Source{graphrank.Template, graphrank.Inferred, graphrank.Observed}
	kind := slices.IndexFunc(types, func(t graphrank.Type) bool { return t.String() == x.Type })
	source := slices.IndexFunc(sources, func(s graphrank.Source) bool { return s.String() == x.Source })
	switch {
	case kind < 0 || source < 0:
		return e, fmt.Errorf("an edge has type %.40q and source %.40q", x.Type, x.Source)
	case !(x.Count >= 0) || math.IsInf(x.Count, 0) || x.From == x.To:
		return e, fmt.Errorf("the edge from %.40q to %.40q is not possible", x.From, x.To)
	}
	e.kind, e.source = types[kind], sources[source]
	return e, cmp.Or(checkID(x.From), checkID(x.To))
}

// check returns an error for an intent that cannot be stored.
func (m *Intent) check() error {
	if m.Count < 1 || len(m.Tools) == 0 {
		return fmt.Errorf("the intent %.40q has no tools or no count", m.Text)
	}
	if _, err := decodeIntent(m.encode()); err != nil {
		return fmt.Errorf("the intent %.40q is not possible", m.Text)
	}
	for _, tool := range m.Tools {
		if err := checkID(tool); err != nil {
			return err
		}
	}
	return nil
}
