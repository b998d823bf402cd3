package tools

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/job"
	"cairn/internal/observe"
	"cairn/internal/task/taskgraph"
)

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
			c.token, c.remote = req.Extra.Header.Get(observe.TokenHeader), req.Extra.Header.Get(observe.RemoteHeader)
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
func notifier(ctx context.Context, req *mcp.CallToolRequest) func(job.Progress) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	step := 0.0 // grows with each notification, over all phases
	return func(p job.Progress) {
		step++
		// An error means that the client has left.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step, Message: p.String()})
	}
}
