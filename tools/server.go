package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/observe"
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
	"cairn/retriever"
)

// Engine is the workspace the tools work on; *workspace.Workspace is one.
// Every method may be called concurrently.
type Engine interface {
	Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error)
	Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error)
	ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error)
	Index(ctx context.Context, r workspace.IndexRequest, progress func(workspace.Progress)) (*workspace.IndexReport, error)
	Status(ctx context.Context) (*workspace.Status, error)
	Documents(ctx context.Context, r workspace.DocumentsRequest) (*workspace.Documents, error)
}

// Options are the knobs of New. Nil and the zero value mean the defaults.
type Options struct {
	// Version is the server's own version; "" is "devel".
	Version string
	// Logger receives what goes wrong beside the answers; nil is silent.
	Logger *slog.Logger
	// NoRateLimit turns the limits of the specification off.
	NoRateLimit bool
	// DefaultMode is the mode of read_context when none is given; "" is hybrid.
	DefaultMode retriever.Mode
	// Groups are the tools to offer; nil is Core.
	Groups []Group
	// Toolbox is what the tools of Catalog work on; without one they are not offered.
	Toolbox *workspace.Toolbox
	// Tasks is what the tools of Tasks and DAG work on, and those of Docs that do
	// more than read; without it they are not offered.
	Tasks *workspace.Tasks
	// Stages is what the tools of Stages work on; without it they are not offered.
	Stages *workspace.Stages
	// Recorder notes what sessions look for and use; nil notes nothing. It is the
	// caller's to close, after the last session.
	Recorder *Recorder
	// Watch tells of changed documents, and clients are told of them; nil, or
	// what has no method Watch, tells nothing.
	Watch any
	// Listener is told of calls and of the stages of searches and readings; nil
	// is nobody. Engine is best Observed by the same.
	Listener observe.Listener
	// Workspace is what calls are said to be in; "" where there is only one.
	Workspace string
	// Extend, when not nil, changes the options of the SDK's server, and returns a
	// function that registers more with it; stop is called when the server ends.
	// The conformance suite needs it, the product does not.
	Extend func(*mcp.ServerOptions) (register func(*mcp.Server) (stop func()))
	// Now is the clock of the limits; nil is time.Now.
	Now func() time.Time
}

// Server offers the tools to any number of sessions.
type Server struct {
	engine  Engine
	options Options
	tools   []tool
	limits  *limiter
	// running bounds the calls worked on at once, over all sessions: more
	// would not be answered sooner, only hold memory.
	running chan struct{}
}

// maxRunning is some multiple of the cores a server has; calls beyond wait.
const maxRunning = 16

// tool is one tool: what is told about it and what it does.
type tool struct {
	name, title, description string
	input, output            string // JSON Schema
	readOnly                 bool
	adds                     bool // writes, but takes nothing away
	counts                   bool // the same call twice is not the same as once
	rate                     rate // zero: unlimited
	// long marks calls that mostly wait; they are not counted as running.
	long bool
	// call does the work. Errors are translated by FailureOf.
	call func(ctx context.Context, c call) (any, error)
	// bare turns the structured content into what the method of the tool's
	// name answers with; nil leaves it as it is.
	bare func(any) any
}

// call is one use of a tool.
type call struct {
	args     json.RawMessage
	progress func(workspace.Progress) // nil when nobody asked
	// id is that of the request, and parent and state its trace context, where
	// they do not come with the context of the call.
	id, parent, state string
}

// New returns a server over engine.
func New(engine Engine, o *Options) *Server {
	s := &Server{engine: engine, running: make(chan struct{}, maxRunning)}
	if o != nil {
		s.options = *o
	}
	if s.options.Version == "" {
		s.options.Version = "devel"
	}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	if s.options.DefaultMode == "" {
		s.options.DefaultMode = retriever.Hybrid
	}
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	if s.options.Recorder != nil {
		engine = recorded{engine}
		s.engine = engine
	}
	s.limits = newLimiter(s.options.Now)
	s.tools = offered(engine, &s.options)
	return s
}

// find returns the tool of that name.
func (s *Server) find(name string) (tool, bool) {
	for _, t := range s.tools {
		if t.name == name {
			return t, true
		}
	}
	return tool{}, false
}

// do runs one call of a session within the limits, and tells of it.
func (s *Server) do(ctx context.Context, session string, t tool, c call) (any, *Failure) {
	l := s.options.Listener
	if l == nil {
		return s.run(ctx, session, t, c)
	}
	o := &observe.Call{ID: observe.ID(ctx), Tool: t.name, Workspace: s.options.Workspace, Arguments: c.args, TraceParent: c.parent, TraceState: c.state}
	if o.ID == "" {
		o.ID = observe.IDOf(c.id)
	}
	start := time.Now()
	ctx = l.Begin(ctx, o)
	answer, f := s.run(ctx, session, t, c)
	l.End(ctx, o, outcome(ctx, f), time.Since(start))
	return answer, f
}

// run runs one call.
func (s *Server) run(ctx context.Context, session string, t tool, c call) (any, *Failure) {
	if t.rate.Burst > 0 && !s.options.NoRateLimit {
		if f := s.limits.allow(session, t.name, t.rate); f != nil {
			return nil, f
		}
	}
	if !t.long {
		select {
		case s.running <- struct{}{}:
			defer func() { <-s.running }()
		case <-ctx.Done():
			return nil, FailureOf(ctx.Err())
		}
	}
	answer, err := t.call(ctx, c)
	if err != nil {
		f := FailureOf(err)
		if f.Code == CodeInternal && f.Data == nil && !errors.Is(err, context.Canceled) {
			s.options.Logger.Error("tool failed", "tool", t.name, "error", err)
		}
		return nil, f
	}
	return answer, nil
}

// channelHeader names the tasks that the dag tools mean over HTTP when a request
// names none.
const channelHeader = "X-Cairn-Channel"

// sdkServer makes the SDK's server for one transport. session names whom a call
// is counted against, agent whose work it is noted as; "" is nobody's.
// What goes on in the background ends with stop.
func (s *Server) sdkServer(session func(*mcp.CallToolRequest) string, agent func(mcp.Request) string) (_ *mcp.Server, stop func()) {
	o := &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{}, Completions: &mcp.CompletionCapabilities{},
			Resources: &mcp.ResourceCapabilities{ListChanged: s.options.Watch != nil, Subscribe: s.options.Watch != nil},
		},
		CompletionHandler:  s.complete,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		SetCacheable:       cacheable,
	}
	if s.options.Watch == nil {
		o.SubscribeHandler, o.UnsubscribeHandler = nil, nil
	}
	register := func(*mcp.Server) func() { return func() {} }
	if s.options.Extend != nil {
		register = s.options.Extend(o)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "cairn", Title: "cairn", Version: s.options.Version}, o)
	s.addResources(server)
	s.addPrompts(server)
	for _, t := range s.tools {
		server.AddTool(t.definition(), func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c := call{args: req.Params.Arguments, progress: notifier(ctx, req)}
			if req.Extra != nil {
				ctx = taskgraph.WithChannel(ctx, req.Extra.Header.Get(channelHeader))
				c.id = req.Extra.Header.Get(observe.IDHeader)
			}
			c.parent, c.state = traceOf(req)
			f := allowed(req, t)
			var answer any
			if f == nil {
				answer, f = s.do(ctx, session(req), t, c)
			}
			if f != nil {
				return result(f, true)
			}
			return result(answer, false)
		})
	}
	server.AddReceivingMiddleware(s.instruct, func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(s.noting(ctx, agent(req)), method, req)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.follow(ctx, server) })
	end := register(server)
	return server, func() {
		cancel()
		end()
		wg.Wait()
	}
}

// cacheable says how long an answer may be kept: tools, prompts and templates
// change only with the binary, documents at any moment, and what is told of
// the server holds the state of the index.
func cacheable(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	c.TTLMs, c.CacheScope = int(time.Hour/time.Millisecond), "private"
	switch req.(type) {
	case *mcp.ListResourcesRequest, *mcp.ReadResourceRequest:
		c.TTLMs = 0
	case *mcp.ServerRequest[*mcp.DiscoverParams]:
		c.TTLMs = int(time.Minute / time.Millisecond)
	}
}

// instruct adds the instructions to the answers that carry them: they tell the
// state of the index at that moment, and a server lives longer than a session.
func (s *Server) instruct(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		switch r := result.(type) {
		case *mcp.InitializeResult:
			if r != nil {
				r.Instructions = s.instructions(ctx)
			}
		case *mcp.DiscoverResult:
			if r != nil {
				r.Instructions = s.instructions(ctx)
			}
		}
		return result, err
	}
}

// definition is what tools/list says about the tool.
func (t tool) definition() *mcp.Tool {
	no, destroys := false, !t.readOnly && !t.adds
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		InputSchema: json.RawMessage(t.input), OutputSchema: json.RawMessage(t.output),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.readOnly, IdempotentHint: !t.counts, DestructiveHint: &destroys, OpenWorldHint: &no},
	}
}

// result puts a value into both channels: clients forward one or the other.
func result(value any, isError bool) (*mcp.CallToolResult, error) {
	text, err := marshal(value)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(text)}},
		StructuredContent: json.RawMessage(text),
		IsError:           isError,
	}, nil
}

// notifier reports progress to a client that sent a token; else it is nil.
func notifier(ctx context.Context, req *mcp.CallToolRequest) func(workspace.Progress) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	step := 0.0 // has to grow with each notification, over all phases
	return func(p workspace.Progress) {
		step++
		// A client that has gone away misses nothing.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step, Message: p.String()})
	}
}

// ServeStdio serves one session over line-delimited JSON-RPC until in ends or
// ctx does, whichever is first; what was asked by then is still answered, for
// at most drainLimit. Nothing but JSON-RPC is written to out.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	const session = "stdio"
	defer s.limits.forget(session)
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	isDirect := func(method string) bool { _, ok := s.find(method); return ok }
	c := newConn(calls, in, out, isDirect, func(ctx context.Context, method string, params json.RawMessage) (any, error) {
		t, _ := s.find(method)
		answer, f := s.do(s.noting(ctx, session), session, t, call{args: params})
		if f != nil {
			return nil, f.wire()
		}
		if t.bare != nil {
			answer = t.bare(answer)
		}
		return answer, nil
	})
	defer c.Close()
	sdk, stop := s.sdkServer(func(*mcp.CallToolRequest) string { return session }, func(mcp.Request) string { return session })
	defer stop()
	ss, err := sdk.Connect(calls, c, nil)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, c.shutdown)()
	ended := make(chan error, 1)
	go func() {
		err := ss.Wait()
		cancel()
		c.calls.Wait()
		ended <- err
	}()
	return within(ended, c.closed)
}

// within waits for the session to end. Once the connection is closed, calls
// that do not heed their cancellation are given little time: the process is
// about to end and the index survives that at any moment.
func within(ended <-chan error, closed <-chan struct{}) error {
	select {
	case err := <-ended:
		return err
	case <-closed:
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return nil
	}
}

// grace is how long cancelled calls may take to return.
const grace = 200 * time.Millisecond
