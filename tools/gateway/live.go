package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"cairn/internal/toolbox/catalog"
	"cairn/tools/client"
)

const (
	// maxNotices bounds the progress and log messages of one call that are forwarded, and
	// maxQuestions the questions of a server during it.
	maxNotices   = 1000
	maxQuestions = 8
	// maxConcurrent bounds the calls of one server at a time.
	maxConcurrent = 32
	// maxBackoff bounds the wait before the next start of a server that fails.
	maxBackoff = time.Minute
	// relist is the age at which the definitions of a running server are read again.
	relist = 5 * time.Minute
	// serverGrace is shorter than the time in which an MCP server, cairn, must exit.
	serverGrace = 400 * time.Millisecond
)

// live is the running state of one server.
type live struct {
	gateway *Gateway
	gate    *semaphore.Weighted // of size 1, held to start the server and to read its definitions

	mu       sync.Mutex
	server   Server
	session  *client.Session // nil while the server does not run
	tools    map[string]tool // by bare name, as of listed
	listed   time.Time       // zero after the server has announced a change
	stamp    string          // of the approved definitions, as of listed
	calls    map[string]*running
	next     int // number of the last call
	failures int // in sequence
	retry    time.Time
	cause    error // of the last failure
	idle     *time.Timer

	closing sync.WaitGroup // sessions that end
}

// tool is a tool that can be called, or the reason why it cannot.
type tool struct {
	catalog.Tool
	check func(arguments []byte) error
	why   string
}

// running is a call in progress.
type running struct {
	mu        sync.Mutex
	peer      Peer
	notices   int
	questions int
}

type runningKey struct{}

// down returns the error for a server that does not run.
func down(server string, err error) *Error {
	return refuse(Down, "the server %s does not run: %w", server, err)
}

// connect returns the session, and starts the server if it does not run.
func (l *live) connect(ctx context.Context) (*client.Session, error) {
	if err := l.gate.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer l.gate.Release(1)
	l.mu.Lock()
	session, server, wait := l.session, l.server, l.retry.Sub(l.gateway.o.Now())
	cause := l.cause
	l.mu.Unlock()
	if session != nil {
		return session, nil
	}
	if wait > 0 {
		return nil, down(server.Name, fmt.Errorf("%w; it starts again in %v", cause, wait.Round(time.Second/10)))
	}
	session, err := l.start(ctx, &server)
	if err != nil && ctx.Err() == nil {
		l.mu.Lock()
		l.fail(err)
		l.mu.Unlock()
	}
	if err != nil {
		return nil, down(server.Name, err)
	}
	return session, nil
}

// start connects to a server. The caller holds the gate.
func (l *live) start(ctx context.Context, server *Server) (*client.Session, error) {
	if missing := server.Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("the environment of cairn has no variable %s", missing[0])
	}
	log := &serverLog{path: l.gateway.store.file(server, ".log")}
	ctx, cancel := context.WithTimeoutCause(ctx, client.Timeout, fmt.Errorf("the server took longer than %v to start", client.Timeout))
	defer cancel()
	session, err := client.Connect(ctx, client.Target{
		Command: server.Command, Env: server.environment(), Dir: l.gateway.o.Root, Log: log, Grace: serverGrace,
		URL: server.URL, Token: os.Getenv(server.TokenEnv), Header: server.header(), OAuth: l.gateway.store.login(server, nil), Version: l.gateway.o.Version,
	}, l.handlers())
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return nil, err
	}
	l.mu.Lock()
	l.session, l.listed = session, time.Time{}
	l.rest()
	l.mu.Unlock()
	go func() {
		err := session.Wait()
		l.lost(session, reason(err))
	}()
	l.gateway.o.Logger.Info("started a server", "server", server.Name)
	return session, nil
}

// fail records a failure. The first restart is immediate, each further one waits twice as
// long. The caller holds l.mu.
func (l *live) fail(err error) {
	l.failures++
	l.cause = err
	if l.failures > 1 {
		l.retry = l.gateway.o.Now().Add(min(maxBackoff, time.Second<<min(l.failures-2, 10)))
	}
}

// lost ends a session that has failed, unless it has been replaced.
func (l *live) lost(session *client.Session, err error) {
	l.mu.Lock()
	current, name := l.session == session, l.server.Name
	if current {
		l.session = nil
		l.fail(err)
	}
	l.mu.Unlock()
	if current {
		l.closing.Go(session.Close) // the caller does not wait for the server to exit
		l.gateway.o.Logger.Warn("lost a server", "server", name, "error", err)
	}
}

// end ends the server without a failure.
func (l *live) end() {
	l.mu.Lock()
	session := l.session
	l.session = nil
	if l.idle != nil {
		l.idle.Stop()
	}
	l.mu.Unlock()
	if session != nil {
		session.Close()
	}
	l.closing.Wait()
}

// rest ends the server after a time without calls. The caller holds l.mu.
func (l *live) rest() {
	if l.idle != nil {
		l.idle.Stop()
	}
	l.idle = time.AfterFunc(l.gateway.o.Idle, func() {
		l.mu.Lock()
		busy := len(l.calls) > 0
		if busy {
			l.rest()
		}
		l.mu.Unlock()
		if !busy {
			l.end()
		}
	})
}

// call sends a call and waits for its answer.
func (l *live) call(ctx context.Context, session *client.Session, c Call) (*mcp.CallToolResult, error) {
	call := &running{peer: c.Peer}
	l.mu.Lock()
	if l.session != session {
		l.mu.Unlock()
		return nil, down(c.Server, errors.New("it ended just before the call"))
	}
	if len(l.calls) >= maxConcurrent {
		l.mu.Unlock()
		return nil, refuse(Down, "the server %s is busy: %d calls are in progress", c.Server, maxConcurrent)
	}
	l.next++
	token := strconv.Itoa(l.next)
	l.calls[token] = call
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, token)
		l.rest()
	}()
	type outcome struct {
		result *mcp.CallToolResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() { // a write to a stopped server does not end with ctx
		r, err := send(context.WithValue(ctx, runningKey{}, call), session, c, token)
		done <- outcome{r, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		o.err = ctx.Err()
	}
	return l.settle(session, c, o.result, o.err)
}

// send sends a call, whose progress has the token. The contents of a resource become a result.
func send(ctx context.Context, session *client.Session, c Call, token string) (*mcp.CallToolResult, error) {
	if c.Tool != ReadResource {
		p := &mcp.CallToolParams{Name: c.Tool, Arguments: json.RawMessage(c.Arguments)}
		p.SetProgressToken(token)
		return session.CallTool(ctx, p)
	}
	read, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: string(c.Arguments)})
	if err != nil {
		return nil, err
	}
	r := &mcp.CallToolResult{}
	for _, part := range read.Contents {
		r.Content = append(r.Content, &mcp.EmbeddedResource{Resource: part})
	}
	return r, nil
}

// settle records the outcome of a call and classifies its error.
func (l *live) settle(session *client.Session, c Call, r *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && answer.Code != refusal.Code && !errors.Is(err, mcp.ErrConnectionClosed) {
		text := strings.TrimSpace(answer.Message + "\n" + string(answer.Data))
		if session.ID() != "" && errors.Is(err, refusal) && !l.probe(session) {
			return nil, refuse(Down, "the server %s has ended the session (%s); the next call starts another", c.Server, text)
		}
		err = nil
		r = &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	switch {
	case err == nil:
		l.mu.Lock()
		l.failures, l.retry = 0, time.Time{}
		l.mu.Unlock()
		return r, nil
	case errors.Is(err, context.DeadlineExceeded):
		go l.probe(session)
		err = errors.New("it exceeded its time limit")
	case errors.Is(err, context.Canceled):
		return nil, err
	default: // the server ended, or its answer is no result
		l.probe(session)
		err = reason(err)
	}
	return nil, refuse(Lost, "%s:%s gave no result, and may have run: %w", c.Server, c.Tool, err)
}

// refusal is the error of the SDK for a request that an HTTP server did not take.
var refusal = &jsonrpc.Error{Code: -32005, Message: "rejected by transport"}

// reason returns the error of a session or of a call without types of Go and names of pipes.
func reason(err error) error {
	_, bad := errors.AsType[*json.UnmarshalTypeError](err)
	_, status, refused := strings.Cut(fmt.Sprint(err), refusal.Message+": ")
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
		return errors.New("the server ended")
	case refused:
		return errors.New(status)
	case bad:
		return errors.New("its answer has another form than a result of a tool")
	}
	return err
}

// probe reports whether the server answers a ping, and ends the session of one that does not.
func (l *live) probe(session *client.Session) (answers bool) {
	ctx, cancel := context.WithTimeout(context.Background(), l.gateway.o.Probe)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- session.Ping(ctx, nil) }()
	select {
	case err := <-done:
		if _, ok := errors.AsType[*jsonrpc.Error](err); err == nil || ok && !errors.Is(err, mcp.ErrConnectionClosed) && (session.ID() == "" || !errors.Is(err, refusal)) {
			return true
		}
	case <-ctx.Done():
	}
	l.lost(session, errors.New("the server stopped answering"))
	return false
}
