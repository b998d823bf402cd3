//go:build unix && !cgo

package sandbox

// stacks is 0, because the Go runtime allocates stacks of threads as it needs them.
const stacks = 0
