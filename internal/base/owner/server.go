package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cairn/internal/base/home"
)

// Service works on the files of a folder in its owner.
type Service interface {
	// Removed reports whether the owner must close the service and start another: open files
	// were removed from the folder, and the service must not write to them any more, or its
	// settings have changed.
	Removed() bool
	// Close ends all work and closes the files.
	Close() error
}

// Server runs the operations of a folder in its owner, for this process and for clients.
type Server struct {
	// Holder is this process.
	Holder Holder
	// Held reports whether this process still owns the folder. It is false after the
	// folder was removed.
	Held func() bool

	kinds Kinds
	local map[string]any // functions, by operation
	mux   *http.ServeMux
}

func newServer(kinds Kinds) *Server {
	return &Server{kinds: kinds, local: map[string]any{}, mux: http.NewServeMux()}
}

// maxRequest bounds a client's request in bytes. A large catalogue is one request.
const maxRequest = 256 << 20

// Op is the name of an operation, unique in the folder. In is the type of its argument,
// Out of its result, and Line of the progress that it reports before the result.
type Op[In, Out, Line any] string

// Handle registers fn as the operation on s. fn may call ahead from any goroutine
// until it returns.
func (op Op[In, Out, Line]) Handle(s *Server, fn func(ctx context.Context, in In, ahead func(Line)) (Out, error)) {
	s.local[string(op)] = fn
	s.mux.Handle("POST /"+string(op), &handler{s.kinds, func(ctx context.Context, decode func(any) error, ahead func(any)) (any, error) {
		var in In
		if err := decode(&in); err != nil {
			return nil, err
		}
		return fn(ctx, in, func(line Line) { ahead(line) })
	}})
}

// handler answers clients' calls of an operation with what fn returns.
type handler struct {
	kinds Kinds
	fn    func(ctx context.Context, decode func(in any) error, ahead func(line any)) (any, error)
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var mu sync.Mutex
	out := json.NewEncoder(w)
	send := func(line reply) {
		mu.Lock()
		defer mu.Unlock()
		// An error means that the client has disconnected.
		if out.Encode(line) == nil && line.Ahead != nil {
			_ = http.NewResponseController(w).Flush()
		}
	}
	defer func() {
		if cause := recover(); cause != nil { // without an answer, the client would try 50 owners
			send(reply{Error: h.kinds.encode(fmt.Errorf("a defect of cairn ended this operation: %v", cause))})
			_ = http.NewResponseController(w).Flush() // the client may have disconnected
			panic(cause)                              // net/http logs the stack
		}
	}()
	result, err := h.fn(r.Context(), json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode, func(line any) {
		if text, err := json.Marshal(line); err == nil {
			send(reply{Ahead: text})
		}
	})
	if err != nil {
		send(reply{Error: h.kinds.encode(err)})
		return
	}
	text, err := json.Marshal(result)
	send(reply{Result: text, Error: h.kinds.encode(err)})
}

// Answer is Handle for an operation that reports no progress.
func (op Op[In, Out, Line]) Answer(s *Server, fn func(context.Context, In) (Out, error)) {
	op.Handle(s, func(ctx context.Context, in In, _ func(Line)) (Out, error) { return fn(ctx, in) })
	s.local[string(op)] = fn
}

// listener answers clients. Requests are HTTP, so that one connection carries many;
// answers are lines of JSON.
type listener struct {
	net    net.Listener
	socket os.FileInfo // of the socket that this process created
	server *http.Server
	ended  chan struct{} // closed after the server has returned
}

// serve starts to answer clients on l. After removed it answers no new ones, which then wait
// for the next owner.
func (s *Server) serve(l net.Listener, h hello, removed func() bool, log *slog.Logger) *listener {
	s.mux.HandleFunc("POST /"+helloOp, func(w http.ResponseWriter, _ *http.Request) {
		text, _ := json.Marshal(h) // a hello always marshals
		answer := reply{Result: text}
		if removed() {
			answer = reply{Error: s.kinds.encode(ErrEnded)}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	ln := &listener{
		net:    l,
		server: &http.Server{Handler: s.mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)},
		ended:  make(chan struct{}),
	}
	ln.socket, _ = os.Lstat(l.Addr().String()) // if it has been removed, close has nothing to remove
	go func() {
		defer close(ln.ended)
		if err := ln.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving other processes", "error", err)
		}
	}()
	return ln
}

// closeLimit bounds the wait for answers in progress when an owner closes.
const closeLimit = 300 * time.Millisecond

// close stops listening, waits up to closeLimit for answers in progress, and closes the
// other connections; their clients send the operation to the next owner. It does not
// remove a socket with which another owner has replaced this one.
func (ln *listener) close() {
	if unix, ok := ln.net.(*net.UnixListener); ok {
		there, err := os.Lstat(unix.Addr().String())
		unix.SetUnlinkOnClose(err == nil && os.SameFile(there, ln.socket))
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if ln.server.Shutdown(ctx) != nil {
		ln.server.Close()
	}
	<-ln.ended
}

// listen opens a socket at path that only this user can connect to. The caller holds the
// lock, so a socket that exists belongs to a process that ended.
func listen(path string) (net.Listener, error) {
	if err := home.Private(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of a process that ended: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("closing %s to other users: %w", path, err)
	}
	return l, nil
}
