package owner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/base/home"
	"cairn/internal/base/testutil"
)

// simFolder is a folder whose files hold numbers, which only grow.
type simFolder struct {
	*testutil.Chance
	dir  string
	calm atomic.Bool // no more faults
	// acknowledged are the numbers of the processes, by key.
	acknowledged [3]atomic.Int64

	mu      sync.Mutex
	files   map[string]int
	version int // of files
	open    map[*simService]bool
	sockets map[string]*simListener
}

// simProcess uses the folder until it is closed or killed. While it is stopped, what it
// sends does not leave and what it gets does not arrive.
type simProcess struct {
	sim     *simFolder
	name    string
	dead    atomic.Bool
	stopped atomic.Bool
	conns   sync.Map // *simConn
}

// simService is the service of a process that owns the folder.
type simService struct{ p *simProcess }

func (s *simService) Removed() bool { return false }

func (s *simService) Close() error {
	r := s.p.sim.Of(s.p.name, "close")
	time.Sleep(time.Duration(r.Int64N(int64(500 * time.Millisecond))))
	s.p.sim.mu.Lock()
	defer s.p.sim.mu.Unlock()
	delete(s.p.sim.open, s)
	return nil
}

type simPut struct {
	Key   string
	Value int
}

const (
	simPutOp Op[simPut, int, struct{}] = "put"
	simGetOp Op[string, int, struct{}] = "get"
)

// serve opens the files and registers the operations.
func (p *simProcess) serve(t *testing.T, server *Server) (Service, error) {
	s := &simService{p}
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	for other := range p.sim.open {
		if !other.p.dead.Load() {
			t.Errorf("seed %d: %s opens the files of %s", p.sim.Seed, p.name, other.p.name)
		}
	}
	p.sim.open[s] = true
	run := func(what string, fn func(files map[string]int) int) (int, error) {
		r := p.sim.Of(p.name, what)
		time.Sleep(time.Duration(r.Int64N(int64(200*time.Millisecond))) + 1)
		p.sim.mu.Lock()
		defer p.sim.mu.Unlock()
		if !p.sim.open[s] || p.dead.Load() {
			return 0, ErrEnded
		}
		return fn(p.sim.files), nil
	}
	simPutOp.Answer(server, func(_ context.Context, in simPut) (int, error) {
		return run("put", func(files map[string]int) int {
			p.sim.version++
			files[in.Key] = max(files[in.Key], in.Value)
			return files[in.Key]
		})
	})
	simGetOp.Answer(server, func(_ context.Context, key string) (int, error) {
		return run("get", func(files map[string]int) int { return files[key] })
	})
	return s, nil
}

// simView reads a copy of the files while their owner does not answer.
type simView struct {
	sim     *simFolder
	files   map[string]int
	version int
}

func (v *simView) Removed() bool {
	v.sim.mu.Lock()
	defer v.sim.mu.Unlock()
	return v.version != v.sim.version
}

func (v *simView) Close() error { return nil }

// view opens a copy of the files and registers the operation that reads.
func (p *simProcess) view(server *Server, _ *LockError) (Service, error) {
	p.sim.mu.Lock()
	defer p.sim.mu.Unlock()
	v := &simView{p.sim, maps.Clone(p.sim.files), p.sim.version}
	simGetOp.Answer(server, func(_ context.Context, key string) (int, error) {
		r := p.sim.Of(p.name, "view")
		time.Sleep(time.Duration(r.Int64N(int64(100*time.Millisecond))) + 1)
		return v.files[key], nil
	})
	return v, nil
}

// simListener is a socket in memory.
type simListener struct {
	owner *simProcess
	path  string
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *simListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *simListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *simListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// simConn is one end of a connection: it is slow, breaks, and does nothing while its
// process is stopped.
type simConn struct {
	net.Conn
	p *simProcess
}

func (c *simConn) pass(what string) error {
	r := c.p.sim.Of(c.p.name, what)
	time.Sleep(time.Duration(r.Int64N(int64(2*time.Millisecond))) + 1)
	for c.p.stopped.Load() && !c.p.dead.Load() {
		time.Sleep(time.Duration(r.Int64N(int64(10*time.Millisecond))) + 1)
	}
	if c.p.dead.Load() || !c.p.sim.calm.Load() && r.IntN(200) == 0 {
		c.Close()
		return io.ErrClosedPipe
	}
	return nil
}

func (c *simConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		err = c.pass("read")
	}
	return n, err
}

func (c *simConn) Write(b []byte) (int, error) {
	if err := c.pass("write"); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *simConn) Close() error {
	c.p.conns.Delete(c)
	return c.Conn.Close()
}

func (p *simProcess) network() network {
	return network{
		listen: func(path string) (net.Listener, error) {
			l := &simListener{owner: p, path: path, conns: make(chan net.Conn), done: make(chan struct{})}
			p.sim.mu.Lock()
			defer p.sim.mu.Unlock()
			p.sim.sockets[path] = l
			return l, nil
		},
		dial: func(ctx context.Context, path string) (net.Conn, error) {
			p.sim.mu.Lock()
			l := p.sim.sockets[path]
			p.sim.mu.Unlock()
			if l == nil {
				return nil, errors.New("no such socket")
			}
			near, far := net.Pipe()
			mine, theirs := &simConn{near, p}, &simConn{far, l.owner}
			p.conns.Store(mine, true)
			l.owner.conns.Store(theirs, true)
			select {
			case l.conns <- theirs:
				return mine, nil
			case <-l.done:
				return nil, errors.New("connection refused")
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

// kill ends a process at once: the system closes its connections and releases its lock,
// which goes on to name it.
func (p *simProcess) kill(f *Folder) {
	p.sim.mu.Lock()
	p.dead.Store(true)
	p.sim.mu.Unlock()
	for c := range p.conns.Range {
		c.(*simConn).Close()
	}
	f.mu.Lock()
	f.closed = true
	f.stop()
	if s := f.current; s != nil && s.listener != nil {
		s.listener.net.Close()
		_ = s.lock.file.Unlock()
	}
	f.mu.Unlock()
}

// TestOwnerSimulation opens a folder in several processes, stops, kills and closes them, and
// breaks connections. At most one has the files open for writing, no acknowledged number is
// lost, no read fails or returns an older number, and every call ends soon.
func TestOwnerSimulation(t *testing.T) {
	testutil.Simulate(t, func(t *testing.T, c *testutil.Chance) {
		s := &simFolder{Chance: c, dir: filepath.Join(t.TempDir(), "d"), files: map[string]int{}, open: map[*simService]bool{}, sockets: map[string]*simListener{}}
		ctx, stop := context.WithCancel(t.Context())
		var processes sync.WaitGroup
		var calmly [3]atomic.Int64 // calls that succeeded since the faults ended
		for i := range calmly {
			processes.Go(func() {
				for life := 0; ctx.Err() == nil; life++ {
					s.process(ctx, t, fmt.Sprint("process ", i, ", life ", life), i, &calmly[i])
				}
			})
		}
		time.Sleep(time.Minute)
		s.calm.Store(true)
		time.Sleep(30 * time.Second)
		stop()
		processes.Wait()
		for i := range calmly {
			if calmly[i].Load() == 0 {
				t.Errorf("seed %d: process %d had no answer in half a minute without a fault", c.Seed, i)
			}
		}
		for open := range maps.Keys(s.open) {
			if !open.p.dead.Load() {
				t.Errorf("seed %d: %s has the files open after its end", c.Seed, open.p.name)
			}
		}
	})
}

// process is one life of process i, which raises the number under its key.
func (s *simFolder) process(ctx context.Context, t *testing.T, name string, i int, calmly *atomic.Int64) {
	p := &simProcess{sim: s, name: name}
	r := s.Of(name)
	pause := func(limit time.Duration) { time.Sleep(time.Duration(r.Int64N(int64(limit))) + 1) }
	pause(2 * time.Second)
	f, err := Open(context.WithoutCancel(ctx), Options{
		Dir: s.dir, Make: func() error { return home.Private(s.dir) }, Command: name,
		Takeover: r.IntN(2) == 0, Serve: func(server *Server) (Service, error) { return p.serve(t, server) }, Fallback: p.view, network: p.network(),
	})
	if err != nil {
		s.check(t, name, err)
		return
	}
	ends := time.Now().Add(time.Duration(r.Int64N(int64(20 * time.Second))))
	killed := r.IntN(2) == 0
	for ctx.Err() == nil && (s.calm.Load() || time.Now().Before(ends)) {
		if !s.calm.Load() && r.IntN(15) == 0 {
			p.stopped.Store(true)
			pause(5 * time.Second)
			p.stopped.Store(false)
		}
		s.call(t, f, name, i, calmly)
		pause(500 * time.Millisecond)
	}
	if killed && !s.calm.Load() {
		p.kill(f)
	}
	if err := f.Close(); err != nil && !p.dead.Load() {
		t.Errorf("seed %d: %s: Close = %v", s.Seed, name, err)
	}
}

// call raises the number of process i, and reads that of another.
func (s *simFolder) call(t *testing.T, f *Folder, name string, i int, calmly *atomic.Int64) {
	began := time.Now()
	next := int(s.acknowledged[i].Load()) + 1
	_, err := simPutOp.Call(t.Context(), f, simPut{fmt.Sprint(i), next}, nil)
	if err == nil {
		s.acknowledged[i].Store(int64(next))
	}
	other := next % len(s.acknowledged)
	least := int(s.acknowledged[other].Load())
	if got, err := simGetOp.Call(t.Context(), f, fmt.Sprint(other), nil); err != nil || got < least {
		t.Errorf("seed %d: %s reads %d, %v, want at least %d", s.Seed, name, got, err, least)
	}
	if err == nil && s.calm.Load() {
		calmly.Add(1)
	}
	if err != nil {
		s.check(t, name, err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("seed %d: two calls of %s take %v: %v", s.Seed, name, took, err)
	}
}

// check checks that an error is one of an owner that is away, and that there may be such.
func (s *simFolder) check(t *testing.T, name string, err error) {
	_, held := errors.AsType[*LockError](err)
	if !held && !errors.Is(err, ErrEnded) {
		t.Errorf("seed %d: %s: %v, want an error about the owner", s.Seed, name, err)
	}
}
