//go:build race

package testutil

// Race reports whether the race detector is enabled. It makes unsafe code check its
// pointers, which ends the process if a library reads a damaged file, and it changes the
// cost of operations.
const Race = true
