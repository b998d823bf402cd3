package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/quota"
	"cairn/tools/mcptask"
)

// Caller is the authenticated sender of a request.
type Caller struct {
	ID            string // not "". A session belongs to the caller that began it.
	MayWrite      bool   // may call tools that change something
	MayAdminister bool   // may rebuild the index
}

// httpLimits are the limits of HTTP.
type httpLimits struct {
	body     int64 // bytes of a request
	sessions int   // sessions of all clients, in the revisions with sessions; a client may have half of them
	streams  int   // open streams of notifications
}

// sessionTimeout is the time after which an idle session ends.
const sessionTimeout = 30 * time.Minute

// HTTP answers MCP over streamable HTTP on one URL: without sessions since revision
// 2026-07-28, with sessions before. The server that mounts it must check Host, Origin and
// tokens. It is safe for concurrent use.
type HTTP struct {
	server    *Server
	caller    func(*http.Request) (Caller, bool)
	limits    httpLimits
	sdk       *mcp.Server
	stateless http.Handler
	stateful  http.Handler
	streams   *quota.Quota // open streams
	messages  *quota.Quota // messages in progress, or with an answer not yet read
	sessions  *openSessions

	closing context.Context // ends the streams
	close   context.CancelFunc
	stop    func() // ends the background work of the SDK's server
	wg      sync.WaitGroup
}

// firstStateless is the first revision without sessions.
const firstStateless = "2026-07-28"

// HTTP returns the handler of the server's tools. caller returns the sender of a request,
// or false if the mounting server does not authenticate requests and every sender may do
// everything. The caller of HTTP must call Close after the last request.
func (s *Server) HTTP(caller func(*http.Request) (Caller, bool)) *HTTP {
	return s.newHTTP(caller, httpLimits{body: maxLine, sessions: 256, streams: 128})
}

func (s *Server) newHTTP(caller func(*http.Request) (Caller, bool), limits httpLimits) *HTTP {
	h := &HTTP{server: s, caller: caller, limits: limits, streams: quota.New(limits.streams, limits.streams), messages: quota.New(maxInFlight/2, 2*maxInFlight)}
	h.closing, h.close = context.WithCancel(context.Background())
	h.sdk, h.stop = s.sdkServer(httpSession)
	h.sessions = &openSessions{sdk: h.sdk, each: max(1, limits.sessions/2), all: limits.sessions, now: s.options.Now, byID: map[string]*openSession{}}
	handler := func(stateless bool) http.Handler {
		return h.authenticated(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.sdk }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: sessionTimeout, MaxRequestBodyBytes: limits.body,
			DisableLocalhostProtection: true, PropagateRequestCancellation: true,
		}))
	}
	h.stateless, h.stateful = handler(true), handler(false)
	return h
}

// Close ends the sessions and the streams, and waits for the end of the streams.
func (h *HTTP) Close() {
	h.close()
	h.stop()
	for session := range h.sdk.Sessions() {
		_ = session.Close()
	}
	h.wg.Wait()
}

// envelope is the part of a message that routing needs.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		TaskID    string          `json:"taskId"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	messages, ok := h.peek(w, r)
	if !ok || !h.permitted(w, r, messages) {
		return
	}
	if r.Header.Get("Mcp-Protocol-Version") >= firstStateless && len(messages) == 1 && !sameTask(w, r.Header, messages[0]) {
		return
	}
	caller, _ := h.caller(r)
	client := quota.Client(caller.ID, r.RemoteAddr)
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
		if !h.streams.Take(client, 1) {
			tooMany(w, "60", "too many streams: %d are open", h.limits.streams)
			return
		}
		defer h.streams.Return(client, 1)
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

// sameTask answers 400 and returns false if a request names another task in its header than in
// its body. The SDK compares only the names of its own methods.
func sameTask(w http.ResponseWriter, header http.Header, m envelope) bool {
	name := header.Get("Mcp-Name")
	if !slices.Contains(mcptask.Methods, m.Method) || name == m.Params.TaskID {
		return true
	}
	badRequest(w, m.ID, mcp.CodeHeaderMismatch, "header mismatch: Mcp-Name is %.100q, and taskId %.100q", name, m.Params.TaskID)
	return false
}

func badRequest(w http.ResponseWriter, id json.RawMessage, code int64, format string, args ...any) {
	answer, _ := marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}}) // the id was JSON
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(answer) // the client may have left
}

func tooMany(w http.ResponseWriter, retry, format string, args ...any) {
	w.Header().Set("Retry-After", retry)
	http.Error(w, fmt.Sprintf(format, args...), http.StatusServiceUnavailable)
}

// coded adds a code to the errors that the SDK sends without one, which are about the
// order of requests. The SDK writes each answer with one call of Write.
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

// hasSession reports whether a request belongs to a revision with sessions. Since
// 2026-07-28 requests have a header with the revision. In earlier revisions initialize has
// no header, and clients may omit it from other requests.
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

// peek returns the messages in the body of a POST, and replaces the body with a copy. It
// ignores JSON errors, which the SDK reports. It returns false if it has answered.
func (h *HTTP) peek(w http.ResponseWriter, r *http.Request) ([]envelope, bool) {
	if r.Method != http.MethodPost {
		return nil, true
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.limits.body))
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
			badRequest(w, nil, jsonrpc.CodeInvalidRequest, "Invalid Request: a batch holds 1 to %d messages", maxBatch)
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

// permitted answers 403 and returns false if a caller without the permission to write calls
// a tool that writes. The handlers of the tools check again, see allowed, in case the SDK
// reads a body differently.
func (h *HTTP) permitted(w http.ResponseWriter, r *http.Request, messages []envelope) bool {
	caller, known := h.caller(r)
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

// authenticated passes the caller to the SDK, which binds each session to its caller and
// passes the scopes to the tools.
func (h *HTTP) authenticated(next http.Handler) http.Handler {
	verify := func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		caller, known := h.caller(r)
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
	// The caller function has checked the expiry of the token.
	known := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := h.caller(r); !ok {
			next.ServeHTTP(w, r)
			return
		}
		// The SDK requires a bearer token for every kind of authentication.
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer known")
		known.ServeHTTP(w, r)
	})
}

// allowed returns a failure if the caller of a request, which has extra, must not use the tool.
func allowed(extra *mcp.RequestExtra, t tool, args json.RawMessage) *Failure {
	if t.readOnly || extra == nil || extra.TokenInfo == nil {
		return nil
	}
	scopes := extra.TokenInfo.Scopes
	switch {
	case !slices.Contains(scopes, scopeWrite):
		return invalid("%s changes something and this token may only read", t.name)
	case t.administers != nil && t.administers(args) && !slices.Contains(scopes, scopeAdmin):
		return invalid("this call of %s needs a token with the scope admin", t.name)
	}
	return nil
}

// httpSession returns the name of the session for the recorder: the session or, in the
// revision without sessions, the token. It ignores the name that the client reports,
// because two clients may have the same name.
func httpSession(req mcp.Request) string {
	if s := req.GetSession(); s != nil && s.ID() != "" {
		return "session " + s.ID()
	}
	if e := req.GetExtra(); e != nil && e.TokenInfo != nil {
		return "token " + e.TokenInfo.UserID
	}
	return ""
}

// reportedName returns the name that a client without a session and a token reports, for the
// limits.
func reportedName(req *mcp.CallToolRequest) string {
	name := ""
	if info, ok := req.Params.Meta["io.modelcontextprotocol/clientInfo"].(map[string]any); ok {
		name, _ = info["name"].(string)
	}
	return "client " + name[:min(len(name), 64)]
}

// Schemas returns the JSON Schemas of a tool's arguments and of its answer, including
// failures. ok is false if the tool is not offered.
func (s *Server) Schemas(name string) (input, output json.RawMessage, ok bool) {
	t, ok := s.find(name)
	if !ok {
		return nil, nil, false
	}
	return schemaJSON(argumentSchema(t.args)), schemaJSON(answerSchema(t.answers)), true
}

// Call calls a tool for another API of the same server, without rate limit. args is a JSON
// object. An unknown tool is a Failure with CodeNotFound.
func (s *Server) Call(ctx context.Context, name string, args json.RawMessage) (any, *Failure) {
	t, ok := s.find(name)
	if !ok {
		return nil, &Failure{Code: CodeNotFound, Message: fmt.Sprintf("no tool %q is offered", name)}
	}
	t.rate = rate{}
	return s.do(s.requestContext(ctx, ""), "", t, call{args: args})
}
