package owner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// client sends operations to the process that owns the folder.
type client struct {
	http  *http.Client
	owner hello
	kinds Kinds
}

// helloOp is the operation that returns a hello.
const helloOp = "hello"

// helloLimit bounds the wait for an owner's hello, twice: a busy owner answers later than
// an idle one. suspendedLimit is enough for an owner that the system reports as suspended,
// unless that is a process of the same number in another container. While a call is open,
// the client sends a hello every pulseEvery. So a call notices a suspended owner within
// 300 ms, and one that hangs within a second.
const (
	helloLimit     = 350 * time.Millisecond
	suspendedLimit = 100 * time.Millisecond
	pulseEvery     = 200 * time.Millisecond
)

// errSilent reports an owner that exists but does not answer.
var errSilent = errors.New("the owner does not answer")

// dial connects to the owner h that listens at path. The error is ErrEnded when no
// process listens there, and errSilent when the process does not answer.
func dial(ctx context.Context, n network, path string, h Holder, kinds Kinds) (*client, error) {
	c := &client{owner: hello{Holder: h}, kinds: kinds, http: &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return n.dial(ctx, path) },
		MaxIdleConnsPerHost: 16,
	}}}
	answer, err := c.hello(ctx)
	if err != nil {
		c.close()
		return nil, err
	}
	c.owner = *answer
	if h = answer.Holder; answer.Protocol != protocol {
		c.close()
		return nil, fmt.Errorf("process %d (%s) owns this folder and runs another version of cairn: stop it, or use the same binary", h.PID, h.Command)
	}
	return c, nil
}

func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}

func (c *client) close() { c.http.CloseIdleConnections() }

// hello returns the owner's description of itself. It tries twice before it returns
// errSilent, because this process may itself have been suspended during the first try.
func (c *client) hello(ctx context.Context) (*hello, error) {
	var err error
	for try := 0; try < 2; try++ {
		h := &hello{}
		limit := helloLimit
		if c.owner.Holder.suspended() {
			limit, try = suspendedLimit, 1
		}
		limited, cancel := context.WithTimeout(ctx, limit)
		err = c.exchange(limited, call{op: helloOp, in: struct{}{}, out: h})
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return h, err
		}
	}
	return nil, errSilent
}

// watchdog calls silent once if the owner stops answering before ctx ends.
func (c *client) watchdog(ctx context.Context, silent func()) {
	pulse := time.NewTicker(pulseEvery)
	defer pulse.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pulse.C:
		}
		if _, err := c.hello(ctx); errors.Is(err, errSilent) {
			silent()
			return
		}
	}
}

// receive sends one request and reads lines until the result. If the connection breaks
// before ctx ends, the error is ErrEnded.
func (c *client) receive(ctx context.Context, call call) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { c.watchdog(ctx, func() { cancel(errSilent) }) })
	defer watching.Wait()
	defer cancel(nil)
	err := c.exchange(ctx, call)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	return err
}

// exchange is receive without the watchdog.
func (c *client) exchange(ctx context.Context, call call) error {
	body, err := json.Marshal(call.in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://owner/"+call.op, bytes.NewReader(body))
	if err != nil {
		return err
	}
	broken := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %v", ErrEnded, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return broken(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the owner of the folder (process %d) answered %s to %s: it may run another version of cairn", c.owner.Holder.PID, resp.Status, call.op)
	}
	for lines := json.NewDecoder(resp.Body); ; {
		var next reply
		if err := lines.Decode(&next); err != nil {
			return broken(err)
		}
		switch {
		case next.Error != nil:
			return c.kinds.decode(next.Error)
		case next.Ahead != nil:
			if err := call.line(next.Ahead); err != nil {
				return err
			}
		default:
			return json.Unmarshal(next.Result, call.out)
		}
	}
}
