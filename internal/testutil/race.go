//go:build race

package testutil

// Race is set when the race detector watches the test. It makes unsafe code check its
// pointers, which ends the process where a library reads a damaged file, and it changes
// what things cost.
const Race = true
