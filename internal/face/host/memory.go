package host

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"cairn/internal/base/observe"
)

// reserve is memory that nothing touches, so that it occupies none. Go's collector counts it
// as live and therefore runs less often, and delays fewer than 1 of 20 searches of a small
// folder. It is allocated first, in memory that no other data has used.
var reserve = make([]byte, 10<<20)

// idleAfter is how long after a call the process returns the memory that it does not use.
const idleAfter = 10 * time.Second

// idle is a listener that returns memory to the system when the calls of all folders pause.
var idle = &releaser{timer: time.AfterFunc(math.MaxInt64, debug.FreeOSMemory)}

type releaser struct{ timer *time.Timer }

func (r *releaser) Begin(ctx context.Context, _ *observe.Call) context.Context { return ctx }
func (r *releaser) End(context.Context, *observe.Call, observe.Outcome, time.Duration) {
	r.timer.Reset(idleAfter)
}
func (r *releaser) Stage(context.Context, observe.Stage, time.Time, time.Duration) {}
func (r *releaser) Cached(context.Context, bool)                                   {}
