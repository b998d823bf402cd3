package tools

import (
	"testing"
	"time"
)

func TestLimiterSlidingWindow(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := newLimiter(func() time.Time { return now })
	r := rate{Limit: 10, Burst: 15}
	for i := range 15 {
		if f := l.allow("a", "read_context", r); f != nil {
			t.Fatalf("call %d refused: %v", i+1, f)
		}
		now = now.Add(time.Second)
	}
	// The first call was 15 s ago, so a place comes free in 45 s.
	f := l.allow("a", "read_context", r)
	if f == nil || f.Code != 429 || f.Data["retry_after_seconds"] != 45 || f.Data["limit"] != 10 || f.Data["current_count"] != 15 || f.Data["window_seconds"] != 60 {
		t.Fatalf("call 16 = %+v, want 429, retry after 45 s, limit 10, count 15", f)
	}
	if f := l.allow("a", "read_doc", r); f != nil {
		t.Errorf("another tool shares the count: %v", f)
	}
	if f := l.allow("b", "read_context", r); f != nil {
		t.Errorf("another session shares the count: %v", f)
	}
	now = now.Add(44*time.Second + 500*time.Millisecond)
	if f := l.allow("a", "read_context", r); f == nil || f.Data["retry_after_seconds"] != 1 {
		t.Errorf("half a second early = %+v, want 429 and retry after 1 s", f)
	}
	now = now.Add(500 * time.Millisecond)
	if f := l.allow("a", "read_context", r); f != nil {
		t.Errorf("a minute after the first call: %v, want it allowed", f)
	}
	if f := l.allow("a", "read_context", r); f == nil {
		t.Error("the second place came free at once, want one a second")
	}
}
