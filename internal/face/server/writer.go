package server

import (
	"cmp"
	"net/http"
	"time"
)

// writeTimeout bounds the time of each write to a client.
const writeTimeout = 30 * time.Second

// answerWriter records the status of an answer. It closes the connection of a client that
// does not read its answer within writeTimeout.
type answerWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	code    int // 0 before the first write
}

func newAnswerWriter(w http.ResponseWriter) *answerWriter {
	a := &answerWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	a.extend() // the deadline of the previous request still applies to this connection
	return a
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
