package flat

import (
	"errors"
	"runtime/debug"
	"sync/atomic"
)

// share calls work(worker, i) once for every i below n, on the caller's goroutine (worker
// 0) and on up to threads-1 others, and returns when all calls have returned. A free
// goroutine takes the next i. The caller does not wait for a goroutine that has not
// started: waking a processor of a virtual machine can take milliseconds, longer than most
// scans. share returns an error if a call could not read mapped memory.
func share(threads, n int, work func(worker, i int)) error {
	var next, ended atomic.Int64
	all := make(chan struct{})
	faults := make([]error, max(1, threads))
	do := func(worker, i int) {
		defer recoverFault(debug.SetPanicOnFault(true), &faults[worker])
		work(worker, i)
	}
	run := func(worker int) {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			do(worker, i)
			if int(ended.Add(1)) == n {
				close(all)
			}
		}
	}
	for worker := 1; worker < min(threads, n); worker++ {
		go run(worker)
	}
	if n > 0 {
		run(0)
		<-all
	}
	return errors.Join(faults...)
}
