package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
)

const (
	// maxInFlight bounds the weight of the requests in progress in a session; reading
	// pauses at the bound. A request weighs 1, plus 1 for each unit of its length, so the
	// bound is 1024 short requests or 64 MiB.
	maxInFlight = 1024
	unit        = 64 << 10 // bytes
	// drainLimit bounds the wait for outstanding answers after the end of the input. The
	// process must exit within two seconds.
	drainLimit = 1200 * time.Millisecond
	// lastWait bounds the wait for a line that was sent before a shutdown.
	lastWait = 50 * time.Millisecond
)

// conn is a line-delimited JSON-RPC connection between the streams and the SDK. It handles
// the messages that the SDK does not handle or would answer wrongly: lines that are not
// JSON, methods with the name of a tool (direct calls), unknown methods before initialize,
// batches, and IDs that the SDK would change. At the end of the input it waits for
// outstanding answers, which the SDK would cancel.
//
// One goroutine may call Read at a time. Any number may call Write and Close.
type conn struct {
	ctx     context.Context // cancels the direct calls
	server  *Server
	session string // the name of the session for the limits and the recorder

	open    context.Context // canceled by Close
	close   context.CancelFunc
	reading context.Context // canceled by stop, after which the input counts as ended
	stop    context.CancelFunc
	lines   chan line
	queue   []jsonrpc.Message   // messages for the next calls of Read
	calls   sync.WaitGroup      // direct calls
	slots   *semaphore.Weighted // of size maxInFlight

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	pending map[any]*pending // by sdkID
	version string           // negotiated protocol version; "" before initialize
}

// pending is a request without an answer.
type pending struct {
	reply
	method string
	cancel context.CancelFunc // cancels a direct call
	weight int64              // see maxInFlight
}

// reply is the destination of an answer.
type reply struct {
	id    json.RawMessage // as the client wrote it; nil if it is unknown
	batch *batch          // nil outside a batch
	place int             // index in the batch
}

// newConn starts a goroutine that reads lines. It ends with the input, or after Close
// when the blocked read returns.
func newConn(ctx context.Context, in io.Reader, out io.Writer, server *Server, session string) *conn {
	c := &conn{ctx: ctx, server: server, session: session, out: out, lines: make(chan line), slots: semaphore.NewWeighted(maxInFlight), pending: map[any]*pending{}}
	c.open, c.close = context.WithCancel(ctx)
	c.reading, c.stop = context.WithCancel(c.open)
	go readLines(c.open, in, c.lines)
	return c
}

// Connect implements mcp.Transport.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *conn) SessionID() string { return "" }

// Close implements mcp.Connection.
func (c *conn) Close() error {
	c.close()
	return nil
}

// Read implements mcp.Connection: it returns the next message for the SDK.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			msg := c.queue[0]
			c.queue = c.queue[1:]
			return msg, nil
		}
		l := c.next(ctx)
		switch {
		case errors.Is(l.err, errLineTooLong):
			c.refuse(reply{id: l.text}, jsonrpc.CodeInvalidRequest, "%s", l.err)
		case l.err != nil:
			c.drain()
			return nil, l.err
		case len(l.text) > 0 && l.text[0] == '[':
			c.acceptBatch(l.text)
		case len(l.text) > 0:
			c.accept(l.text, reply{})
		}
	}
}

// next waits for a line. After stop it waits up to lastWait, because the pipe may still
// contain a line that was sent earlier.
func (c *conn) next(ctx context.Context) line {
	select {
	case l := <-c.lines:
		return l
	case <-c.reading.Done():
	case <-ctx.Done():
		return line{err: ctx.Err()}
	}
	timer := time.NewTimer(lastWait)
	defer timer.Stop()
	select {
	case l := <-c.lines:
		return l
	case <-timer.C:
	case <-c.open.Done():
	}
	return line{err: io.EOF}
}

// accept handles one message: it answers the message, starts a direct call or queues the
// message for the SDK. to is the destination of the answer, without the ID.
func (c *conn) accept(text []byte, to reply) {
	var m map[string]json.RawMessage // the names of struct fields would match in any case
	if err := json.Unmarshal(text, &m); err != nil {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			c.refuse(to, jsonrpc.CodeParseError, "Parse error")
			return
		}
	}
	var version, method string
	if isID(m["id"]) {
		to.id = m["id"]
	}
	hasID := m["id"] != nil && string(m["id"]) != "null"
	hasMethod := json.Unmarshal(m["method"], &method) == nil
	switch {
	case json.Unmarshal(m["jsonrpc"], &version) != nil, version != "2.0", hasID && to.id == nil, !hasMethod && (m["method"] != nil || !hasID):
		c.refuse(to, jsonrpc.CodeInvalidRequest, "Invalid Request: not a JSON-RPC 2.0 message")
	case !hasMethod:
		// An answer to a question of a server behind cairn.
		if msg, err := jsonrpc.DecodeMessage(text); err == nil {
			c.queue = append(c.queue, msg)
		}
	case hasID:
		c.acceptRequest(method, m["params"], to, 1+int64(len(text)/unit))
	case method == "notifications/cancelled":
		c.queue = append(c.queue, &jsonrpc.Request{Method: method, Params: c.cancelDirect(m["params"])})
	default:
		// Ignore a notification with the name of a tool: it would have no answer.
		if _, ok := c.server.find(method); !ok {
			c.queue = append(c.queue, &jsonrpc.Request{Method: method, Params: m["params"]})
		}
	}
}

// acceptRequest registers a request, and starts a direct call or queues the request for
// the SDK.
func (c *conn) acceptRequest(method string, params json.RawMessage, to reply, weight int64) {
	t, isDirect := c.server.find(method)
	if !isDirect && !sdkMethods[method] {
		c.refuse(to, jsonrpc.CodeMethodNotFound, "Method not found: %s", cmp.Or(c.server.turnOn(method), strconv.Quote(method)))
		return
	}
	id, err := jsonrpc.MakeID(sdkID(to.id))
	if method == "subscriptions/listen" {
		// Its notifications contain the ID, so the SDK needs the original. Its answer comes
		// when the stream ends, so drain must not wait for it.
		var v any
		if err = json.Unmarshal(to.id, &v); err == nil {
			id, err = jsonrpc.MakeID(v)
		}
		weight = 0
	}
	ctx, cancel := context.WithCancel(c.ctx)
	p := &pending{reply: to, method: method, cancel: cancel, weight: weight}
	if err != nil || !c.register(id, p) {
		cancel()
		to.id = nil
		c.refuse(to, jsonrpc.CodeInvalidRequest, "Invalid Request: id %s is in use", p.id)
		return
	}
	respond := directResponse
	if !isDirect {
		if t, params, isDirect = c.simpleCall(method, params); !isDirect {
			c.queue = append(c.queue, &jsonrpc.Request{ID: id, Method: method, Params: params})
			return
		}
		ctx, respond = withOrigin(ctx, origin{text: true}), toolResponse
	}
	c.calls.Go(func() {
		t, params, f := c.server.unwrap(t, params)
		var answer any
		if f == nil {
			answer, f = c.server.do(c.server.requestContext(ctx, c.session), c.session, t, call{args: params})
		}
		c.Write(ctx, respond(id, t, answer, f))
	})
}

// simpleCall returns the tool and the arguments of a call that needs nothing of the SDK, which
// would encode the answer three times. The tool only reads, the call has no metadata, and
// results in the session's revision have no type. Otherwise simpleCall returns params.
func (c *conn) simpleCall(method string, params json.RawMessage) (tool, json.RawMessage, bool) {
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	var m map[string]json.RawMessage
	var name string
	if method != "tools/call" || version == "" || version >= firstStateless || json.Unmarshal(params, &m) != nil || len(m) != 2 || json.Unmarshal(m["name"], &name) != nil {
		return tool{}, params, false
	}
	args := m["arguments"]
	if t, ok := c.server.find(name); ok && t.readOnly && !t.openWorld && !t.waits && len(args) > 0 && args[0] == '{' {
		return t, args, true
	}
	return tool{}, params, false
}

// toolResponse returns the response to a simple call, as the SDK encodes it.
func toolResponse(id jsonrpc.ID, _ tool, answer any, f *Failure) *jsonrpc.Response {
	if f != nil {
		answer = f
	}
	r, err := toolResult(answer, f != nil)
	if err != nil {
		return &jsonrpc.Response{ID: id, Error: err}
	}
	raw, ok := r.StructuredContent.(json.RawMessage)
	if !ok || f != nil {
		result, err := json.Marshal(r)
		return &jsonrpc.Response{ID: id, Result: result, Error: err}
	}
	text, _ := json.Marshal(string(raw)) // never fails
	result := bytes.NewBuffer(make([]byte, 0, len(text)+len(raw)+len(raw)/8+64))
	fmt.Fprintf(result, `{"content":[{"type":"text","text":%s}],"structuredContent":`, text)
	json.HTMLEscape(result, raw)
	return &jsonrpc.Response{ID: id, Result: append(result.Bytes(), '}')}
}

// directResponse returns the response to a direct call of t.
func directResponse(id jsonrpc.ID, t tool, answer any, f *Failure) *jsonrpc.Response {
	if f != nil {
		return &jsonrpc.Response{ID: id, Error: f.wire()}
	}
	if t.bare != nil {
		answer = t.bare(answer)
	}
	result, err := marshal(answer)
	return &jsonrpc.Response{ID: id, Result: result, Error: err}
}

// sdkID returns the ID of a request in the SDK: the text of the client's ID. The SDK
// converts a number to float64 and then to int64, so that 1.5 and 1, and nanosecond
// timestamps that differ by less than 256, would be the same ID.
func sdkID(id json.RawMessage) string { return "\x00" + string(id) }

// isID reports whether a JSON value is a valid ID: a string, or a number in the range of
// float64.
func isID(value json.RawMessage) bool {
	if len(value) > 0 && value[0] == '"' {
		return true
	}
	_, err := strconv.ParseFloat(string(value), 64)
	return err == nil
}

// sdkMethods are the methods of the requests that the SDK handles. Before initialize, its
// answer to any other method is an error without a code.
var sdkMethods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "subscriptions/listen": true,
	"tools/list": true, "tools/call": true, "prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true, "resources/subscribe": true, "resources/unsubscribe": true, "skills/list": true, "skills/get": true,
	"tasks/get": true, "tasks/update": true, "tasks/cancel": true,
	"completion/complete": true, "logging/setLevel": true,
}

// register waits until the request fits into maxInFlight and adds it to pending. It
// returns false if the ID is in use.
func (c *conn) register(id jsonrpc.ID, p *pending) bool {
	if c.slots.Acquire(c.reading, p.weight) != nil && !c.slots.TryAcquire(p.weight) {
		p.weight = 0 // after stop, accept the last requests without waiting
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[id.Raw()] != nil {
		c.slots.Release(p.weight)
		return false
	}
	c.pending[id.Raw()] = p
	p.batch.expect()
	return true
}

// cancelDirect cancels the direct call that a cancellation names, and returns the
// parameters of the cancellation with the ID that the SDK uses.
func (c *conn) cancelDirect(params json.RawMessage) json.RawMessage {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return params
	}
	id := sdkID(p.RequestID)
	c.mu.Lock()
	request := c.pending[id]
	c.mu.Unlock()
	if request == nil {
		return params
	}
	request.cancel()
	rewritten, _ := marshal(map[string]string{"requestId": id}) // never fails
	return rewritten
}

// drain waits for the answers to all requests read so far, for at most drainLimit.
func (c *conn) drain() {
	ctx, cancel := context.WithTimeout(c.open, drainLimit)
	defer cancel()
	_ = c.slots.Acquire(ctx, maxInFlight) // the session ends also after a timeout
}

// Write implements mcp.Connection.
func (c *conn) Write(_ context.Context, msg jsonrpc.Message) error {
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		text, err := jsonrpc.EncodeMessage(msg)
		if err != nil {
			return err
		}
		return c.writeLine(text)
	}
	// A client may reuse the ID as soon as it has the answer.
	c.mu.Lock()
	p := c.pending[resp.ID.Raw()]
	delete(c.pending, resp.ID.Raw())
	if p != nil && p.method == "initialize" {
		var r mcp.InitializeResult
		_ = json.Unmarshal(resp.Result, &r) // after an error there is no version
		c.version = r.ProtocolVersion
	}
	c.mu.Unlock()
	if p == nil {
		return nil // unreachable: the SDK answers each request once
	}
	defer c.slots.Release(p.weight)
	defer p.cancel()
	return c.answer(p.reply, resp.Result, withCode(resp.Error))
}

// withCode adds a code to an error of the SDK without one. An error about the order of
// requests is an invalid request, any other error an internal one.
func withCode(err error) *jsonrpc.Error {
	if err == nil {
		return nil
	}
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ok && wire.Code != 0:
		return &jsonrpc.Error{Code: wire.Code, Message: err.Error(), Data: wire.Data}
	case strings.Contains(err.Error(), "initializ"):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

func (c *conn) refuse(to reply, code int64, format string, args ...any) {
	to.batch.expect()
	_ = c.answer(to, nil, &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)})
}

// answer writes a result, which is JSON already, or an error.
func (c *conn) answer(to reply, result json.RawMessage, failed *jsonrpc.Error) error {
	key := "result"
	if failed != nil {
		text, err := marshal(failed)
		if err != nil {
			return err
		}
		key, result = "error", text
	}
	const frame = `{"jsonrpc":"2.0","id":%s,"%s":%s}`
	text := fmt.Appendf(make([]byte, 0, len(frame)+len(to.id)+len(result)), frame, cmp.Or(string(to.id), "null"), key, result)
	if to.batch != nil {
		return c.fill(to.batch, to.place, text)
	}
	return c.writeLine(text)
}

// writeLine writes a line with one call of Write. After an error it stops reading: a
// client that does not read answers needs none.
func (c *conn) writeLine(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	if err != nil {
		c.stop()
	}
	return err
}
