package tools

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/observe"
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
	"cairn/retriever"
)

// Engine is the workspace that the tools work on; *workspace.Workspace is one.
// Every method may be called concurrently.
type Engine interface {
	Library
	Index(ctx context.Context, r workspace.IndexRequest, progress func(workspace.Progress)) (*workspace.IndexReport, error)
	Status(ctx context.Context) (*workspace.Status, error)
}

// Library is the part of an Engine that searches, reads and lists documents.
type Library interface {
	Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error)
	Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error)
	ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error)
	Documents(ctx context.Context, r workspace.DocumentsRequest) (*workspace.Documents, error)
}

// Options are the knobs of New. Nil and the zero value mean the defaults.
type Options struct {
	// Version is the server's own version; "" is "devel".
	Version string
	// Logger receives failures that no answer reports; nil discards them.
	Logger *slog.Logger
	// NoRateLimit turns the limits of the specification off.
	NoRateLimit bool
	// DefaultMode is the mode of read_context when none is given; "" is hybrid.
	DefaultMode retriever.Mode
	// Groups are the tools to offer; nil is Core.
	Groups []Group
	// Toolbox is what the tools of Catalog work on; nil leaves them out.
	Toolbox *workspace.Toolbox
	// Tasks is what the tools of Tasks and DAG work on, and those of Docs that do
	// more than read; nil leaves them out.
	Tasks *workspace.Tasks
	// Stages is what the tools of Stages work on; nil leaves them out.
	Stages *workspace.Stages
	// Recorder records what sessions look for and use; nil records nothing. The
	// caller closes it after the last session.
	Recorder *Recorder
	// Watch calls fn after documents have changed, until ctx ends, so that clients
	// hear of it; nil for a workspace that nothing watches.
	Watch func(ctx context.Context, fn func(workspace.WatchEvent)) error
	// Listener hears of calls and of the stages of their work; nil is none.
	Listener observe.Listener
	// Lacked, when not nil, is called after each search that wanted vectors with
	// what the index lacked, even if that is nothing.
	Lacked func([]string)
	// Workspace is the name of the workspace in what Listener hears; "" where
	// there is only one.
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
	// running bounds the calls that run at once, over all sessions: more would not
	// finish sooner, only hold memory.
	running chan struct{}
}

// maxRunning is a small multiple of the cores of a server; further calls wait.
const maxRunning = 16

// tool is one tool: how it is described and what it does.
type tool struct {
	name, title, description string
	groups                   []Group // that offer it, besides All
	readOnly                 bool
	additive                 bool // writes without destroying
	notIdempotent            bool // a repeated call has a further effect
	rate                     rate // zero: unlimited
	waits                    bool // mostly waits, so it does not count as running
	handler
	// bare makes the result of the method of the tool's name from the structured
	// answer; nil leaves it as it is.
	bare func(answer any) any
}

// call is one use of a tool.
type call struct {
	args json.RawMessage
	// id is that of the request, and parent and state are its trace context, where
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
	if s.options.Groups == nil {
		s.options.Groups = []Group{Core}
	}
	s.limits = newLimiter(s.options.Now)
	s.tools = slices.DeleteFunc(allTools(engine, &s.options), func(t tool) bool { return !t.offeredBy(s.options.Groups) })
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

// do runs one call within the limits of a client and reports it to the listener.
func (s *Server) do(ctx context.Context, client string, t tool, c call) (answer any, f *Failure) {
	if l := s.options.Listener; l != nil {
		o := &observe.Call{ID: observe.ID(ctx), Tool: t.name, Workspace: s.options.Workspace, Arguments: c.args, TraceParent: c.parent, TraceState: c.state}
		if o.ID == "" {
			o.ID = observe.IDOf(c.id)
		}
		start := time.Now()
		ctx = l.Begin(ctx, o)
		defer func() { l.End(ctx, o, outcome(ctx, f), time.Since(start)) }()
	}
	if t.rate.Burst > 0 && !s.options.NoRateLimit {
		if f := s.limits.allow(client, t.name, t.rate); f != nil {
			return nil, f
		}
	}
	if !t.waits {
		select {
		case s.running <- struct{}{}:
			defer func() { <-s.running }()
		case <-ctx.Done():
			return nil, FailureOf(ctx.Err())
		}
	}
	answer, err := t.call(ctx, c.args)
	if err == nil {
		return answer, nil
	}
	f = FailureOf(err)
	if f.Code == CodeInternal && f.Data == nil && !errors.Is(err, context.Canceled) {
		s.options.Logger.Error("tool failed", "tool", t.name, "error", err)
	}
	return nil, f
}

// channelHeader names the tasks that the dag tools mean over HTTP when a request
// names none.
const channelHeader = "X-Cairn-Channel"

// sdkServer makes the SDK's server for one transport. client names the client
// whose calls the limits count, session the one whose work is recorded; "" is
// none. stop ends what goes on in the background.
func (s *Server) sdkServer(client func(*mcp.CallToolRequest) string, session func(mcp.Request) string) (_ *mcp.Server, stop func()) {
	watching := s.options.Watch != nil
	o := &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{}, Completions: &mcp.CompletionCapabilities{},
			Resources: &mcp.ResourceCapabilities{ListChanged: watching, Subscribe: watching},
		},
		CompletionHandler: s.complete,
		SetCacheable:      cacheable,
	}
	if watching {
		o.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
		o.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	}
	register := func(*mcp.Server) func() { return func() {} }
	if s.options.Extend != nil {
		register = s.options.Extend(o)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "cairn", Title: "cairn", Version: s.options.Version}, o)
	s.addResources(server)
	s.addPrompts(server)
	for _, t := range s.tools {
		server.AddTool(t.definition(), s.toolHandler(t, client))
	}
	server.AddReceivingMiddleware(s.middleware(session))
	server.AddSendingMiddleware(withoutListChanges)
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

// middleware prepares the context of every request, and adds to the SDK's answers:
// the documents to the list of resources, and the instructions, which describe the
// state of the index at that moment.
func (s *Server) middleware(session func(mcp.Request) string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx = s.requestContext(ctx, session(req))
			if list, ok := req.(*mcp.ListResourcesRequest); ok && method == "resources/list" {
				return s.listResources(ctx, list, next)
			}
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
}

// withoutListChanges drops list_changed notifications to a session that has not
// named its revision. The SDK sends them to it, and a client of bare requests reads
// one line for each request.
func withoutListChanges(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if ss, ok := req.GetSession().(*mcp.ServerSession); ok && ss.InitializeParams() == nil && strings.HasSuffix(method, "/list_changed") {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

// requestContext returns the context of a request: the listener hears of stages,
// and the recorder of what the session does; "" names no session.
func (s *Server) requestContext(ctx context.Context, session string) context.Context {
	ctx = observe.With(ctx, s.options.Listener)
	if s.options.Recorder == nil || session == "" {
		return ctx
	}
	return withRecording(ctx, &recording{s.options.Recorder, session})
}

// toolHandler answers tools/call for one tool.
func (s *Server) toolHandler(t tool, client func(*mcp.CallToolRequest) string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := call{args: req.Params.Arguments}
		if report := notifier(ctx, req); report != nil {
			ctx = withProgress(ctx, report)
		}
		if req.Extra != nil {
			ctx = taskgraph.WithChannel(ctx, req.Extra.Header.Get(channelHeader))
			c.id = req.Extra.Header.Get(observe.IDHeader)
		}
		c.parent, c.state = traceOf(req)
		f := allowed(req, t)
		var answer any
		if f == nil {
			answer, f = s.do(ctx, client(req), t, c)
		}
		if f != nil {
			return toolResult(f, true)
		}
		return toolResult(answer, false)
	}
}

// cacheable sets how long a client may keep an answer: tools, prompts and
// templates change only with the binary, documents at any moment, and the
// description of the server holds the state of the index.
func cacheable(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	c.TTLMs, c.CacheScope = int(time.Hour/time.Millisecond), "private"
	switch req.(type) {
	case *mcp.ListResourcesRequest, *mcp.ReadResourceRequest:
		c.TTLMs = 0
	case *mcp.ServerRequest[*mcp.DiscoverParams]:
		c.TTLMs = int(time.Minute / time.Millisecond)
	}
}

// definition describes the tool in tools/list.
func (t tool) definition() *mcp.Tool {
	no, destroys := false, !t.readOnly && !t.additive
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		InputSchema: schemaJSON(argumentSchema(t.args)), OutputSchema: schemaJSON(answerSchema(t.answers)),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.readOnly, IdempotentHint: !t.notIdempotent, DestructiveHint: &destroys, OpenWorldHint: &no},
	}
}

// toolResult puts a value into both channels: clients forward one or the other.
func toolResult(value any, isError bool) (*mcp.CallToolResult, error) {
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

// notifier returns the function that reports progress to the client; nil when the
// client sent no token.
func notifier(ctx context.Context, req *mcp.CallToolRequest) func(workspace.Progress) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	step := 0.0 // grows with each notification, over all phases
	return func(p workspace.Progress) {
		step++
		// An error means that the client has left.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step, Message: p.String()})
	}
}
