package testutil

import "time"

var start = time.Now()

// ProcessorTime returns the time since the start of the process.
func ProcessorTime() time.Duration { return time.Since(start) }
