package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
)

const (
	// maxLine bounds one message in bytes; requests here are short.
	maxLine = 4 << 20
	// maxInFlight bounds the requests of a session that are being worked on;
	// reading pauses at the bound. One counts once for itself and once more for
	// each unit of its length, so that 1024 short ones have room, or 64 MiB.
	maxInFlight = 1024
	unit        = 64 << 10 // bytes
	// drainLimit is how long the answers still owed are waited for once the
	// input has ended. The process has to be gone within two seconds.
	drainLimit = 1200 * time.Millisecond
	// lastWait is how long a line that was sent before a shutdown may take to arrive.
	lastWait = 50 * time.Millisecond
)

// directFunc answers a request whose method is a tool's name. handled is false
// for any other method. ctx ends when the client cancels the request.
type directFunc func(ctx context.Context, method string, params json.RawMessage) (result any, err error)

// conn is a line-delimited JSON-RPC connection that stands between the stream
// and the SDK. It answers by itself what the SDK would not: a line that is not
// JSON (the SDK ends the session), a method that is a tool's name, unknown
// methods before initialize; and at the end of the input it waits for the
// answers still owed, which the SDK would cancel. All else goes through.
//
// Read is called by one goroutine; Write and Close by any number.
type conn struct {
	ctx      context.Context // ends the direct calls
	isDirect func(method string) bool
	direct   directFunc

	lines  chan line
	stop   chan struct{} // closed by shutdown: treat the input as ended
	closed chan struct{} // closed by Close
	once   struct{ stop, close sync.Once }
	queue  []jsonrpc.Message // rest of a batch, for Read only
	calls  sync.WaitGroup    // direct calls

	writeMu sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	owed    map[any]*debt // by request id, until its answer is at hand
	open    int           // debts whose answers are not written yet
	idle    chan struct{} // closed when open is 0 and someone drains
	slots   *semaphore.Weighted
	waiting context.Context // for slots; ends with shutdown
	hurry   context.CancelFunc
	version string // negotiated protocol version; "" before initialize
}

type line struct {
	text []byte
	err  error
}

// debt is an answer the client waits for.
type debt struct {
	method string
	cancel context.CancelFunc // for direct calls
	batch  *batch             // nil outside a batch
	place  int                // in the batch
	weight int64              // of maxInFlight
}

// newConn starts reading lines. The goroutine that reads ends with the input
// or after Close, whichever lets the blocked read return.
func newConn(ctx context.Context, in io.Reader, out io.Writer, isDirect func(string) bool, direct directFunc) *conn {
	c := &conn{
		ctx: ctx, isDirect: isDirect, direct: direct, out: out,
		lines: make(chan line), stop: make(chan struct{}), closed: make(chan struct{}),
		owed: map[any]*debt{}, slots: semaphore.NewWeighted(maxInFlight),
	}
	c.waiting, c.hurry = context.WithCancel(ctx)
	go c.readLines(in)
	return c
}

// Connect implements mcp.Transport.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *conn) SessionID() string { return "" }

// Close implements mcp.Connection.
func (c *conn) Close() error {
	c.once.close.Do(func() {
		close(c.closed)
		c.hurry()
	})
	return nil
}

// shutdown ends the input: what has been read is still answered.
func (c *conn) shutdown() {
	c.once.stop.Do(func() {
		close(c.stop)
		c.hurry()
	})
}

// last is the next line after shutdown: what was sent before it may still be on
// its way through the pipe.
func (c *conn) last() line {
	timer := time.NewTimer(lastWait)
	defer timer.Stop()
	select {
	case l := <-c.lines:
		return l
	case <-timer.C:
		return line{err: io.EOF}
	}
}

func (c *conn) readLines(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := readLine(r)
		select {
		case c.lines <- line{text, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return
		}
	}
}

var errLineTooLong = fmt.Errorf("a message may hold at most %d bytes", maxLine)

// readLine returns the next line without its end. A last line without a
// newline counts; of a line beyond maxLine only the id is kept, if there is one.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case !long && len(text)+len(part) <= maxLine:
			text = append(text, part...)
		case !long:
			long = true
			text = append(text[:min(len(text), idWithin):idWithin], part[max(0, len(part)-idWithin):]...)
		default:
			text = append(text, part[max(0, len(part)-idWithin):]...)
			text = append(text[:idWithin], text[max(idWithin, len(text)-idWithin):]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long:
			return idNear(text[:idWithin], text[idWithin:]), errLineTooLong
		case err == io.EOF && len(bytes.TrimSpace(text)) > 0:
			return text, nil // the next call reports the end
		case err != nil:
			return nil, err
		}
		return text, nil
	}
}

// Read implements mcp.Connection: it returns the next message that is the
// SDK's business.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			msg := c.queue[0]
			c.queue = c.queue[1:]
			return msg, nil
		}
		var l line
		select {
		case l = <-c.lines:
		case <-c.stop:
			l = c.last()
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case errors.Is(l.err, errLineTooLong):
			c.fail(json.RawMessage(l.text), jsonrpc.CodeInvalidRequest, l.err.Error())
		case l.err != nil:
			c.drain()
			return nil, l.err
		default:
			c.queue = c.accept(bytes.TrimSpace(l.text))
		}
	}
}

// accept takes one line apart and returns the messages for the SDK.
func (c *conn) accept(text []byte) []jsonrpc.Message {
	switch {
	case len(text) == 0:
		return nil
	case !json.Valid(text):
		c.fail(nil, jsonrpc.CodeParseError, "Parse error")
		return nil
	case text[0] == '[':
		return c.acceptBatch(text)
	}
	if msg := c.message(text, nil, 0); msg != nil {
		return []jsonrpc.Message{msg}
	}
	return nil
}

// message decodes one message and answers it when that is this connection's
// business; else it is returned for the SDK. b is the batch it came in, or nil.
func (c *conn) message(text []byte, b *batch, place int) jsonrpc.Message {
	msg, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		c.reply(b, place, idOf(text), &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: not a JSON-RPC 2.0 message"})
		return nil
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return msg
	}
	if !req.IsCall() {
		if req.Method == "notifications/cancelled" {
			req.Params = c.cancelDirect(req.Params)
		}
		if c.isDirect(req.Method) {
			return nil // a notification wants no answer, and these calls are nothing else
		}
		return msg
	}
	req.ID = exactID(req.ID, idOf(text))
	if req.Method == "subscriptions/listen" && b == nil {
		return msg // answered when it ends: nothing to wait for
	}
	direct := c.isDirect(req.Method)
	if !direct && !sdkMethods[req.Method] {
		c.reply(b, place, written(req.ID), &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("Method not found: %q", req.Method)})
		return nil
	}
	ctx, cancel := context.WithCancel(c.ctx)
	if !c.owe(req.ID.Raw(), &debt{method: req.Method, cancel: cancel, batch: b, place: place, weight: 1 + int64(len(text)/unit)}) {
		cancel()
		c.reply(b, place, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("Invalid Request: id %s is in use", idOf(text))})
		return nil
	}
	if !direct {
		return msg
	}
	c.calls.Go(func() {
		defer cancel()
		resp := &jsonrpc.Response{ID: req.ID}
		result, err := c.direct(ctx, req.Method, req.Params)
		if err == nil {
			resp.Result, err = marshal(result)
		}
		resp.Error = err
		c.Write(ctx, resp)
	})
	return nil
}

// sdkMethods are the requests the SDK knows. It answers any other, while the
// session is not initialized, with an error that has no code.
var sdkMethods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "subscriptions/listen": true,
	"tools/list": true, "tools/call": true, "prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true, "resources/subscribe": true, "resources/unsubscribe": true,
	"completion/complete": true, "logging/setLevel": true,
}

// Write implements mcp.Connection.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		if req, ok := msg.(*jsonrpc.Request); ok && c.unasked(req) {
			return nil
		}
		return c.writeMessage(msg)
	}
	resp.Error = withCode(resp.Error)
	// A client may use the id again as soon as it has the answer.
	c.mu.Lock()
	d := c.owed[resp.ID.Raw()]
	delete(c.owed, resp.ID.Raw())
	c.mu.Unlock()
	if d == nil {
		return c.writeMessage(resp)
	}
	defer c.settle(d)
	if d.method == "initialize" {
		c.setVersion(resp.Result)
	}
	if d.batch == nil {
		return c.writeMessage(resp)
	}
	text, err := encode(resp)
	if err != nil {
		return err
	}
	return c.fill(d.batch, d.place, text)
}

// unasked tells whether a message is a note of changes that nobody wants to
// hear: the SDK sends them to whoever has not said which revision it speaks, and
// a client of bare requests reads one line for each. What goes to a subscription
// says so in its _meta.
func (c *conn) unasked(req *jsonrpc.Request) bool {
	if !strings.HasSuffix(req.Method, "/list_changed") {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version == "" && !bytes.Contains(req.Params, []byte(`"_meta"`))
}

// withCode gives a code to the errors the SDK sends without one: those about
// the order of requests are the client's fault, all others ours.
func withCode(err error) error {
	if err == nil {
		return nil
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code != 0 {
		return err
	}
	code := int64(jsonrpc.CodeInternalError)
	if strings.Contains(err.Error(), "initializ") {
		code = jsonrpc.CodeInvalidRequest
	}
	return &jsonrpc.Error{Code: code, Message: err.Error()}
}

func (c *conn) writeMessage(msg jsonrpc.Message) error {
	text, err := encode(msg)
	if err != nil {
		return err
	}
	return c.writeLine(text)
}

// encode is jsonrpc.EncodeMessage, but for results: they are JSON already, and
// looking at each of their bytes once more costs a quarter of a large answer.
func encode(msg jsonrpc.Message) ([]byte, error) {
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		return jsonrpc.EncodeMessage(msg)
	}
	id, err := marshal(written(resp.ID))
	if err != nil {
		return nil, err
	}
	if resp.Error != nil || len(resp.Result) == 0 {
		text, err := jsonrpc.EncodeMessage(msg)
		if own, _ := json.Marshal(resp.ID.Raw()); !bytes.Equal(own, id) {
			text = bytes.Replace(text, own, id, 1)
		}
		return text, err
	}
	text := make([]byte, 0, len(id)+len(resp.Result)+len(`{"jsonrpc":"2.0","id":,"result":}`)+len("\n"))
	text = append(text, `{"jsonrpc":"2.0","id":`...)
	text = append(text, id...)
	text = append(text, `,"result":`...)
	text = append(text, resp.Result...)
	return append(text, '}'), nil
}

// writeLine writes one line in one piece: nothing else may stand in between. A
// client that does not read any more has no further requests either.
func (c *conn) writeLine(text []byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	if err != nil {
		c.shutdown()
	}
	return err
}

// reply answers a message that never was a debt. id is nil where it is unknown.
func (c *conn) reply(b *batch, place int, id any, e *jsonrpc.Error) {
	text, err := marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", id, e})
	if err != nil {
		return // unreachable: the fields are plain
	}
	if b != nil {
		c.fill(b, place, text)
		return
	}
	c.writeLine(text)
}

func (c *conn) fail(id any, code int64, message string) {
	c.reply(nil, 0, id, &jsonrpc.Error{Code: code, Message: message})
}

// idOf finds the id of something that is JSON, as it is written there; nil
// where there is none that a message can have.
func idOf(text []byte) json.RawMessage {
	var m map[string]json.RawMessage // a struct's field would take "ID", too
	if json.Unmarshal(text, &m) != nil || !isID(m["id"]) {
		return nil
	}
	return m["id"]
}

// owe records that a request has to be answered, when there is room for it;
// false when its id is in use.
func (c *conn) owe(id any, d *debt) bool {
	if c.slots.Acquire(c.waiting, d.weight) != nil {
		d.weight = 0 // the last ones go beyond the bound
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed[id] != nil {
		c.slots.Release(d.weight)
		return false
	}
	c.owed[id] = d
	c.open++
	return true
}

// settle ends a debt after its answer was written.
func (c *conn) settle(d *debt) {
	d.cancel()
	c.slots.Release(d.weight)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// drain waits until every request read so far is answered, at most drainLimit.
func (c *conn) drain() {
	c.mu.Lock()
	if c.open == 0 {
		c.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	c.idle = idle
	c.mu.Unlock()
	timer := time.NewTimer(drainLimit)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-c.closed:
	}
}

// cancelDirect ends the direct call a cancellation speaks of. The SDK is given
// what is returned, and does the same for its own.
func (c *conn) cancelDirect(params json.RawMessage) json.RawMessage {
	var p struct {
		RequestID any `json:"requestId"`
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(params, &raw) != nil {
		return params
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return params
	}
	if exact := exactID(id, raw["requestId"]); exact != id {
		id = exact
		if text, err := marshal(map[string]any{"requestId": id.Raw()}); err == nil {
			params = text
		}
	}
	c.mu.Lock()
	d := c.owed[id.Raw()]
	c.mu.Unlock()
	if d != nil && c.isDirect(d.method) {
		d.cancel()
	}
	return params
}

// setVersion notes the protocol version that initialize agreed on.
func (c *conn) setVersion(result json.RawMessage) {
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &r) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = r.ProtocolVersion
}
