package flat

import (
	"context"
	"testing"

	"cairn/internal/store"
)

func TestVectorsGivesBackWhatWasStored(t *testing.T) {
	for name, s := range map[string]*Store{"memory": Memory(2), "disk": open(t, t.TempDir(), 2, nil)} {
		a, b := []float32{1, 0}, []float32{0.6, 0.8}
		if err := s.Update(context.Background(), []store.VectorEntry{{Chunk: "a#x.0", Path: "a", Vector: a}, {Chunk: "b#x.0", Path: "b", Vector: b}}, nil); err != nil {
			t.Fatal(err)
		}
		got, err := s.Vectors(context.Background(), []string{"b#x.0", "c#x.0", "a#x.0"})
		if err != nil || len(got) != 3 || !near(got[0], b) || got[1] != nil || !near(got[2], a) {
			t.Errorf("%s: %v, %v, want %v, nothing, %v", name, got, err, b, a)
		}
	}
}
