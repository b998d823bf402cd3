package testutil

import (
	"math"
	"testing"
	"time"
)

// Linear reports an error if work on eight times the input takes more than 40 times as long;
// quadratic work takes 64 times as long. prepare returns the work on n or on n/8 units. Other
// processes only make work take longer, so Linear takes the least of several measurements,
// and stops when they show that the work is linear.
func Linear(t testing.TB, name string, n int, prepare func(n int) func()) {
	t.Helper()
	small, large := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range 8 {
		small, large = min(small, timed(prepare(n/8))), min(large, timed(prepare(n)))
		if large <= 40*small {
			return
		}
	}
	t.Errorf("%s: %v for %d units and %v for %d, want at most 40 times as long", name, small, n/8, large, n)
}

func timed(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}
