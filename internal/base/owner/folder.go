// Package owner lets one process at a time own the files of a folder. Other processes
// send their operations to it. The package does not interpret the files.
//
// # Ownership
//
// The owner holds an exclusive lock on a file that names the process, and listens on a
// Unix socket. A process that does not get the lock becomes a client. When the owner
// ends, the next client to make a call takes the lock and becomes the owner. Only the
// owner opens the files, so they need no locks of their own. The owner takes the lock
// and opens the socket first; a Service opens its files when an operation needs them.
//
// # Operations
//
// An Op is an operation: a name with the types of its argument, its result, and the
// lines that report progress. A Service registers a function for each with
// Op.Handle. Op.Call runs the function in this process if it is the owner, and sends the
// operation to the owner otherwise; callers see no difference. If the owner ends before
// it answers, Call sends the operation to the next owner, so operations must be
// idempotent. Errors keep their type if Options.Errors lists it.
//
// # An owner that hangs
//
// A suspended process keeps its lock. Within a second its clients get a *LockError, which
// names the process and the command that ends it. With Options.Fallback a client instead
// runs operations that only read in a service of its own, until the owner answers or ends.
//
// # A folder that is removed
//
// Before every call, and once a second, the owner compares the file that it has locked
// with the file at its path. If they differ, the folder was removed: the owner closes its
// files without writing to them and connects again. It does the same if its Service asks for
// it with Removed, for example because its settings have changed.
package owner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cairn/internal/base/home"
)

// LockFile and socketName are the names of the lock and the socket in the directory of a
// folder.
const (
	LockFile   = "lock"
	socketName = "sock"
)

// Options configures Open. Dir, Make and Serve are required.
type Options struct {
	// Dir is the directory of the lock and the socket. Make creates it before every
	// attempt to take the lock.
	Dir  string
	Make func() error
	// Takeover connects again in the background, without a call, after the owner ended
	// or the folder was removed.
	Takeover bool
	// Command describes this process to others, such as "cairn index".
	Command string
	// Identity describes the owner's service to its clients, such as its model.
	Identity map[string]string
	// Accept, if not nil, can refuse an owner because of its identity.
	Accept func(h Holder, identity map[string]string) error
	// Errors lists the error types that clients receive with their type.
	Errors Kinds
	// Serve registers the operations on s and returns their service. The Folder calls
	// it whenever this process becomes the owner.
	Serve func(s *Server) (Service, error)
	// Fallback, if not nil, registers the operations that only read on s, for an owner that
	// does not answer. Its service is Removed once the owner has changed a file that it
	// reads: Call then discards the result and connects again.
	Fallback func(s *Server, silent *LockError) (Service, error)
	// Check, if not nil, runs before every call; its error is the call's.
	Check func() error
	// Logger receives errors of background work. Nil discards them.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	network network // zero: Unix sockets
}

// network connects processes. Tests replace it by a simulation.
type network struct {
	listen func(path string) (net.Listener, error)
	dial   func(ctx context.Context, path string) (net.Conn, error)
}

// Folder is a folder that this process owns or uses through its owner. It is safe for
// concurrent use.
type Folder struct {
	o Options

	mu      mutex
	current *session // nil before the first call, and after an owner ended
	closed  bool
	// refused is the error for an owner that did not answer at refusedAt. Calls within
	// a second of it get the same error without another attempt.
	refused   *LockError
	refusedAt time.Time

	stop       context.CancelFunc
	supervisor sync.WaitGroup
}

// mutex is a lock that a goroutine holds while it waits for another process. It is a
// channel because the virtual clock of testing/synctest stops while a goroutine waits
// for a sync.Mutex.
type mutex chan struct{}

func (m mutex) Lock()   { m <- struct{}{} }
func (m mutex) Unlock() { <-m }

// session is a connection to the owner if client is set, and a fallback if silent is set.
// Otherwise this process is the owner; a session of Local has no lock and no listener.
type session struct {
	client *client
	silent *LockError // why operations that are missing on server fail

	server   *Server
	service  Service
	lock     *lock
	listener *listener
}

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the folder is closed")

// Open connects to the owner of a folder, or makes this process its owner.
func Open(ctx context.Context, o Options) (*Folder, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.network.listen == nil {
		o.network = network{listen: listen, dial: dialUnix}
	}
	f := &Folder{o: o, mu: make(mutex, 1)}
	if _, err := f.session(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	f.supervisor.Go(func() { f.supervise(ctx) })
	return f, nil
}

// Local returns a Folder whose operations always run in this process, because they use no
// files that need an owner. serve registers them.
func Local(serve func(*Server) Service) *Folder {
	s := &session{server: newServer(nil)}
	s.service = serve(s.server)
	return &Folder{mu: make(mutex, 1), current: s}
}

// Close closes the service or the connection to the owner.
func (f *Folder) Close() error {
	f.mu.Lock()
	f.closed = true
	if f.stop != nil {
		f.stop()
	}
	f.mu.Unlock()
	f.supervisor.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		return nil
	}
	s := f.current
	f.current = nil
	return s.close()
}

// attempts bounds how many owners a call tries. It is large because an owner that runs
// one short command lives a fraction of a second.
const attempts = 50

// Call runs the operation in the owner. ahead receives the lines that the operation
// reports before its result; it may be nil. If the owner is another process, Call calls
// ahead from its own goroutine.
func (op Op[In, Out, Line]) Call(ctx context.Context, f *Folder, in In, ahead func(Line)) (out Out, err error) {
	if ahead == nil {
		ahead = func(Line) {}
	}
	for n := 1; ; n++ {
		s, err := f.session(ctx)
		if err != nil {
			return out, err
		}
		if s.client != nil {
			err = f.send(ctx, s, call{op: string(op), in: &in, out: &out, line: func(text []byte) error {
				var line Line
				err := json.Unmarshal(text, &line)
				if err == nil {
					ahead(line)
				}
				return err
			}})
		} else {
			out, err = op.run(ctx, s, in, ahead)
		}
		if !errors.Is(err, ErrEnded) || n == attempts {
			return out, err
		}
		f.mu.Lock()
		f.forget(s)
		f.mu.Unlock()
	}
}

// run runs the operation in this process.
func (op Op[In, Out, Line]) run(ctx context.Context, s *session, in In, ahead func(Line)) (out Out, err error) {
	fn := s.server.local[string(op)]
	if fn == nil && s.silent != nil {
		return out, s.silent
	}
	if simple, ok := fn.(func(context.Context, In) (Out, error)); ok {
		out, err = simple(ctx, in)
	} else {
		out, err = fn.(func(context.Context, In, func(Line)) (Out, error))(ctx, in, ahead)
	}
	if s.silent != nil && ctx.Err() == nil && s.service.Removed() {
		err = ErrEnded
	}
	return out, err
}

// call is a call of an operation without its types, so that the code that sends it is
// compiled once and not for each operation.
type call struct {
	op      string
	in, out any                     // pointers to the argument and the result
	line    func(text []byte) error // receives a line of progress as JSON
}

// send makes a call in another process. It closes the session with an owner that stopped
// answering.
func (f *Folder) send(ctx context.Context, s *session, c call) error {
	err := s.client.receive(ctx, c)
	if !errors.Is(err, errSilent) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == s {
		f.forget(s)
		f.refused = &LockError{LockFile: filepath.Join(f.o.Dir, LockFile), Holder: s.client.owner.Holder, Doing: "using", Silent: true}
		f.refusedAt = time.Now()
	}
	return ErrEnded
}

// Owns reports whether this process owns the folder.
func (f *Folder) Owns() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current != nil && f.current.client == nil && f.current.silent == nil
}

// session returns the current session, or connects if there is none.
func (f *Folder) session(ctx context.Context) (*session, error) {
	if f.o.Check != nil {
		if err := f.o.Check(); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if s := f.current; s != nil && s.removed() {
		f.forget(s)
	}
	if f.current != nil {
		return f.current, nil
	}
	s, err := (*session)(nil), error(f.refused)
	if f.refused == nil || time.Since(f.refusedAt) >= time.Second {
		s, err = f.connect(ctx)
		f.refused, _ = errors.AsType[*LockError](err)
		f.refusedAt = time.Now()
	}
	if f.refused != nil && f.o.Fallback != nil {
		s = &session{silent: f.refused, server: newServer(f.o.Errors)}
		s.service, err = f.o.Fallback(s.server, f.refused)
	}
	if err != nil {
		return nil, err
	}
	f.current = s
	return s, nil
}

// removed reports whether this process was the owner and the folder was removed, or the
// owner has changed a file that the fallback reads.
func (s *session) removed() bool {
	return s.lock != nil && !s.lock.held() || (s.lock != nil || s.silent != nil) && s.service.Removed()
}

// close waits for answers in progress, closes the files and releases the lock.
func (s *session) close() error {
	if s.client != nil {
		s.client.close()
		return nil
	}
	if s.lock == nil {
		return s.service.Close()
	}
	s.listener.close()
	return errors.Join(s.service.Close(), s.lock.release())
}

// forget closes s, unless another goroutine has already done so. The caller holds f.mu.
func (f *Folder) forget(s *session) {
	if f.current != s {
		return
	}
	f.current = nil
	if s.silent != nil {
		f.refused = nil // connect again at once
	}
	if err := s.close(); err != nil {
		f.o.Logger.Debug("closing a folder", "dir", f.o.Dir, "error", err)
	}
}

// superviseEvery is the interval of the checks in supervise.
const superviseEvery = time.Second

// supervise drops the session soon after the folder was removed, so that other processes
// can own a new one, and a fallback soon after the owner answers or has ended. With
// Takeover it then connects again, and also when the owner has ended.
func (f *Folder) supervise(ctx context.Context) {
	tick := time.NewTicker(superviseEvery)
	defer tick.Stop()
	l := newLock(filepath.Join(f.o.Dir, LockFile))
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		f.mu.Lock()
		s := f.current
		f.mu.Unlock()
		drop := s != nil && (s.removed() || f.o.Takeover && s.client != nil && l.free() || s.silent != nil && (l.free() || f.answers(ctx)))
		f.mu.Lock()
		if drop {
			f.forget(s)
		}
		again := f.current == nil && f.o.Takeover
		f.mu.Unlock()
		if again {
			// The next call returns the same error.
			_, _ = f.session(ctx)
		}
	}
}

// answers reports whether the owner answers again.
func (f *Folder) answers(ctx context.Context) bool {
	h := readHolder(filepath.Join(f.o.Dir, LockFile))
	if h.suspended() {
		return false // a connection would wait in the owner's queue
	}
	c, err := dial(ctx, f.o.network, socketPath(f.o.Dir, os.TempDir()), h, f.o.Errors)
	if err != nil {
		return false
	}
	c.close()
	return true
}

// connectLimit bounds the wait for an owner that is closing its files: it no longer
// answers and still has the lock. retryEvery is the pause between two attempts.
const (
	connectLimit = 3 * time.Second
	retryEvery   = 10 * time.Millisecond
)

// connect takes the lock and becomes the owner, or connects to the owner. The caller
// holds f.mu.
func (f *Folder) connect(ctx context.Context) (*session, error) {
	if err := f.o.Make(); err != nil {
		return nil, err
	}
	lock, socket := newLock(filepath.Join(f.o.Dir, LockFile)), socketPath(f.o.Dir, os.TempDir())
	for deadline := time.Now().Add(connectLimit); ; {
		me := Holder{PID: os.Getpid(), Command: f.o.Command, StartedAt: f.o.Now().UTC().Truncate(time.Second)}
		owned, err := lock.tryOwn(me)
		if err != nil {
			return nil, home.Explain(err)
		}
		if owned {
			return f.own(lock, socket, me)
		}
		c, err := dial(ctx, f.o.network, socket, readHolder(lock.path), f.o.Errors)
		switch {
		case err == nil:
			if f.o.Accept != nil {
				err = f.o.Accept(c.owner.Holder, c.owner.Identity)
			}
			if err != nil {
				c.close()
				return nil, err
			}
			return &session{client: c}, nil
		case errors.Is(err, errSilent):
			return nil, &LockError{LockFile: lock.path, Holder: readHolder(lock.path), Doing: "using", Silent: true}
		case !errors.Is(err, ErrEnded):
			return nil, err
		case time.Now().After(deadline):
			return nil, &LockError{LockFile: lock.path, Holder: readHolder(lock.path), Doing: "using"}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// own starts the service in this process, which holds the lock, and opens the socket
// for other processes.
func (f *Folder) own(l *lock, socket string, me Holder) (*session, error) {
	ln, err := f.o.network.listen(socket)
	if err != nil {
		return nil, errors.Join(home.Explain(err), l.release())
	}
	s := &session{lock: l, server: newServer(f.o.Errors)}
	s.server.Holder, s.server.Held = me, l.held
	if s.service, err = f.o.Serve(s.server); err != nil {
		return nil, errors.Join(err, ln.Close(), l.release())
	}
	s.listener = s.server.serve(ln, hello{Protocol: protocol, Identity: f.o.Identity, Holder: me}, s.removed, f.o.Logger)
	return s, nil
}

// maxSocketPath bounds the path of a Unix socket in bytes: macOS allows 103, Linux 107.
const maxSocketPath = 100

// socketPath returns the path of the socket of the owner of dir: socketName in dir or, if
// that path is too long, a hash of it in a private directory below temp.
func socketPath(dir, temp string) string {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(temp, fmt.Sprintf("cairn-%d", os.Getuid()), fmt.Sprintf("%x.sock", sum[:8]))
}
