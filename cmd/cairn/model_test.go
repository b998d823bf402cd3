package main

import (
	"testing"

	"cairn/internal/workspace"
)

// TestOneModelForAll: everything a process opens is given the same model, and
// whoever closes it first does not take it from the others.
func TestOneModelForAll(t *testing.T) {
	var m modelFlags
	var first, second workspace.Options
	if err := m.apply(&first); err != nil {
		t.Fatal(err)
	}
	if err := m.apply(&second); err != nil {
		t.Fatal(err)
	}
	a, err := first.Model()
	if err != nil {
		t.Fatal(err)
	}
	b, err := second.Model()
	if err != nil || a != b {
		t.Fatalf("two models, %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if v, err := b.EmbedQuery(t.Context(), "still there"); err != nil || len(v) != b.Description().Dimension {
		t.Errorf("after the other was closed: %d numbers, %v", len(v), err)
	}
}
