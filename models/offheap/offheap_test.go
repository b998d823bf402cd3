package offheap

import "testing"

func TestAllocate(t *testing.T) {
	for _, n := range []int{1, 4096, 5 << 20} {
		b := Allocate(n)
		if len(b) != n {
			t.Fatalf("%d bytes, want %d", len(b), n)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d of %d is %d, want 0", i, n, b[i])
			}
			b[i] = 1
		}
		Free(b)
	}
}
