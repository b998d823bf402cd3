package tools

import (
	"context"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// grace is the time for cancelled calls to return.
const grace = 200 * time.Millisecond

// ServeStdio serves one session over line-delimited JSON-RPC until the end of in or ctx,
// whichever comes first. Then it answers the requests that were sent before, for at most
// drainLimit. It writes only JSON-RPC to out.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	const session = "stdio"
	in, restore := pollable(in)
	defer restore()
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c := newConn(calls, in, out, s, session)
	defer c.Close()
	sdk, stop := s.sdkServer(func(mcp.Request) string { return session })
	defer stop()
	ss, err := sdk.Connect(calls, c, nil)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, c.stop)()
	ended := make(chan error, 1)
	go func() {
		err := ss.Wait()
		cancel()
		c.calls.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-c.open.Done():
	}
	// Do not wait long for calls that ignore their cancellation: the process is about to
	// exit, and the index survives that at any time.
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return nil
	}
}
