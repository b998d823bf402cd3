package quota

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestWait: calls get returned units in the order of their arrival. A client at its limit
// delays no other, and a call that gives up leaves its place.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(2, 3)
		if !q.Take("a", 2) || q.Take("a", 1) {
			t.Fatal("Take ignores the limit of a client")
		}
		order := make(chan string, 8)
		var calls sync.WaitGroup
		wait := func(name, client string, limit time.Duration) {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				if !q.Wait(ctx, client, 1) {
					name = "not " + name
				}
				order <- name
			})
			synctest.Wait()
		}
		want := func(name string) {
			t.Helper()
			if synctest.Wait(); len(order) == 0 {
				t.Fatalf("no call ended, want %s", name)
			}
			if got := <-order; got != name {
				t.Errorf("%s ended, want %s", got, name)
			}
		}
		wait("a1", "a", time.Second)
		wait("a2", "a", time.Hour)
		wait("a3", "a", time.Hour)
		wait("b1", "b", time.Hour)
		want("b1") // although calls of a wait
		wait("b2", "b", time.Hour)
		time.Sleep(time.Second)
		want("not a1")
		q.Return("b", 1)
		want("b2") // a is at its limit
		q.Return("a", 1)
		want("a2")
		q.Return("a", 1)
		want("a3")
		calls.Wait()
		q.Return("a", 2)
		q.Return("b", 1)
		if q.sum != 0 || len(q.used) != 0 || len(q.waiting) != 0 {
			t.Errorf("in use at the end: %d, %v, %d calls wait", q.sum, q.used, len(q.waiting))
		}
	})
}
