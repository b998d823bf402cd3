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

type releaser struct {
	observe.Silent
	timer *time.Timer
}

// End implements observe.Listener.
func (r *releaser) End(context.Context, *observe.Call, observe.Outcome, time.Duration) {
	r.timer.Reset(idleAfter)
}
