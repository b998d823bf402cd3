package flat

import (
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Run("Memory", func(t *testing.T) {
		storetest.Vectors(t, func(t *testing.T, dim int) store.Vectors { return Memory(dim) })
		t.Run("Concurrent", func(t *testing.T) { storetest.Concurrent(t, Memory(8)) })
	})
	t.Run("Disk", func(t *testing.T) {
		storetest.Vectors(t, func(t *testing.T, dim int) store.Vectors { return open(t, t.TempDir(), dim, nil) })
		t.Run("Concurrent", func(t *testing.T) { storetest.Concurrent(t, open(t, t.TempDir(), 8, nil)) })
		t.Run("Reopen", func(t *testing.T) {
			storetest.Reopen(t, func(t *testing.T, dir string, dim int) store.Vectors { return open(t, dir, dim, nil) })
		})
	})
}

func open(t testing.TB, dir string, dim int, o *Options) *Store {
	t.Helper()
	s, err := Open(dir, dim, "model@1", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
