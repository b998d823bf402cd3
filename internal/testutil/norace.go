//go:build !race

package testutil

// Race is set when the race detector watches the test.
const Race = false
