//go:build !linux && !darwin

package offheap

// Allocate returns n zero bytes, on this system from Go's heap. n must be positive.
func Allocate(n int) []byte { return make([]byte, n) }

// Free does nothing on this system.
func Free([]byte) {}
