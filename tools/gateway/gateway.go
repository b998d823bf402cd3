// Package gateway calls tools of other MCP servers for the clients of cairn.
//
// A server starts at its first call and ends after a time without calls. The gateway trusts
// no server. It bounds the time and the size of an answer. A server receives only a few
// variables of the environment, and those that the user names. A tool is called only if its
// definition is the one that the user has approved.
package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"cairn/internal/toolbox/catalog"
	"cairn/tools/client"
)

// Options configures New. Zero fields select the defaults.
type Options struct {
	Version string // of cairn
	// Root is the folder in which commands run; "" is that of this process.
	Root string
	// Audit is the path of the log of calls; "" logs none.
	Audit string
	// Timeout bounds a call; 0 means two minutes. Idle is the time without calls after which
	// a server ends; 0 means ten minutes. Probe is the time in which a server that has
	// exceeded a timeout must answer a ping; 0 means five seconds.
	Timeout, Idle, Probe time.Duration
	// Logger receives what happens to the servers; nil discards it.
	Logger *slog.Logger
	// Now is the clock of the restarts; nil is time.Now.
	Now func() time.Time
}

// Gateway holds the running servers of one process. It is safe for concurrent use.
type Gateway struct {
	store *Store
	o     Options

	mu     sync.Mutex
	live   map[string]*live // by the path of the server's log
	closed bool
}

// New returns a gateway to the servers of a store.
func New(store *Store, o Options) *Gateway {
	o.Timeout, o.Idle, o.Probe = cmp.Or(o.Timeout, 2*time.Minute), cmp.Or(o.Idle, 10*time.Minute), cmp.Or(o.Probe, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gateway{store: store, o: o, live: map[string]*live{}}
}

// Store returns the servers.
func (g *Gateway) Store() *Store { return g.store }

// Configured reports whether there is a server.
func (g *Gateway) Configured() bool {
	all, err := g.store.All()
	return err == nil && len(all) > 0
}

// Close ends all servers.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.closed = true
	all := g.live
	g.live = map[string]*live{}
	g.mu.Unlock()
	var wg sync.WaitGroup
	for _, l := range all {
		wg.Go(func() { l.end() })
	}
	wg.Wait()
}

// ReadResource is the Tool of a Call that reads a resource. Its Arguments are the URI.
const ReadResource = "resources/read"

// Call is one call of a tool.
type Call struct {
	Server, Tool string // the bare name
	Arguments    []byte // a JSON object
	Timeout      time.Duration
	Peer         Peer
}

// Error reports a call without a result. Outcome is its word in the log of calls. Only after
// "lost" may the tool have run.
type Error struct {
	Outcome string
	Err     error
}

// Outcomes: of a server that does not run, of one that gave no answer, and of a name that no
// server or tool has.
const (
	Down    = "down"
	Lost    = "lost"
	Unknown = "unknown"
)

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func refuse(outcome, format string, args ...any) *Error {
	return &Error{outcome, fmt.Errorf(format, args...)}
}

// Call calls a tool. Its errors are an *Error, a *catalog.ArgumentError, and those of the
// context and of Confirm. The gateway never repeats a call.
func (g *Gateway) Call(ctx context.Context, c Call) (r *mcp.CallToolResult, err error) {
	began := g.o.Now()
	defer func() { g.audit(began, c, r, err) }()
	server, err := g.store.Server(c.Server)
	if err != nil {
		return nil, err
	}
	l, err := g.server(server)
	if err != nil {
		return nil, err
	}
	if c.Arguments = bytes.TrimSpace(c.Arguments); len(c.Arguments) == 0 {
		c.Arguments = []byte("{}")
	}
	tool, session, err := l.approved(ctx, c.Tool)
	if err != nil {
		return nil, err
	}
	if err := tool.check(c.Arguments); err != nil {
		return nil, err
	}
	if asked, err := permit(ctx, &server, &tool.Tool, c); err != nil {
		return nil, err
	} else if asked { // meanwhile the server may have ended or changed
		if _, session, err = l.approved(ctx, c.Tool); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, g.o.Timeout))
	defer cancel()
	return l.call(ctx, session, c)
}

// server returns the running state of a server.
func (g *Gateway) server(s Server) (*live, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errors.New("cairn ends")
	}
	key := g.store.file(&s, ".log")
	l := g.live[key]
	if l == nil {
		l = &live{gateway: g, gate: semaphore.NewWeighted(1), calls: map[string]*running{}}
		g.live[key] = l
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = s // its permissions may have changed
	return l, nil
}

// Login connects to a server with OAuth. If it requires a login, show receives the page on which
// the user logs in.
func (g *Gateway) Login(ctx context.Context, s Server, show func(url string)) error {
	session, err := client.Connect(ctx, client.Target{URL: s.URL, Header: s.header(), OAuth: g.store.login(&s, show), Version: g.o.Version}, nil)
	if err == nil {
		session.Close()
	}
	return err
}

// Definitions lists the tools of a server now, without a check of their approval.
func (g *Gateway) Definitions(ctx context.Context, s Server) (*catalog.Batch, error) {
	l, err := g.server(s)
	if err != nil {
		return nil, err
	}
	session, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	return l.definitions(ctx, session, s.Name)
}

// definitions lists the tools of a server in a bounded time.
func (l *live) definitions(ctx context.Context, session *client.Session, name string) (*catalog.Batch, error) {
	limit := min(l.gateway.o.Timeout, client.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the server %s took longer than %v to list its tools", name, limit))
	defer cancel()
	batch, err := catalog.FromServer(ctx, session, name)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return batch, err
}

// passed are the variables of the environment that every command receives. Those with
// secrets are among the others.
var passed = []string{
	"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// environment returns the environment of a server's command.
func (s *Server) environment() []string {
	env := []string{}
	for _, name := range slices.Concat(passed, s.Env) {
		if value, ok := s.variable(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (s *Server) variable(name string) (value string, ok bool) {
	if value, ok = s.Values[name]; !ok {
		value, ok = os.LookupEnv(name)
	}
	return value, ok
}

// header returns the headers that the URL requires.
func (s *Server) header() http.Header {
	header := http.Header{}
	for name, variable := range s.Headers {
		value, _ := s.variable(variable)
		header.Set(name, value)
	}
	return header
}

// Missing returns the variables that a server needs and the environment lacks.
func (s *Server) Missing() (names []string) {
	for _, name := range s.variables() {
		if _, ok := s.variable(name); !ok {
			names = append(names, name)
		}
	}
	return names
}

// maxQuestion bounds the arguments in a question in bytes.
const maxQuestion = 1000
