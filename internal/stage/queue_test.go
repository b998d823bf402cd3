package stage

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// TestLocalQueue: of many jobs the latest run is delivered first, each job once, and a full
// queue drops those of the earliest run.
func TestLocalQueue(t *testing.T) {
	q := NewLocalQueue()
	publish := func(runs ...int) {
		for n, run := range runs {
			j := Job{TaskID: fmt.Sprint("t", n), Stage: Moderation, Run: run}
			if err := q.Publish(t.Context(), j, j); err != nil {
				t.Fatal(err)
			}
		}
	}
	delivered := func(n int) (runs []string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_ = q.Consume(ctx, Stages, 1, func(_ context.Context, j Job) error {
			if runs = append(runs, fmt.Sprint(j.TaskID, "/", j.Run)); len(runs) == n {
				cancel()
			}
			return nil
		})
		return runs
	}
	publish(1, 3, 1, 2, 3)
	if got, want := delivered(5), []string{"t1/3", "t4/3", "t3/2", "t0/1", "t2/1"}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
	publish(slices.Repeat([]int{1}, maxQueued+5)...)
	publish(2)
	got := delivered(maxQueued)
	if got[0] != "t0/2" || got[maxQueued-1] != fmt.Sprintf("t%d/1", maxQueued-2) || len(q.held) != 0 {
		t.Errorf("after a full queue: the first job is %s, the last %s, and %d are held", got[0], got[maxQueued-1], len(q.held))
	}
}
