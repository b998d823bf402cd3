package qdrant

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// leaseRecord is the record that the writer renews. Its value is the name of the holder, ""
// after Release.
const leaseRecord = "writer"

// A lease is free if it was not renewed for leaseTime, by the clock of the waiting
// process. Clocks of different machines are never compared.
const (
	leaseTime  = 15 * time.Second
	leaseRenew = 2 * time.Second
	leaseLook  = 500 * time.Millisecond
	// leaseSure is how long a process may assume that it has the lease, from the start of
	// its last successful renewal, since another process may have read the record then.
	leaseSure = leaseTime * 2 / 3
)

// Lease is the right to write. It is renewed in the background until Release.
type Lease struct {
	records register
	cancel  context.CancelCauseFunc
	done    chan struct{}
	version int64 // of renew until done is closed
}

// ErrLeaseLost is the cause of the end of a lease's context if another process took the
// lease or the lease could not be renewed in time.
var ErrLeaseLost = errors.New("another process may write now: the lease of the store was lost")

// register is the part of Records that a lease uses.
type register interface {
	Get(ctx context.Context, name string) (value []byte, version int64, err error)
	Put(ctx context.Context, name string, value []byte, from int64) (int64, error)
}

// Lease waits until no other process has the lease and takes it. The returned context
// ends when the lease is lost or released; the end of ctx only ends the wait. waiting, if
// not nil, is called once if another process has the lease. A process that lost its own lease
// also waits until it expires. Lease fails if the names of the store belong to another one.
func (c *Client) Lease(ctx context.Context, holder string, waiting func(holder string)) (_ *Lease, held context.Context, err error) {
	defer wrap(&err, "taking the lease of %s", c.target)
	if err := c.claim(ctx); err != nil {
		return nil, nil, err
	}
	l, held, err := takeLease(ctx, c.Records(), holder, waiting)
	if err == nil {
		c.Create()
	}
	return l, held, err
}

func takeLease(ctx context.Context, records register, holder string, waiting func(holder string)) (*Lease, context.Context, error) {
	tick := time.NewTicker(leaseLook)
	defer tick.Stop()
	mine := []byte(holder)
	seen, since := int64(-1), time.Now()
	for {
		value, version, err := records.Get(ctx, leaseRecord)
		if err != nil {
			return nil, nil, err
		}
		if version != seen {
			seen, since = version, time.Now()
		}
		if len(value) == 0 || time.Since(since) >= leaseTime {
			begun := time.Now()
			taken, err := records.Put(ctx, leaseRecord, mine, version)
			if err == nil && time.Since(begun) < leaseSure {
				l := &Lease{records: records, done: make(chan struct{}), version: taken}
				held, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
				l.cancel = cancel
				go l.renew(held, mine, begun)
				return l, held, nil
			}
			if err != nil && !errors.Is(err, ErrConflict) {
				return nil, nil, err
			}
			continue
		}
		if waiting != nil && string(value) != holder {
			waiting(string(value))
			waiting = nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// renew renews the lease, whose last renewal began at last. It gives up before other
// processes may take the lease.
func (l *Lease) renew(ctx context.Context, mine []byte, last time.Time) {
	defer close(l.done)
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		attempt, cancel := context.WithTimeout(ctx, leaseRenew)
		begun := time.Now()
		version, err := l.records.Put(attempt, leaseRecord, mine, l.version)
		cancel()
		if err == nil {
			l.version, last = version, begun
		}
		if errors.Is(err, ErrConflict) || time.Since(last) > leaseSure {
			l.cancel(ErrLeaseLost)
			return
		}
	}
}

// Release releases the lease. It has no effect on a lost lease.
func (l *Lease) Release(ctx context.Context) error {
	l.cancel(context.Canceled)
	<-l.done
	if _, err := l.records.Put(ctx, leaseRecord, nil, l.version); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("releasing the lease: %w", err)
	}
	return nil
}
