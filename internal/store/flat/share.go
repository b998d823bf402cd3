package flat

import (
	"cmp"
	"runtime/debug"
	"sync/atomic"
)

// share calls work(worker, i) once for every i below n, on the caller's goroutine (worker
// 0) and on up to threads-1 others, and returns when all calls have returned. A free
// goroutine takes the next i. The caller does not wait for a goroutine that has not
// started: waking a processor of a virtual machine can take milliseconds, longer than most
// scans. share returns the error of a call, also of one that could not read mapped memory.
// A worker makes no further call after an error.
func share(threads, n int, work func(worker, i int) error) error {
	var next, ended atomic.Int64
	all := make(chan struct{})
	errs := make([]error, max(1, threads))
	do := func(worker, i int) (err error) {
		defer recoverFault(debug.SetPanicOnFault(true), &err)
		return work(worker, i)
	}
	run := func(worker int) {
		for {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if errs[worker] == nil {
				errs[worker] = do(worker, i)
			}
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
	return cmp.Or(errs...)
}
