//go:build !race

package testutil

// Race reports whether the race detector is enabled.
const Race = false
