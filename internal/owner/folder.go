// Package owner lets one process at a time own the files of a folder, which other
// processes use by asking it. It knows nothing about what the files hold.
//
// # Ownership
//
// The owner holds an exclusive lock on a file, which names it, and listens on a Unix
// socket. A process that does not get the lock becomes a client. When the owner
// ends, the next call of a client takes the lock and becomes the owner. Only the
// owner opens the files, so they need no locks of their own. The lock and the socket
// come first; a Service opens its files when an operation first needs them.
//
// # Operations
//
// An operation is an Op: a name with the types of its argument, its result, and the
// lines that report progress. A Service registers a function for each with
// Op.Handle. Op.Call runs it here when this process is the owner, and sends it to
// the owner otherwise; callers see no difference. Call asks again when the owner
// ends before it answers, so an operation must have the same effect when it runs
// twice. Errors keep their type when Options.Errors lists it.
//
// # An owner that hangs
//
// A process that is stopped keeps its lock. Clients get a *LockError within a
// second, which names the process and the command that ends it.
//
// # A folder that is removed
//
// Before every call, and once a second, the owner compares the lock it holds with
// the file at its path. When it was removed, the owner closes its files without
// writing to them and takes the folder again.
package owner

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"
)

// Options are what Open needs. Serve must be set.
type Options struct {
	// Dir holds the lock and the socket. Make makes it, before every attempt to own it.
	Dir  string
	Make func() error
	// Lock and Socket are the names of the lock's file and the socket in Dir.
	Lock, Socket string
	// Takeover makes a client the owner soon after the owner ends, and an owner own a
	// folder again soon after it was removed, without a call.
	Takeover bool
	// Command is how this process introduces itself, such as "cairn index".
	Command string
	// Identity describes the owner's service to its clients, such as its model.
	Identity map[string]string
	// Accept, unless nil, may refuse an owner by its identity.
	Accept func(h Holder, identity map[string]string) error
	// Errors are the error types that keep their type.
	Errors Kinds
	// Serve registers the operations on s and returns their service. It is called
	// whenever this process begins to hold the folder.
	Serve func(s *Server) (Service, error)
	// Check, unless nil, may refuse to work with the folder, before every call.
	Check func() error
	// Logger receives what happens in the background; nil is silent.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	network network // zero: Unix sockets
}

// network is how processes reach each other. A simulation has one of its own.
type network struct {
	listen func(path string) (net.Listener, error)
	dial   func(ctx context.Context, path string) (net.Conn, error)
}

// Folder is a folder that this process owns or whose owner it asks. It is safe for
// concurrent use.
type Folder struct {
	o Options

	mu      mutex
	current *session // nil before the first call, and after an owner ended
	closed  bool
	// refused is the owner that did not answer at refusedAt: calls that waited
	// meanwhile, or follow at once, get the same error.
	refused   *LockError
	refusedAt time.Time

	stop       context.CancelFunc
	supervisor sync.WaitGroup
}

// mutex is a lock that is held while a process waits for another. The virtual clock of a
// simulation stops while goroutines wait for a sync.Mutex.
type mutex chan struct{}

func (m mutex) Lock()   { m <- struct{}{} }
func (m mutex) Unlock() { <-m }

// session is one way into the folder: client, or the others. A session of Local has no
// lock and no listener.
type session struct {
	client *client

	server   *Server
	service  Service
	lock     *lock
	listener *listener
}

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the folder is closed")

// Open connects to the owner of a folder, or makes this process its owner.
func Open(ctx context.Context, o Options) (*Folder, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
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

// Local returns a folder whose operations run in this process, without files that need an
// owner. serve registers them.
func Local(serve func(*Server) Service) *Folder {
	s := &session{server: newServer(nil)}
	s.service = serve(s.server)
	return &Folder{mu: make(mutex, 1), current: s}
}

// Close ends the service, or the connection to the owner.
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

// attempts bounds how often a call follows the folder to a new owner. Owners that
// run one command last a fraction of a second.
const attempts = 50

// Call runs the operation where the files are. ahead may be nil; it is called from
// the caller's goroutine while the owner is another process.
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
			out, err = receive(ctx, s.client, op, in, ahead)
			if errors.Is(err, errSilent) {
				f.drop(s)
				return out, f.refuse(s.client.owner.Holder)
			}
		} else if fn, ok := s.server.local[string(op)].(func(context.Context, In) (Out, error)); ok {
			out, err = fn(ctx, in)
		} else {
			out, err = s.server.local[string(op)].(func(context.Context, In, func(Line)) (Out, error))(ctx, in, ahead)
		}
		if !errors.Is(err, ErrEnded) || n == attempts {
			return out, err
		}
		f.drop(s)
	}
}

// Owns reports whether this process owns the folder.
func (f *Folder) Owns() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current != nil && f.current.client == nil
}

// session returns the way into the folder, and finds one where there is none.
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
	if f.refused != nil && time.Since(f.refusedAt) < time.Second {
		return nil, f.refused
	}
	s, err := f.connect(ctx)
	f.refused, _ = errors.AsType[*LockError](err)
	f.refusedAt = time.Now()
	if err != nil {
		return nil, err
	}
	f.current = s
	return s, nil
}

// removed reports whether s has to be given up because the folder was removed.
func (s *session) removed() bool {
	return s.lock != nil && (!s.lock.held() || s.service.Removed())
}

// close waits for answers in flight, closes the files and releases the lock.
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

// drop gives s up, unless another goroutine has done so.
func (f *Folder) drop(s *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(s)
}

// forget is drop with f.mu held.
func (f *Folder) forget(s *session) {
	if f.current != s {
		return
	}
	f.current = nil
	if err := s.close(); err != nil {
		f.o.Logger.Debug("closing a folder", "dir", f.o.Dir, "error", err)
	}
}

// refuse returns the error for an owner that stopped answering.
func (f *Folder) refuse(h Holder) *LockError {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = &LockError{LockFile: filepath.Join(f.o.Dir, f.o.Lock), Holder: h, Doing: "using", Silent: true}
	f.refusedAt = time.Now()
	return f.refused
}

// superviseEvery is how often a folder is looked at without a call.
const superviseEvery = time.Second

// supervise gives up a folder soon after it was removed, so that other processes can
// have it. With Takeover it then takes the folder again, and takes the place of an
// owner that ended.
func (f *Folder) supervise(ctx context.Context) {
	tick := time.NewTicker(superviseEvery)
	defer tick.Stop()
	l := newLock(filepath.Join(f.o.Dir, f.o.Lock))
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		f.mu.Lock()
		s := f.current
		if s != nil && (s.removed() || f.o.Takeover && s.client != nil && l.free()) {
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
