package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
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

// answerWriter records the status of an answer. It closes the connection of a client that
// does not read its answer within writeTimeout.
type answerWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	code    int // 0 before the first write
}

// extend has no effect on a writer without deadlines, as in a test.
func (w *answerWriter) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) }

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(code int) {
	if w.code == 0 && code >= http.StatusOK { // not an informational status
		w.code = code
	}
	w.extend()
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *answerWriter) Write(b []byte) (int, error) {
	w.code = cmp.Or(w.code, http.StatusOK)
	w.extend()
	return w.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (w *answerWriter) Flush() {
	w.code = cmp.Or(w.code, http.StatusOK)
	w.extend()
	_ = w.control.Flush() // not every writer can flush
}

// Unwrap supports http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
