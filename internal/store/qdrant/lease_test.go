package qdrant

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/base/testutil"
)

// simRecord is a record of a simulated server.
type simRecord struct {
	mu      sync.Mutex
	value   []byte
	version int64
}

func (r *simRecord) get() ([]byte, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, r.version
}

func (r *simRecord) put(value []byte, from int64) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version != from {
		return 0, ErrConflict
	}
	r.value, r.version = value, from+1
	return r.version, nil
}

// leaseSimulation is one run of TestLeaseSimulation.
type leaseSimulation struct {
	*testutil.Chance
	record simRecord
	calm   atomic.Bool // no more faults

	mu      sync.Mutex
	writers map[*simWriter]context.Context // leases, by their holders
}

// simWriter is the record as one process sees it. Its calls take long, are not
// delivered, take effect after the process has given up, or lose their answers.
type simWriter struct {
	sim  *leaseSimulation
	name string
	dead atomic.Bool
}

var errUnreached = errors.New("not reached")

// do makes a call, which may take effect after ctx has ended.
func (w *simWriter) do(ctx context.Context, what string, call func()) error {
	r := w.sim.Of(w.name, what)
	faulty := !w.sim.calm.Load()
	there, back := simDelay(r, faulty), simDelay(r, faulty)
	lost, unanswered := faulty && r.IntN(12) == 0, faulty && r.IntN(12) == 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		time.Sleep(there)
		if !lost && !w.dead.Load() {
			call()
		}
		time.Sleep(back)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	if lost || unanswered || w.dead.Load() {
		return errUnreached
	}
	return nil
}

func simDelay(r *rand.Rand, faulty bool) time.Duration {
	limit := 300 * time.Millisecond
	if faulty && r.IntN(15) == 0 {
		limit = time.Minute
	}
	return time.Duration(r.Int64N(int64(limit))) + 1
}

// Get implements register.
func (w *simWriter) Get(ctx context.Context, _ string) (value []byte, version int64, err error) {
	var got []byte
	var at int64
	if err := w.do(ctx, "get", func() { got, at = w.sim.record.get() }); err != nil {
		return nil, 0, err
	}
	return got, at, nil
}

// Put implements register.
func (w *simWriter) Put(ctx context.Context, _ string, value []byte, from int64) (int64, error) {
	var version int64
	var failure error
	if err := w.do(ctx, "put", func() { version, failure = w.sim.record.put(value, from) }); err != nil {
		return 0, err
	}
	return version, failure
}

// TestLeaseSimulation: at most one of three processes has the lease, whatever happens to
// their calls and to them, and each gets it soon after the faults end.
func TestLeaseSimulation(t *testing.T) {
	testutil.Simulate(t, func(t *testing.T, c *testutil.Chance) {
		s := &leaseSimulation{Chance: c, writers: map[*simWriter]context.Context{}}
		ctx, stop := context.WithCancel(t.Context())
		var processes sync.WaitGroup
		var calmly [3]atomic.Int64 // leases since the faults ended
		for i := range calmly {
			processes.Go(func() {
				for life := 0; ctx.Err() == nil; life++ {
					s.process(ctx, t, fmt.Sprint("process ", i, ", life ", life), &calmly[i])
				}
			})
		}
		time.Sleep(20 * time.Minute)
		s.calm.Store(true)
		time.Sleep(10 * time.Minute)
		stop()
		processes.Wait()
		for i := range calmly {
			if calmly[i].Load() == 0 {
				t.Errorf("seed %d: process %d did not get the lease in ten minutes without a fault", c.Seed, i)
			}
		}
		time.Sleep(2 * time.Minute) // until calls that were given up have ended
	})
}

// process takes the lease again and again until ctx ends or it is killed.
func (s *leaseSimulation) process(ctx context.Context, t *testing.T, name string, calmly *atomic.Int64) {
	w := &simWriter{sim: s, name: name}
	r := s.Of(name)
	alive, kill := context.WithCancel(ctx)
	defer kill()
	killer := time.AfterFunc(time.Duration(r.Int64N(int64(10*time.Minute))), func() {
		if !s.calm.Load() {
			w.dead.Store(true)
			kill()
		}
	})
	defer killer.Stop()
	for alive.Err() == nil {
		l, held, err := takeLease(alive, w, name, nil)
		if err != nil {
			time.Sleep(time.Duration(r.Int64N(int64(5*time.Second))) + 1)
			continue
		}
		if s.calm.Load() {
			calmly.Add(1)
		}
		s.hold(t, w, held)
		select {
		case <-held.Done():
		case <-alive.Done():
		case <-time.After(time.Duration(r.Int64N(int64(time.Minute)))):
		}
		s.mu.Lock()
		delete(s.writers, w)
		s.mu.Unlock()
		if err := l.Release(context.WithoutCancel(ctx)); err != nil && s.calm.Load() && !errors.Is(err, errUnreached) {
			t.Errorf("seed %d: %s gives the lease back: %v", s.Seed, name, err)
		}
		time.Sleep(time.Duration(r.Int64N(int64(10*time.Second))) + 1) // the lease is not fair
	}
	time.Sleep(time.Duration(r.Int64N(int64(30*time.Second))) + 1)
}

// hold checks that no other process that is alive has the lease.
func (s *leaseSimulation) hold(t *testing.T, w *simWriter, held context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, lease := range s.writers {
		if held.Err() == nil && lease.Err() == nil && !other.dead.Load() && !w.dead.Load() {
			t.Errorf("seed %d: %s and %s have the lease", s.Seed, other.name, w.name)
		}
	}
	s.writers[w] = held
}
