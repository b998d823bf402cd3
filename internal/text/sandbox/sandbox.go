// Package sandbox runs a function of this program in child processes with hard limits. A
// request that makes the function crash, or use too much memory or time, costs one child
// and gives one error.
//
// A child is a process of the same executable. It inherits no environment and no file
// descriptor but its three streams, and works in the root directory. On Linux it cannot
// open files, use the network or start processes.
package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Limits bounds each call of a function.
type Limits struct {
	Memory int64         // bytes that a child may have in use
	Time   time.Duration // processor time of a call
}

func (l Limits) errMemory() error {
	return &Error{fmt.Sprintf("takes more than %d MiB of memory to read", l.Memory>>20)}
}

func (l Limits) errTime() error {
	return &Error{fmt.Sprintf("takes more than %g s of processor time to read", l.Time.Seconds())}
}

// Error is why a call failed: the child exceeded a limit or crashed. The request is the
// cause, or a machine that is short of memory.
type Error struct{ Reason string }

func (e *Error) Error() string { return e.Reason }

// Pool runs one function in at most GOMAXPROCS children. It starts a child when a call
// needs one, uses it for many calls, and ends it when it is idle. A Pool is safe for
// concurrent use.
type Pool struct {
	name   string
	limits Limits
	do     func(request []byte) []byte

	mu      sync.Mutex
	queue   []*call
	workers int      // goroutines in work
	idle    []*child // the most recently used is the last
}

// call is one call of the function.
type call struct {
	request  [][]byte // its parts, which are not copied
	size     int      // of all parts
	response []byte
	err      error
	done     chan struct{}
}

// idleTime is how long a child lives without a call.
const idleTime = 10 * time.Second

// New returns a Pool for the function do. The package that calls New keeps the Pool in a
// variable and calls Serve in an init function. The name is unique in the program.
func New(name string, limits Limits, do func(request []byte) []byte) *Pool {
	return &Pool{name: name, limits: limits, do: do}
}

// Call returns the function's response to a request, the parts in sequence. The error is an *Error if the child
// exceeded a limit or crashed; any other error means that the system refuses a child or its
// limits.
func (p *Pool) Call(request ...[]byte) ([]byte, error) {
	c := &call{request: request, done: make(chan struct{})}
	for _, part := range request {
		c.size += len(part)
	}
	p.mu.Lock()
	p.queue = append(p.queue, c)
	if p.workers < runtime.GOMAXPROCS(0) {
		p.workers++
		go p.work()
	}
	p.mu.Unlock()
	<-c.done
	return c.response, c.err
}

// work answers the calls of the queue until there are none. A child receives small requests
// that wait together, since a switch between processes takes as long as a small request.
func (p *Pool) work() {
	for {
		batch := p.next()
		if batch == nil {
			return
		}
		p.try(batch)
		for _, c := range batch {
			if c.response == nil && c.err == nil {
				p.try([]*call{c})
			}
			close(c.done)
		}
	}
}

// The most requests, and bytes of them, that a child receives together.
const (
	maxBatch      = 64
	maxBatchBytes = 256 << 10
)

// next removes the next batch from the queue. It returns nil if the queue is empty; the
// worker must then end.
func (p *Pool) next() []*call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.workers--
		return nil
	}
	n, size := 1, p.queue[0].size
	for n < min(len(p.queue), maxBatch) && size+p.queue[n].size <= maxBatchBytes {
		size += p.queue[n].size
		n++
	}
	batch := p.queue[:n:n]
	p.queue = p.queue[n:]
	return batch
}

// try lets a child answer a batch. If that fails, the calls of a batch of several have
// neither response nor error; a single call is tried again in a new child, and then fails.
func (p *Pool) try(batch []*call) {
	for {
		c, used, err := p.take()
		if err != nil {
			for _, b := range batch {
				b.err = fmt.Errorf("cannot start a process to read it: %w", err)
			}
			return
		}
		if err := c.answer(batch); err == nil {
			p.release(c)
			return
		}
		err = c.end(p.limits)
		if len(batch) > 1 {
			return
		}
		// Earlier calls may have used the memory, and a used child may have ended before
		// the call.
		if !used || err.Error() == p.limits.errTime().Error() {
			batch[0].err = err
			return
		}
	}
}

// take returns an idle child that has been used, or else a new one.
func (p *Pool) take() (c *child, used bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c, p.idle = p.idle[n-1], p.idle[:n-1]
		c.expiry.Stop()
		return c, true, nil
	}
	c, err = start(p.name, p.limits)
	return c, false, err
}

// release keeps a child for the next call.
func (p *Pool) release(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	c.expiry = time.AfterFunc(idleTime, func() { p.expire(c) })
}

// expire ends a child if it is still idle.
func (p *Pool) expire(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, c); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		go c.end(p.limits)
	}
}
