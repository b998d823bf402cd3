package usage

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"cairn/graphrank"
)

// TestMerge merges what another store has exported: the same records are there, the later
// observation of two wins, and what is not possible changes nothing.
func TestMerge(t *testing.T) {
	c := &clock{start}
	from := open(t, openDB(t), &Options{Now: c.now})
	if err := from.Add(t.Context(), Change{
		Observations: []Observation{{From: "a", To: "b", Type: graphrank.Dependency}, {From: "x", To: "y", Weak: true}},
		Intents:      []Intent{{Text: "copy", Tools: []string{"a", "b"}, Edges: [][2]int{{0, 1}}}},
	}); err != nil {
		t.Fatal(err)
	}
	list, err := from.Export()
	if err != nil || len(list) != 3 {
		t.Fatalf("Export: %d records, %v, want 3", len(list), err)
	}
	text := func(s *Store) string {
		list, err := s.Export()
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	to := open(t, openDB(t), &Options{Now: c.now})
	for i, want := range []int{3, 0} {
		if changed, err := to.Merge(t.Context(), list); changed != want || err != nil || text(to) != text(from) {
			t.Errorf("merge %d: %d changed, %v, %s", i, changed, err, text(to))
		}
	}
	later := *list[0].Edge
	later.Last, later.Count = later.Last.Add(time.Hour), 7
	earlier := later
	earlier.Last, earlier.Count = start.Add(-time.Hour), 9
	for _, e := range []ExportedEdge{earlier, later, earlier} {
		if _, err := to.Merge(t.Context(), []Exported{{Edge: &e}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := to.Export(); got[0].Edge.Count != 7 {
		t.Errorf("the edge has count %v, want that of the later observation", got[0].Edge.Count)
	}
	before := text(to)
	for name, bad := range map[string]Exported{
		"neither": {}, "type": {Edge: &ExportedEdge{From: "a", To: "c", Type: "other", Source: "inferred"}},
		"itself": {Edge: &ExportedEdge{From: "a", To: "a", Type: "sequence", Source: "inferred"}},
		"count":  {Edge: &ExportedEdge{From: "a", To: "c", Type: "sequence", Source: "inferred", Count: -1}},
		"id":     {Edge: &ExportedEdge{From: "a\x00", To: "c", Type: "sequence", Source: "inferred"}},
		"tools":  {Intent: &Intent{Text: "x", Count: 1}},
		"edges":  {Intent: &Intent{Text: "x", Count: 1, Tools: []string{"a"}, Edges: [][2]int{{0, 5}}}},
	} {
		if _, err := to.Merge(t.Context(), []Exported{list[0], bad}); err == nil || text(to) != before {
			t.Errorf("%s: %v, want an error and no change", name, err)
		}
	}
}

// NewSession returns a session that writes to the store.
func (s *Store) NewSession(t *testing.T) *Session {
	return NewSession(func(c Change) {
		if err := s.Add(t.Context(), c); err != nil {
			t.Error(err)
		}
	}, s.o.Now)
}

// Observe counts observations.
func (s *Store) Observe(ctx context.Context, observations ...Observation) error {
	return s.Add(ctx, Change{Observations: observations})
}
