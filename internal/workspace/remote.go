package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"cairn/retriever"
)

// remote asks the process that owns the folder.
type remote struct {
	w      *Workspace
	client *http.Client
	owner  hello
	silent atomic.Bool // it did not answer when it was asked whether it is there
}

// helloLimit bounds how long an owner may take to say who it is. It does so
// whatever it is busy with; a machine that is, may let it wait.
const helloLimit = time.Second

// pulseEvery is how long an owner may take to answer before it is asked whether
// it is still there, and again after each such time.
const pulseEvery = 500 * time.Millisecond

// errSilent says that the owner is there and does not answer.
var errSilent = fmt.Errorf("%w: it does not answer any more", errGone)

// dial finds the owner behind the socket at path. The error is errGone when
// nobody listens there.
func dial(ctx context.Context, w *Workspace, path string) (*remote, error) {
	r := &remote{w: w, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
		MaxIdleConnsPerHost: 16,
	}}}
	h, err := r.hello(ctx)
	if err != nil {
		r.close()
		return nil, err
	}
	r.owner = *h
	if h.Protocol != protocol {
		r.close()
		return nil, fmt.Errorf("process %d (%s) owns this folder and is of another version of cairn: stop it, or use the same binary", h.Holder.PID, h.Holder.Command)
	}
	return r, nil
}

// hello asks the owner who it is. The error is context.DeadlineExceeded when it
// does not answer.
func (r *remote) hello(ctx context.Context) (*hello, error) {
	ctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	return exchange[hello](ctx, r, opHello, struct{}{}, nil)
}

// listen calls silent once if the owner stops answering before ctx ends. It asks
// twice: this process, too, may have been stopped for a while.
func (r *remote) listen(ctx context.Context, silent func()) {
	pulse := time.NewTicker(pulseEvery)
	defer pulse.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pulse.C:
		}
		var err error
		for range 2 {
			if _, err = r.hello(ctx); !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			r.silent.Store(true)
			silent()
			return
		}
	}
}

func (r *remote) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	return post[retriever.Answer](ctx, r, opSearch, q, nil)
}

func (r *remote) Explain(ctx context.Context, req ExplainRequest) (*retriever.Trace, error) {
	return post[retriever.Trace](ctx, r, opExplain, req, nil)
}

func (r *remote) Read(ctx context.Context, req retriever.ReadRequest) (*retriever.Reading, error) {
	return post[retriever.Reading](ctx, r, opRead, req, nil)
}

func (r *remote) ReadAll(ctx context.Context, req retriever.ReadRequest) (*retriever.Readings, error) {
	return post[retriever.Readings](ctx, r, opReadAll, req, nil)
}

func (r *remote) Index(ctx context.Context, req IndexRequest, progress func(Progress)) (*IndexReport, error) {
	return post[IndexReport](ctx, r, opIndex, req, progress)
}

func (r *remote) Status(ctx context.Context) (*Status, error) {
	s, err := post[Status](ctx, r, opStatus, struct{}{}, nil)
	if err != nil {
		return nil, err
	}
	// The owner was started its own way; who asks wants to know about itself.
	s.Workspace = r.w.selection
	return s, nil
}

func (r *remote) close() error {
	r.client.CloseIdleConnections()
	return nil
}

// post sends one request and returns its result, telling progress on the way.
func post[Out any](ctx context.Context, r *remote, op string, in any, progress func(Progress)) (*Out, error) {
	return receive[Out](ctx, r, op, in, func(line reply) {
		if line.Progress != nil && progress != nil {
			progress(*line.Progress)
		}
	})
}

// receive sends one request and reads lines until the result. Whatever breaks on
// the way while ctx still holds means that the owner has gone, and so does its
// silence: every operation can safely be asked again.
func receive[Out any](ctx context.Context, r *remote, op string, in any, ahead func(reply)) (*Out, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { r.listen(ctx, func() { cancel(errSilent) }) })
	defer listening.Wait()
	defer cancel(nil)
	out, err := exchange[Out](ctx, r, op, in, ahead)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return nil, errSilent
	}
	return out, err
}

// exchange is receive for an owner that answers.
func exchange[Out any](ctx context.Context, r *remote, op string, in any, ahead func(reply)) (*Out, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://owner"+op, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	gone := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %v", errGone, err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, gone(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the owner of the folder (process %d) answered %s to %s: it may be of another version of cairn", r.owner.Holder.PID, resp.Status, op)
	}
	for lines := json.NewDecoder(resp.Body); ; {
		var line reply
		if err := lines.Decode(&line); err != nil {
			return nil, gone(err)
		}
		switch {
		case line.Error != nil:
			return nil, line.Error.decode()
		case line.Progress != nil || line.Watch != nil:
			ahead(line)
		default:
			out := new(Out)
			return out, json.Unmarshal(line.Result, out)
		}
	}
}
