package flat

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
)

func TestSelection(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	for n := range 400 {
		size, k := rng.IntN(20_000), 1+rng.IntN(300)
		slack := float32(rng.IntN(3)) * 0.25
		all := make([]candidate, size)
		for i := range all {
			score := rng.Float32() * 100
			if n%3 == 0 { // many alike
				score = float32(rng.IntN(5))
			}
			all[i] = candidate{score: score, slot: uint32(i)}
		}
		if n%5 == 0 {
			slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.score, b.score) })
		}
		var s selection
		s.reset(k, slack)
		for _, c := range all {
			if c.score >= s.floor {
				s.add(c)
			}
		}
		s.cut()
		slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
		want := len(all)
		if want > k {
			floor := all[k-1].score - slack
			for want = k; want < len(all) && all[want].score >= floor; want++ {
			}
		}
		got := s.items
		slices.SortFunc(got, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.slot, b.slot))
		})
		if len(got) != want {
			t.Fatalf("run %d: %d of %d kept for k = %d and slack %g, want %d", n, len(got), size, k, slack, want)
		}
		for i := range got {
			if got[i].score != all[i].score || i > 0 && got[i].slot == got[i-1].slot {
				t.Fatalf("run %d: place %d is %v, want score %g and no slot twice", n, i, got[i], all[i].score)
			}
		}
	}
}

func TestShare(t *testing.T) {
	for _, threads := range []int{1, 2, 7} {
		for _, n := range []int{0, 1, 2, 5, 1000} {
			calls := make([]atomic.Int32, n)
			busy := make([]atomic.Bool, threads)
			err := share(threads, n, func(worker, i int) error {
				if !busy[worker].CompareAndSwap(false, true) {
					t.Errorf("worker %d runs twice at once", worker)
				}
				calls[i].Add(1)
				busy[worker].Store(false)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			for i := range calls {
				if got := calls[i].Load(); got != 1 {
					t.Errorf("%d threads: call %d of %d made %d times", threads, i, n, got)
				}
			}
		}
	}
	failure := errors.New("call 3")
	err := share(2, 10, func(_, i int) error {
		if i == 3 {
			return failure
		}
		return nil
	})
	if err != failure {
		t.Errorf("error %v, want %v", err, failure)
	}
}
