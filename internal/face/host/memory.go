package host

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"cairn/internal/base/observe"
)

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
