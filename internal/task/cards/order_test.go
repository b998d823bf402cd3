package cards

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestMove moves random cards to random places of a column and compares it with a list. A
// store that opens the folder afterwards has the same order.
func TestMove(t *testing.T) {
	files := map[string]string{"odd001": card("Placed by another program", "ordinal: 5\npriority: low\n"), "odd002": card("Also", "ordinal: 5\n"), "odd003": card("Not a place", "ordinal: soon\n"), "odd004": card("Too far away", "ordinal: 1e300\n"), "other1": card("Other", "status: active\n")}
	for i := range 6 {
		files[fmt.Sprintf("card%02d", i)] = card(fmt.Sprint("Card ", i), "")
	}
	s, dir := board(t, nil, files)
	order := func(s *Store) (ids []string) {
		b, err := s.Board()
		if err != nil {
			t.Fatal(err)
		}
		column, _ := b.column("todo", "")
		for _, c := range column {
			ids = append(ids, c.ID)
		}
		return ids
	}
	want := order(s)
	if want[0] != "odd002" || want[1] != "odd001" { // of one ordinal, the more urgent one
		t.Fatalf("at first: %q", want)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for step := range 150 {
		at := random.IntN(len(want))
		if step > 50 {
			at = 2 + random.IntN(2) // until no number is left between two ordinals
		}
		id := want[at]
		want = slices.Delete(want, at, at+1)
		to, before := random.IntN(len(want)+1), ""
		if step > 50 {
			to = 2
		}
		if to < len(want) {
			before = want[to]
		}
		want = slices.Insert(want, to, id)
		if err := s.Move(t.Context(), id, "todo", before); err != nil {
			t.Fatal(err)
		}
		if got := order(s); !slices.Equal(got, want) {
			t.Fatalf("step %d, %s before %q: %q, want %q", step, id, before, got, want)
		}
	}
	if got := order(openStore(t, dir, nil)); !slices.Equal(got, want) {
		t.Errorf("another store has %q, want %q", got, want)
	}
	if text := read(t, dir, "odd001"); !strings.Contains(text, "ordinal: ") || strings.Contains(text, "updated") {
		t.Errorf("a moved card is\n%s", text)
	}
	if err := s.Move(t.Context(), "other1", "todo", want[0]); err != nil || order(s)[0] != "other1" {
		t.Errorf("to another column: %q, %v", order(s), err)
	}
	for range 2 { // down, and up beyond the top
		if err := s.Step(t.Context(), "other1", order(s)[0] != "other1"); err != nil {
			t.Fatal(err)
		}
	}
	list, _, err := s.List(ListRequest{Status: "todo"})
	if err != nil || order(s)[0] != "other1" {
		t.Errorf("after steps: %q, %v", order(s), err)
	}
	if text, err := json.Marshal(list); err != nil || strings.Count(string(text), `"ordinal":`) == 0 {
		t.Errorf("agents see %s, %v", text, err)
	}
	before := order(s)
	for _, c := range []struct{ id, status, before, want string }{
		{"none00", "todo", "", "Task Not Found"}, {"card01", "flying", "", "want {todo"}, {"card01", "todo", "none00", "not in the column todo"},
	} {
		if err := s.Move(t.Context(), c.id, c.status, c.before); err == nil || !strings.Contains(err.Error(), c.want) || !slices.Equal(order(s), before) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
