package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/base/metrics"
	"cairn/internal/base/observe"
	"cairn/internal/folder/index"
)

// observed answers a request and reports it to the listener.
func (s *Server) observed(w *answerWriter, r *http.Request) {
	c := &observe.Call{
		ID: observe.IDOf(r.Header.Get(observe.IDHeader)), Method: r.Method,
		TraceParent: r.Header.Get("traceparent"), TraceState: r.Header.Get("tracestate"),
		Remote: r.RemoteAddr,
	}
	if !slices.Contains(methods, r.Method) { // clients cannot add labels to the metrics
		c.Method = "OTHER"
	}
	// In a session, tools receive the headers of the request, but not its context.
	r.Header.Set(observe.IDHeader, c.ID)
	r.Header.Set(observe.RemoteHeader, c.Remote)
	r.Header.Del(observe.TokenHeader)
	w.Header().Set(observe.IDHeader, c.ID)
	start := time.Now()
	ctx := s.options.Listener.Begin(observe.WithID(r.Context(), c.ID), c)
	s.answer(w, r.WithContext(context.WithValue(ctx, callKey{}, c)))
	s.options.Listener.End(ctx, c, w.outcome(ctx, r), time.Since(start))
}

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

type callKey struct{}

// routed records the pattern that matched a request.
func routed(pattern, workspace string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(callKey{}).(*observe.Call); ok {
			c.Route, c.Workspace = pattern, workspace
		}
		h.ServeHTTP(w, r)
	})
}

// outcome returns the result of a request.
func (w *answerWriter) outcome(ctx context.Context, r *http.Request) observe.Outcome {
	o := observe.Outcome{Status: observe.OK, Code: w.code}
	switch {
	case o.Code == 0 && ctx.Err() != nil:
		o.Status = observe.Cancelled
	case o.Code == http.StatusTooManyRequests, o.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "":
		o.Status = observe.Limited
	case o.Code >= 500 && !strings.HasSuffix(r.URL.Path, "/readyz"): // a 503 of /readyz is no failure
		o.Status = observe.Failed
	case o.Code >= 400 && o.Code < 500:
		o.Status = observe.Refused
	}
	if o.Code == 0 {
		o.Code = http.StatusOK // the handler wrote nothing
	}
	o.Stream = r.Method == http.MethodGet && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
	return o
}

// IndexState converts the status of a workspace to its metrics.
func IndexState(st *index.Status) metrics.Index {
	x := metrics.Index{
		Ready: searchable(st), Files: st.Files, Sections: st.Sections, Embedded: st.Embedded, Pending: st.Pending,
		KeywordSince: st.KeywordSince, VectorsSince: st.VectorsSince, Indexing: st.State == "building", Watching: st.Watching != "",
	}
	if at, err := time.Parse(time.RFC3339, st.BuiltAt); err == nil {
		x.BuiltAt = at
	}
	return x
}

// writeTimeout bounds the time of each write to a client.
const writeTimeout = 30 * time.Second

// heartbeat is the time without an event after which a stream sends a comment. Proxies close a
// connection that is silent for a minute.
const heartbeat = 20 * time.Second

// answerWriter records the status of an answer. It closes the connection of a client that
// does not read its answer within writeTimeout, and keeps streams of events open.
type answerWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	mu      sync.Mutex
	code    int         // 0 before the first write
	beat    *time.Timer // of a stream; nil for other answers and after the end
}

// extend has no effect on a writer without deadlines, as in a test.
func (w *answerWriter) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) }

// begin locks w for a write, which has the status code if it is the first one.
func (w *answerWriter) begin(code int) (unlock func()) {
	w.mu.Lock()
	if w.code == 0 && code >= http.StatusOK { // not an informational status
		if w.code = code; strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			w.Header().Set("X-Accel-Buffering", "no") // nginx passes each event on
			w.beat = time.AfterFunc(heartbeat, w.ping)
		}
	} else if w.beat != nil {
		w.beat.Reset(heartbeat)
	}
	w.extend()
	return w.mu.Unlock
}

// ping writes a comment to a stream.
func (w *answerWriter) ping() {
	defer w.begin(http.StatusOK)()
	if w.beat != nil {
		_, _ = w.ResponseWriter.Write([]byte(":\n\n")) // the request ends when the client has left
		_ = w.control.Flush()
	}
}

// end stops the comments.
func (w *answerWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.beat != nil {
		w.beat.Stop()
		w.beat = nil
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(code int) {
	defer w.begin(code)()
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *answerWriter) Write(b []byte) (int, error) {
	defer w.begin(http.StatusOK)()
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (w *answerWriter) Flush() {
	defer w.begin(http.StatusOK)()
	_ = w.control.Flush() // not every writer can flush
}

// Unwrap supports http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
