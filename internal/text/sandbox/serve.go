package sandbox

import (
	"bufio"
	"encoding/binary"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// checkInterval is how often a child compares its use of memory and time with the limits.
// The limits that the system enforces are the second defence: they end a child that
// allocates faster.
const checkInterval = 10 * time.Millisecond

// lifetime is how many times the Time of a call a child may use before it ends, so that
// the system can limit its processor time.
const lifetime = 20

// Serve answers calls until the parent ends, and then exits, if this process is a child of
// the pool. Otherwise it returns at once.
func (p *Pool) Serve() {
	if len(os.Args) != 1 || os.Args[0] != argument+p.name {
		return
	}
	debug.SetMaxStack(int(p.limits.Memory / 4))
	if err := restrict(Limits{Memory: p.limits.Memory, Time: (lifetime + 1) * p.limits.Time}); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(exitRefused)
	}
	var began atomic.Int64 // processor time at the start of the call, plus 1; 0 between calls
	go p.watch(&began)
	out := bufio.NewWriterSize(os.Stdout, maxBatchBytes)
	for {
		batch, err := readFrame(os.Stdin)
		if err != nil {
			os.Exit(0)
		}
		for len(batch) > 0 {
			end := headSize + int(binary.LittleEndian.Uint32(batch)) // the parent writes whole frames
			request := batch[headSize:end:end]
			batch = batch[end:]
			began.Store(int64(processorTime()) + 1)
			response := p.do(request)
			began.Store(0)
			_, _ = out.Write(head(len(response)))
			_, _ = out.Write(response)
		}
		if out.Flush() != nil || processorTime() > lifetime*p.limits.Time {
			os.Exit(0)
		}
	}
}

// watch exits when a call exceeds a limit.
func (p *Pool) watch(began *atomic.Int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(checkInterval) {
		start := began.Load()
		if start == 0 {
			continue
		}
		if int64(processorTime())-start > int64(p.limits.Time) {
			os.Exit(exitTime)
		}
		if metrics.Read(samples); int64(samples[0].Value.Uint64()-samples[1].Value.Uint64()) > p.limits.Memory {
			os.Exit(exitMemory)
		}
	}
}
