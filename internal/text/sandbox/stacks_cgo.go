//go:build unix && cgo

package sandbox

// stacks is the memory in bytes that the C library reserves for the stacks of threads, 8 MiB
// each. The Go runtime starts more threads on a busy machine.
const stacks = 64 << 20
