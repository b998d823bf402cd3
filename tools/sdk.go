package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/job"
	"cairn/internal/base/observe"
	"cairn/internal/task/taskgraph"
	"cairn/internal/toolbox/usage"
	"cairn/tools/mcptask"
)

// channelHeader is the HTTP header with the default channel of the dag tools.
const channelHeader = "X-Cairn-Channel"

// sdkServer returns the SDK's server for one transport. session returns the name of the session
// for the recorder and the limits, "" for none. stop ends the background work.
func (s *Server) sdkServer(session func(mcp.Request) string) (_ *mcp.Server, stop func()) {
	watching := s.options.Watch != nil
	o := &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: watching && s.auto()}, Prompts: &mcp.PromptCapabilities{}, Completions: &mcp.CompletionCapabilities{},
			Resources: &mcp.ResourceCapabilities{ListChanged: watching, Subscribe: watching},
		},
		CompletionHandler: s.complete,
		SetCacheable:      cacheable,
	}
	o.Capabilities.AddExtension(skillsExtension, nil)
	if s.options.Stages != nil || s.options.Proxy != nil {
		o.Capabilities.AddExtension(mcptask.Extension, nil)
	}
	s.offerLogging(o.Capabilities)
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
	addSkills(server)
	if err := mcptask.Register(server); err != nil {
		panic(err) // unreachable: the protocol itself has no such methods
	}
	list := &listing{server: s}
	for _, t := range s.tools {
		server.AddTool(unlisted(t), s.toolHandler(t, session))
	}
	server.AddReceivingMiddleware(s.middleware(session, list))
	server.AddSendingMiddleware(withoutListChanges)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	// The SDK notifies clients whenever a tool is added, even if it exists.
	notify := func() { server.AddTool(unlisted(s.tools[0]), s.toolHandler(s.tools[0], session)) }
	wg.Go(func() { s.follow(ctx, server, list, notify) })
	end := register(server)
	return server, func() {
		cancel()
		end()
		wg.Wait()
	}
}

// unlisted returns the minimal definition with which the SDK routes calls of a tool.
// Clients see the definitions of listing.
func unlisted(t tool) *mcp.Tool {
	return &mcp.Tool{Name: t.name, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// middleware prepares the context of every request. In the SDK's answers it replaces the tools
// of s by those to list, adds the documents to the resources, and sets the instructions, which
// describe the current state of the index. It answers the requests of the Tasks extension.
func (s *Server) middleware(session func(mcp.Request) string, list *listing) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if f := s.panicked(method, recover()); f != nil {
					result, err = nil, f.wire()
				}
			}()
			ctx = s.requestContext(ctx, session(req))
			if slices.Contains(mcptask.Methods, method) {
				return s.answerTask(ctx, method, req)
			}
			switch r := req.(type) {
			case *mcp.ListResourcesRequest:
				return s.listResources(ctx, r, next)
			case *mcp.CallToolRequest:
				if _, ok := s.find(r.Params.Name); !ok {
					if how := s.turnOn(r.Params.Name); how != "" {
						return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool: " + how}
					}
				}
			}
			result, err = next(ctx, method, req)
			if r, ok := req.(*mcp.ReadResourceRequest); ok && err != nil {
				// The SDK quotes the URI as Go does, and ends a session whose answer is not JSON.
				if e, ok := errors.AsType[*jsonrpc.Error](err); ok && len(e.Data) > 0 && !json.Valid(e.Data) {
					e.Data, _ = marshal(map[string]string{"uri": r.Params.URI})
				}
			}
			if err != nil {
				return nil, err
			}
			switch r := result.(type) {
			case *mcp.ListToolsResult:
				own := func(t *mcp.Tool) bool { _, ok := s.find(t.Name); return ok }
				r.Tools = append(list.tools(ctx), slices.DeleteFunc(r.Tools, own)...)
			case *mcp.InitializeResult:
				r.Instructions = s.instructions(ctx)
			case *mcp.DiscoverResult:
				r.Instructions = s.instructions(ctx)
			}
			return mcptask.Wire(result), nil
		}
	}
}

// withoutListChanges drops list_changed notifications to a session before initialize. The
// SDK sends them, but a client that makes only direct calls reads one line per request.
func withoutListChanges(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if ss, ok := req.GetSession().(*mcp.ServerSession); ok && ss.InitializeParams() == nil && strings.HasSuffix(method, "/list_changed") {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

// requestContext returns the context of a request, which contains the listener and the
// recording of the session, unless the session is "".
func (s *Server) requestContext(ctx context.Context, session string) context.Context {
	ctx = observe.With(ctx, s.options.Listener)
	if s.options.Recorder == nil || session == "" {
		return ctx
	}
	r := originOf(ctx)
	r.record = func(add func(*usage.Session)) { s.options.Recorder.record(session, add) }
	return withOrigin(ctx, r)
}

// toolHandler returns the handler of tools/call for one tool.
func (s *Server) toolHandler(t tool, session func(mcp.Request) string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		client := cmp.Or(session(req), reportedName(req))
		r := originOf(ctx)
		r.text, r.tasks, r.progress = true, mcptask.Declared(req), notifier(ctx, req)
		r.peer = peerOf(ctx, client, req)
		ctx = withOrigin(ctx, r)
		if req.Extra != nil {
			ctx = taskgraph.WithChannel(ctx, req.Extra.Header.Get(channelHeader))
		}
		t, args, f := s.unwrap(t, req.Params.Arguments)
		c := newCall(req, args)
		if f == nil {
			f = allowed(req.Extra, t, args)
		}
		var answer any
		if f == nil {
			answer, f = s.do(ctx, client, t, c)
		}
		if f != nil && f.input != nil {
			return &mcp.CallToolResult{InputRequests: f.input, RequestState: f.asked}, nil
		}
		if f != nil {
			return toolResult(f, true)
		}
		if created, ok := answer.(*stageAnswer); ok && t.name == stageCreateName && continues(req, created) {
			return mcptask.Created(questionTask(req, created)), nil
		}
		if ran, ok := answer.(*Ran); ok && ran.task != nil {
			return mcptask.Created(ran.task.state()), nil
		}
		return toolResult(answer, false)
	}
}

// cacheable sets how long a client may cache an answer. Prompts and templates change only
// with the binary, documents at any time, the list of tools with the contents of the
// folder, and the description of the server with the state of the index.
func cacheable(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	c.TTLMs, c.CacheScope = int(time.Hour/time.Millisecond), "private"
	switch req.(type) {
	case *mcp.ListResourcesRequest, *mcp.ReadResourceRequest:
		c.TTLMs = 0
	case *mcp.ServerRequest[*mcp.DiscoverParams], *mcp.ListToolsRequest:
		c.TTLMs = int(time.Minute / time.Millisecond)
	}
}

// definition returns the entry of the tool in tools/list.
func (t tool) definition() *mcp.Tool {
	a := &mcp.ToolAnnotations{ReadOnlyHint: t.readOnly, IdempotentHint: !t.notIdempotent, OpenWorldHint: &t.openWorld}
	if !t.readOnly {
		a.DestructiveHint = new(!t.additive)
	}
	definition := &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		InputSchema: schemaJSON(argumentSchema(t.args)), Annotations: a,
	}
	if !t.noSchema {
		definition.OutputSchema = schemaJSON(listedSchema(t.answers))
	}
	return definition
}

// toolResult returns a result with a value both as text and as structured content,
// because some clients pass only one of them to the model. An answer that is text has no
// structured content.
func toolResult(value any, isError bool) (*mcp.CallToolResult, error) {
	if answer, ok := value.(text); ok {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer)}}}, nil
	}
	if called, ok := value.(*Called); ok {
		return &mcp.CallToolResult{Content: called.Content, IsError: called.IsError}, nil
	}
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

// notifier returns a function that reports progress to the client, nil if the client sent
// no progress token.
func notifier(ctx context.Context, req *mcp.CallToolRequest) func(job.Progress) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	step := 0.0 // must increase with each notification, over all phases
	return func(p job.Progress) {
		step++
		// An error means that the client has left.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step, Message: p.String()})
	}
}
