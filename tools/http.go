package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/quota"
)

// Caller is the authenticated sender of a request.
type Caller struct {
	// ID identifies the caller. A session belongs to the caller that began it.
	ID string
	// MayWrite is whether the caller may call tools that change something.
	MayWrite bool
	// MayAdminister is whether the caller may rebuild the index.
	MayAdminister bool
}

// HTTPOptions configures HTTP. Nil and zero fields select the defaults.
type HTTPOptions struct {
	// Caller returns the sender of a request; false means that the server does not
	// authenticate, and allows everything. Nil means that for every request.
	Caller func(*http.Request) (Caller, bool)
	// MaxBody bounds a request's body in bytes; 0 is 4 MiB.
	MaxBody int64
	// MaxSessions bounds the sessions of the revisions that have them; 0 is 256. One
	// client may have half of them.
	MaxSessions int
	// MaxStreams bounds the streams held open for notifications; 0 is 128.
	MaxStreams int
	// SessionTimeout ends idle sessions; 0 is half an hour.
	SessionTimeout time.Duration
}

// HTTP answers MCP over streamable HTTP on one URL: statelessly since revision
// 2026-07-28, with sessions before. It checks neither Host nor Origin nor
// tokens: the server that mounts it does. It is safe for concurrent use.
type HTTP struct {
	server    *Server
	options   HTTPOptions
	sdk       *mcp.Server
	stateless http.Handler
	stateful  http.Handler
	streams   chan struct{} // one for each stream that is open
	messages  *quota.Quota  // that are being worked on, or whose answers are not read
	sessions  *openSessions

	closing context.Context // ends the streams
	close   context.CancelFunc
	stop    func() // ends the background work of the SDK's server
	wg      sync.WaitGroup
}

// firstStateless is the first revision without sessions.
const firstStateless = "2026-07-28"

// HTTP returns the handler of the server's tools. Close it after the last request.
func (s *Server) HTTP(o *HTTPOptions) *HTTP {
	h := &HTTP{server: s}
	if o != nil {
		h.options = *o
	}
	if h.options.Caller == nil {
		h.options.Caller = func(*http.Request) (Caller, bool) { return Caller{}, false }
	}
	h.options.MaxBody = cmp.Or(h.options.MaxBody, maxLine)
	h.options.MaxSessions = cmp.Or(h.options.MaxSessions, 256)
	h.options.SessionTimeout = cmp.Or(h.options.SessionTimeout, 30*time.Minute)
	h.streams = make(chan struct{}, cmp.Or(h.options.MaxStreams, 128))
	h.closing, h.close = context.WithCancel(context.Background())
	h.sdk, h.stop = s.sdkServer(httpClient, httpSession)
	h.messages = quota.New(maxInFlight/2, 2*maxInFlight)
	h.sessions = &openSessions{sdk: h.sdk, each: max(1, h.options.MaxSessions/2), all: h.options.MaxSessions, now: s.options.Now, byID: map[string]*openSession{}}
	handler := func(stateless bool) http.Handler {
		// The server that mounts this checks Host and Origin of all addresses.
		return h.authenticated(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.sdk }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: h.options.SessionTimeout, MaxRequestBodyBytes: h.options.MaxBody,
			DisableLocalhostProtection: true, PropagateRequestCancellation: true,
		}))
	}
	h.stateless, h.stateful = handler(true), handler(false)
	return h
}

// Close ends the sessions and the streams, and waits for the latter.
func (h *HTTP) Close() {
	h.close()
	h.stop()
	for session := range h.sdk.Sessions() {
		_ = session.Close() // its client notices that its streams end
	}
	h.wg.Wait()
}

// envelope is the part of a message that routing needs.
type envelope struct {
	Method string `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	messages, ok := h.peek(w, r)
	if !ok || !h.permitted(w, r, messages) {
		return
	}
	client := h.clientOf(r)
	if n := len(messages); n > 0 {
		if !h.messages.Take(client, n) {
			tooMany(w, "1", "too many messages are in progress")
			return
		}
		defer h.messages.Return(client, n)
	}
	begins := hasMethod(messages, "initialize")
	stateful := hasSession(r, begins)
	if stateful {
		if begins && r.Header.Get("Mcp-Session-Id") == "" && !h.sessions.begin(client) {
			tooMany(w, "60", "too many sessions: end one, or speak revision %s, which has none", firstStateless)
			return
		}
		defer h.sessions.enter(w, r, client)()
	}
	if r.Method == http.MethodGet || hasMethod(messages, "subscriptions/listen") {
		select {
		case h.streams <- struct{}{}:
			defer func() { <-h.streams }()
		default:
			tooMany(w, "60", "too many streams: %d are open", cap(h.streams))
			return
		}
		h.wg.Add(1)
		defer h.wg.Done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(h.closing, cancel)()
		r = r.WithContext(ctx)
	}
	if stateful {
		h.stateful.ServeHTTP(coded{w}, r)
	} else {
		h.stateless.ServeHTTP(coded{w}, r)
	}
}

func tooMany(w http.ResponseWriter, retry, format string, args ...any) {
	w.Header().Set("Retry-After", retry)
	http.Error(w, fmt.Sprintf(format, args...), http.StatusServiceUnavailable)
}

// clientOf names the client of a request for the limits.
func (h *HTTP) clientOf(r *http.Request) string {
	if caller, known := h.options.Caller(r); known {
		return "token " + caller.ID
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}

// coded gives a code to the errors that the SDK sends without one: they are about the
// order of requests. It writes an answer in one piece.
type coded struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (c coded) Write(b []byte) (int, error) {
	const without = `"error":{"code":0,`
	at := bytes.Index(b, []byte(without))
	if at < 0 || bytes.Contains(b[:at], []byte(`"result"`)) {
		return c.ResponseWriter.Write(b)
	}
	with := slices.Concat(b[:at], fmt.Appendf(nil, `"error":{"code":%d,`, jsonrpc.CodeInvalidRequest), b[at+len(without):])
	if _, err := c.ResponseWriter.Write(with); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Unwrap supports http.ResponseController.
func (c coded) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Flush implements http.Flusher.
func (c coded) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() } // not every writer can flush

// hasSession reports whether a request belongs to a revision with sessions.
// Requests of 2026-07-28 name their revision in a header. Before, initialize came
// without one, and any client may omit it.
func hasSession(r *http.Request, begins bool) bool {
	version := r.Header.Get("Mcp-Protocol-Version")
	switch {
	case version >= firstStateless:
		return false
	case r.Method != http.MethodPost, version != "", r.Header.Get("Mcp-Session-Id") != "":
		return true
	}
	return begins
}

// peek reads the body of a POST and puts it back. The SDK refuses what is not
// JSON.
func (h *HTTP) peek(w http.ResponseWriter, r *http.Request) ([]envelope, bool) {
	if r.Method != http.MethodPost {
		return nil, true
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.MaxBody))
	if err != nil {
		if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
			http.Error(w, fmt.Sprintf("the body is longer than %d bytes", long.Limit), http.StatusRequestEntityTooLarge)
		} else {
			http.Error(w, "the body could not be read", http.StatusBadRequest)
		}
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if text := bytes.TrimSpace(body); len(text) > 0 && text[0] == '[' {
		var parts []json.RawMessage
		if json.Unmarshal(text, &parts) == nil && (len(parts) == 0 || len(parts) > maxBatch) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"Invalid Request: a batch holds 1 to %d messages"}}`, jsonrpc.CodeInvalidRequest, maxBatch)
			return nil, false
		}
		many := make([]envelope, len(parts))
		for i, part := range parts {
			_ = json.Unmarshal(part, &many[i])
		}
		return many, true
	}
	var one envelope
	_ = json.Unmarshal(body, &one)
	return []envelope{one}, true
}

// permitted refuses calls of tools that write to callers that may only read. The
// tools check again, see allowed, in case the SDK reads a body differently.
func (h *HTTP) permitted(w http.ResponseWriter, r *http.Request, messages []envelope) bool {
	caller, known := h.options.Caller(r)
	if !known || caller.MayWrite {
		return true
	}
	for _, m := range messages {
		t, ok := h.server.find(m.Params.Name)
		if ok {
			t, _, _ = h.server.unwrap(t, m.Params.Arguments)
		}
		if m.Method == "tools/call" && ok && !t.readOnly {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
			http.Error(w, fmt.Sprintf("%s changes something and this token may only read; make one with `cairn token new --scope write`", t.name), http.StatusForbidden)
			return false
		}
	}
	return true
}

// Scopes of callers.
const (
	scopeWrite = "write"
	scopeAdmin = "admin"
)

// authenticated passes the caller to the SDK, which binds sessions to callers and
// passes their scopes to the tools.
func (h *HTTP) authenticated(next http.Handler) http.Handler {
	verify := func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		caller, known := h.options.Caller(r)
		if !known {
			return nil, auth.ErrInvalidToken // unreachable: known callers only
		}
		info := &auth.TokenInfo{UserID: caller.ID}
		if caller.MayWrite {
			info.Scopes = append(info.Scopes, scopeWrite)
		}
		if caller.MayAdminister {
			info.Scopes = append(info.Scopes, scopeAdmin)
		}
		return info, nil
	}
	// The check of the token included its expiry.
	known := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := h.options.Caller(r); !ok {
			next.ServeHTTP(w, r)
			return
		}
		// The SDK requires a bearer token, however the caller was authenticated.
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer known")
		known.ServeHTTP(w, r)
	})
}

// allowed reports whether the caller of a request may use a tool.
func allowed(req *mcp.CallToolRequest, t tool, args json.RawMessage) *Failure {
	if t.readOnly || req.Extra == nil || req.Extra.TokenInfo == nil {
		return nil
	}
	scopes := req.Extra.TokenInfo.Scopes
	switch {
	case !slices.Contains(scopes, scopeWrite):
		return invalid("%s changes something and this token may only read", t.name)
	case t.administers != nil && t.administers(args) && !slices.Contains(scopes, scopeAdmin):
		return invalid("this call of %s needs a token with the scope admin", t.name)
	}
	return nil
}

// httpClient names the client whose calls the limits count: the session, else the
// token, else the client's own name for itself.
func httpClient(req *mcp.CallToolRequest) string {
	if id := req.Session.ID(); id != "" {
		return "session " + id
	}
	if req.Extra != nil && req.Extra.TokenInfo != nil {
		return "token " + req.Extra.TokenInfo.UserID
	}
	name := ""
	if info, ok := req.Params.Meta["io.modelcontextprotocol/clientInfo"].(map[string]any); ok {
		name, _ = info["name"].(string)
	}
	return "client " + name[:min(len(name), 64)]
}

// httpSession names the session or, in the revision without sessions, the token.
// The client's own name does not count: two clients of one name would seem to do
// each other's work.
func httpSession(req mcp.Request) string {
	if s := req.GetSession(); s != nil && s.ID() != "" {
		return "session " + s.ID()
	}
	if e := req.GetExtra(); e != nil && e.TokenInfo != nil {
		return "token " + e.TokenInfo.UserID
	}
	return ""
}

// Schemas returns the JSON Schemas of a tool's arguments and of its answer,
// failures included; false when the tool is not offered.
func (s *Server) Schemas(name string) (input, output json.RawMessage, ok bool) {
	t, ok := s.find(name)
	if !ok {
		return nil, nil, false
	}
	return schemaJSON(argumentSchema(t.args)), schemaJSON(answerSchema(t.answers)), true
}

// Call calls a tool for another API of the same server. args is a JSON object. The
// limits for agents do not apply. An unknown tool is a Failure with CodeNotFound.
func (s *Server) Call(ctx context.Context, name string, args json.RawMessage) (any, *Failure) {
	t, ok := s.find(name)
	if !ok {
		return nil, &Failure{Code: CodeNotFound, Message: fmt.Sprintf("no tool %q is offered", name)}
	}
	t.rate = rate{}
	return s.do(s.requestContext(ctx, ""), "", t, call{args: args})
}
