package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"cairn/retriever"
)

// maxRequest bounds a request of another process in bytes.
const maxRequest = 1 << 20

// ownerServer serves an engine to other processes over a Unix socket. Requests are
// HTTP so that one connection carries many, answers are lines of JSON.
type ownerServer struct {
	listener net.Listener
	socket   os.FileInfo // the listener's, as it was made
	server   *http.Server
	ended    chan struct{} // closed when the server has returned
}

// serve starts an owner on l. It listens at once, also while ready has yet to
// give the engine: callers wait then.
func serve(l net.Listener, h hello, ready func() (engine, error), log *slog.Logger) *ownerServer {
	mux := http.NewServeMux()
	handle(mux, opHello, func(context.Context, struct{}, func(Progress)) (*hello, error) { return &h, nil })
	through(mux, opSearch, ready, func(ctx context.Context, e engine, q retriever.Query, _ func(Progress)) (*retriever.Answer, error) {
		return e.Search(ctx, q)
	})
	through(mux, opExplain, ready, func(ctx context.Context, e engine, r ExplainRequest, _ func(Progress)) (*retriever.Trace, error) {
		return e.Explain(ctx, r)
	})
	through(mux, opRead, ready, func(ctx context.Context, e engine, r retriever.ReadRequest, _ func(Progress)) (*retriever.Reading, error) {
		return e.Read(ctx, r)
	})
	through(mux, opReadAll, ready, func(ctx context.Context, e engine, r retriever.ReadRequest, _ func(Progress)) (*retriever.Readings, error) {
		return e.ReadAll(ctx, r)
	})
	through(mux, opStatus, ready, func(ctx context.Context, e engine, _ struct{}, _ func(Progress)) (*Status, error) {
		return e.Status(ctx)
	})
	through(mux, opIndex, ready, func(ctx context.Context, e engine, r IndexRequest, progress func(Progress)) (*IndexReport, error) {
		return e.Index(ctx, r, progress)
	})
	serveDocuments(mux, ready)
	stream(mux, opWatch, func(ctx context.Context, _ struct{}, send func(reply)) (*struct{}, error) {
		e, err := ready()
		if err != nil {
			return nil, err
		}
		return &struct{}{}, e.Watch(ctx, func(ev WatchEvent) { send(reply{Watch: &ev}) })
	})
	o := &ownerServer{
		listener: l,
		server:   &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)},
		ended:    make(chan struct{}),
	}
	o.socket, _ = os.Lstat(l.Addr().String()) // removed already: there is nothing to remove
	go func() {
		defer close(o.ended)
		if err := o.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving other processes", "error", err)
		}
	}()
	return o
}

// close stops listening, lets answers in flight leave within closeLimit, and
// cuts the rest off; their callers ask again elsewhere. A socket that took the
// place of the own one is another owner's and stays.
func (o *ownerServer) close() {
	if unix, ok := o.listener.(*net.UnixListener); ok {
		there, err := os.Lstat(unix.Addr().String())
		unix.SetUnlinkOnClose(err == nil && os.SameFile(there, o.socket))
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if o.server.Shutdown(ctx) != nil {
		o.server.Close()
	}
	<-o.ended
}

// through registers an operation of the engine, which callers may have to wait for.
func through[In, Out any](mux *http.ServeMux, op string, ready func() (engine, error), fn func(context.Context, engine, In, func(Progress)) (*Out, error)) {
	handle(mux, op, func(ctx context.Context, in In, progress func(Progress)) (*Out, error) {
		e, err := ready()
		if err != nil {
			return nil, err
		}
		return fn(ctx, e, in, progress)
	})
}

// handle registers an operation. progress may be called from any goroutine
// until fn returns.
func handle[In, Out any](mux *http.ServeMux, op string, fn func(ctx context.Context, in In, progress func(Progress)) (*Out, error)) {
	stream(mux, op, func(ctx context.Context, in In, send func(reply)) (*Out, error) {
		return fn(ctx, in, func(p Progress) { send(reply{Progress: &p}) })
	})
}

// stream registers an operation that sends lines ahead of its result, from any
// goroutine until fn returns.
func stream[In, Out any](mux *http.ServeMux, op string, fn func(ctx context.Context, in In, send func(reply)) (*Out, error)) {
	mux.HandleFunc("POST "+op, func(w http.ResponseWriter, r *http.Request) {
		var in In
		var mu sync.Mutex
		out := json.NewEncoder(w)
		send := func(line reply) {
			mu.Lock()
			defer mu.Unlock()
			// A caller that has gone away misses nothing.
			if out.Encode(line) == nil && line.Result == nil {
				_ = http.NewResponseController(w).Flush()
			}
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&in); err != nil {
			send(reply{Error: encodeError(err)})
			return
		}
		result, err := fn(r.Context(), in, send)
		if err != nil {
			send(reply{Error: encodeError(err)})
			return
		}
		text, err := json.Marshal(result)
		send(reply{Result: text, Error: encodeError(err)})
	})
}
