package tools

import (
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
	// maxInFlight bounds the requests of a session that are being worked on;
	// reading pauses at the bound. Each counts once, and once more for each unit
	// of its length, so that 1024 short ones have room, or 64 MiB.
	maxInFlight = 1024
	unit        = 64 << 10 // bytes
	// drainLimit is how long the connection waits for outstanding answers once the
	// input has ended. The process has to be gone within two seconds.
	drainLimit = 1200 * time.Millisecond
	// lastWait is how long a line that was sent before a shutdown may take to arrive.
	lastWait = 50 * time.Millisecond
)

// conn is a line-delimited JSON-RPC connection between the streams and the SDK.
// It answers messages that the SDK does not: a line that is not JSON (the SDK ends the
// session), a method with the name of a tool, unknown methods before initialize,
// batches, and IDs that the SDK would change. At the end of the input it waits for
// outstanding answers, which the SDK would cancel.
//
// Read is called by one goroutine; Write and Close by any number.
type conn struct {
	ctx     context.Context // ends the direct calls
	server  *Server
	session string // whose direct calls the limits count and the recorder records

	open    context.Context // ends with Close
	close   context.CancelFunc
	reading context.Context // ends with shutdown: the input counts as ended
	stop    context.CancelFunc
	lines   chan line
	queue   []jsonrpc.Message   // rest of a batch, for Read only
	calls   sync.WaitGroup      // direct calls
	slots   *semaphore.Weighted // of maxInFlight

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	pending map[any]*pending // by sdkID
	version string           // negotiated protocol version; "" before initialize
}

// pending is a request that the client waits for.
type pending struct {
	reply
	method string
	cancel context.CancelFunc // ends a direct call
	weight int64              // of maxInFlight
}

// reply is the destination of an answer: the request with that ID, as the client wrote
// it, or nil if it is unknown. The request is alone or in a batch.
type reply struct {
	id    json.RawMessage
	batch *batch // nil outside a batch
	place int    // in the batch
}

// newConn starts reading lines. The goroutine that reads ends with the input
// or after Close, as soon as the blocked read returns.
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

// next waits for a line. After a shutdown one that was sent before may still be
// in the pipe.
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

// accept handles one message: it answers it, starts a direct call or queues it
// for the SDK. to is the destination of the answer, without the ID.
func (c *conn) accept(text []byte, to reply) {
	var m map[string]json.RawMessage // a struct's fields would match names in any case
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
		// An answer; this server asks clients nothing.
	case hasID:
		c.acceptRequest(method, m["params"], to, 1+int64(len(text)/unit))
	case method == "notifications/cancelled":
		c.queue = append(c.queue, &jsonrpc.Request{Method: method, Params: c.cancelDirect(m["params"])})
	default:
		// A tool's method does nothing but answer, and a notification has no answer.
		if _, ok := c.server.find(method); !ok {
			c.queue = append(c.queue, &jsonrpc.Request{Method: method, Params: m["params"]})
		}
	}
}

// acceptRequest registers a request and starts it, or queues it for the SDK.
func (c *conn) acceptRequest(method string, params json.RawMessage, to reply, weight int64) {
	t, isDirect := c.server.find(method)
	if !isDirect && !sdkMethods[method] {
		if how := c.server.turnOn(method); how != "" {
			c.refuse(to, jsonrpc.CodeMethodNotFound, "Method not found: %s", how)
		} else {
			c.refuse(to, jsonrpc.CodeMethodNotFound, "Method not found: %q", method)
		}
		return
	}
	id, err := jsonrpc.MakeID(sdkID(to.id))
	if method == "subscriptions/listen" {
		// Its notifications carry the id, and it is answered when it ends: drain
		// does not wait for it.
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
	if !isDirect {
		c.queue = append(c.queue, &jsonrpc.Request{ID: id, Method: method, Params: params})
		return
	}
	c.calls.Go(func() {
		t, params, f := c.server.unwrap(t, params)
		var answer any
		if f == nil {
			answer, f = c.server.do(c.server.requestContext(ctx, c.session), c.session, t, call{args: params})
		}
		c.Write(ctx, directResponse(id, t, answer, f))
	})
}

// directResponse is the response to a direct call of t.
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

// sdkID returns the id of a request in the SDK: the text of the client's id. The
// SDK reads every number as a float and makes an int64 of it, so that 1.5 and 1,
// and all nanoseconds of the clock within 256 of each other, would be one id.
func sdkID(id json.RawMessage) string { return "\x00" + string(id) }

// isID reports whether a JSON value is an id that a message can have: a string,
// or a number that a float64 can hold.
func isID(value json.RawMessage) bool {
	if len(value) > 0 && value[0] == '"' {
		return true
	}
	_, err := strconv.ParseFloat(string(value), 64)
	return err == nil
}

// sdkMethods are the requests that the SDK handles. It answers any other, while the
// session is not initialized, with an error that has no code.
var sdkMethods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "subscriptions/listen": true,
	"tools/list": true, "tools/call": true, "prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true, "resources/subscribe": true, "resources/unsubscribe": true, "skills/list": true, "skills/get": true,
	"completion/complete": true, "logging/setLevel": true,
}

// register makes a request pending when there is room for it. It returns false
// when the id is in use.
func (c *conn) register(id jsonrpc.ID, p *pending) bool {
	if c.slots.Acquire(c.reading, p.weight) != nil && !c.slots.TryAcquire(p.weight) {
		p.weight = 0 // the last ones go beyond the bound
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

// cancelDirect ends the direct call that a cancellation names, and returns the
// parameters with which the SDK does the same for its own.
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
	rewritten, err := marshal(map[string]string{"requestId": id})
	if err != nil {
		return params // unreachable: a map of strings
	}
	return rewritten
}

// drain waits until every request read so far is answered, at most drainLimit.
func (c *conn) drain() {
	ctx, cancel := context.WithTimeout(c.open, drainLimit)
	defer cancel()
	_ = c.slots.Acquire(ctx, maxInFlight) // only the waiting counts
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
	// A client may use the id again as soon as it has the answer.
	c.mu.Lock()
	p := c.pending[resp.ID.Raw()]
	delete(c.pending, resp.ID.Raw())
	c.mu.Unlock()
	if p == nil {
		return nil // unreachable: the SDK answers what it was given, once
	}
	defer c.slots.Release(p.weight)
	defer p.cancel()
	if p.method == "initialize" {
		c.setVersion(resp.Result)
	}
	return c.answer(p.reply, resp.Result, withCode(resp.Error))
}

// setVersion keeps the protocol version that initialize agreed on.
func (c *conn) setVersion(result json.RawMessage) {
	var r mcp.InitializeResult
	if json.Unmarshal(result, &r) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = r.ProtocolVersion
}

// withCode gives a code to the errors the SDK sends without one: those about
// the order of requests are the client's fault, all others ours.
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
	key := `,"result":`
	if failed != nil {
		text, err := marshal(failed)
		if err != nil {
			return err
		}
		key, result = `,"error":`, text
	}
	if to.id == nil {
		to.id = json.RawMessage("null")
	}
	text := make([]byte, 0, len(to.id)+len(result)+len(`{"jsonrpc":"2.0","id":,"result":}`)+len("\n"))
	text = append(append(append(append(append(text, `{"jsonrpc":"2.0","id":`...), to.id...), key...), result...), '}')
	if to.batch != nil {
		return c.fill(to.batch, to.place, text)
	}
	return c.writeLine(text)
}

// writeLine writes one line in one piece, so that no other gets in between. A
// client that has stopped reading has no further requests either.
func (c *conn) writeLine(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	if err != nil {
		c.stop()
	}
	return err
}
