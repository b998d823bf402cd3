package keyword

import (
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Keyword(t, func(t *testing.T) store.Keyword {
		x, err := Memory()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		return x
	})
}
