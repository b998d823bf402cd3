package testutil

import (
	"testing"
	"time"
)

// Await calls problem until it returns "". Only the deadline of the test bounds it: a busy
// machine makes the test slow, and what never happens fails it shortly before the deadline,
// with the last problem.
func Await(t *testing.T, problem func() string) {
	t.Helper()
	for text := problem(); text != ""; text = problem() {
		if deadline, ok := t.Deadline(); ok && time.Until(deadline) < 10*time.Second {
			t.Fatalf("until the deadline of the test: %s", text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
