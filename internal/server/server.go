package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/metrics"
	"cairn/internal/observe"
	"cairn/internal/token"
	"cairn/internal/workspace"
	"cairn/tools"
)

// Workspace is a folder that is served under its name.
type Workspace struct {
	// Name is what it is called in addresses, see ParseName.
	Name string
	// Engine is the folder itself.
	Engine tools.Engine
	// Tools are the tools on Engine.
	Tools *tools.Server
	// Degraded returns what the last search was missing, such as vectors; nil means nothing.
	Degraded func() []string
}

// name is what a workspace may be called: a part of a path that needs no escapes.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// ParseName checks the name of a workspace.
func ParseName(s string) (string, error) {
	if !name.MatchString(s) {
		return "", fmt.Errorf("%q cannot name a workspace, want 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning with a letter or digit", s)
	}
	return s, nil
}

// Options are the knobs of New. Nil and the zero value mean the defaults.
type Options struct {
	// Logger receives what goes wrong beside the answers; nil is silent.
	Logger *slog.Logger
	// Tokens are asked for with every request; nil lets everybody do everything.
	Tokens *token.Store
	// Listener is told of requests; nil is nobody.
	Listener observe.Listener
	// Metrics are told at /metrics; nil tells none.
	Metrics *metrics.Metrics
	// Hosts are names the server is called by, beside loopback's, or beside
	// addresses where it listens on a network.
	Hosts []string
	// MaxRequests bounds the requests worked on at once; 0 is 256.
	MaxRequests int
	// Grace is how long requests may go on once the server is told to stop; 0 is a second.
	Grace time.Duration
}

// Server answers over HTTP. It is safe for concurrent use once it serves.
type Server struct {
	options    Options
	workspaces []*served
	byName     map[string]*served
	own        *http.ServeMux // what belongs to no workspace
	working    chan struct{}  // one for each request worked on
}

// served is a workspace with what answers for it.
type served struct {
	Workspace
	mcp *tools.HTTP
	// named answers below /w/NAME, bare at the root, for the first workspace
	// only. They are apart so that no path of one workspace, whatever it is
	// made of, falls through to what another one has mounted.
	named, bare *http.ServeMux
	mounted     []string // patterns of Handle
}

// New returns a server of workspaces. The first one is also served without its
// name. Stop with Close when it was never served.
func New(workspaces []Workspace, o *Options) (*Server, error) {
	if len(workspaces) == 0 {
		return nil, errors.New("no workspace to serve")
	}
	s := &Server{byName: map[string]*served{}, own: http.NewServeMux()}
	if o != nil {
		s.options = *o
	}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	if s.options.Grace == 0 {
		s.options.Grace = time.Second
	}
	if s.options.MaxRequests == 0 {
		s.options.MaxRequests = 256
	}
	s.working = make(chan struct{}, s.options.MaxRequests)
	for _, w := range workspaces {
		if _, err := ParseName(w.Name); err != nil {
			return nil, err
		}
		if s.byName[w.Name] != nil {
			return nil, fmt.Errorf("two workspaces are called %q", w.Name)
		}
		v := &served{Workspace: w, mcp: w.Tools.HTTP(&tools.HTTPOptions{Caller: toolCaller}), named: http.NewServeMux()}
		if len(s.workspaces) == 0 {
			v.bare = http.NewServeMux()
		}
		v.handle("/mcp", forReaders, v.mcp)
		v.api()
		v.describe()
		s.workspaces = append(s.workspaces, v)
		s.byName[w.Name] = v
	}
	s.routes()
	return s, nil
}

// routes are the addresses of the server itself.
func (s *Server) routes() {
	add := func(pattern string, h http.Handler) { s.own.Handle(pattern, routed(pattern, "", h)) }
	add("GET /healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") }))
	add("GET /readyz", http.HandlerFunc(s.ready))
	if s.options.Metrics != nil {
		add("GET /metrics", s.metrics())
	}
}

// ServeHTTP implements http.Handler: it answers every request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.options.Listener == nil {
		s.answer(w, r)
		return
	}
	s.observed(w, r)
}

// answer checks a request and hands it to whom it is for.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	if !s.admitted(w, r) {
		return
	}
	// A stream is held open for hours and has bounds of its own.
	if stream := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/mcp"); !stream {
		select {
		case s.working <- struct{}{}:
			defer func() { <-s.working }()
		default:
			w.Header().Set("Retry-After", "1")
			writeError(w, http.StatusServiceUnavailable, &tools.Failure{Code: tools.CodeRateLimit, Message: fmt.Sprintf("%d requests are being worked on already", cap(s.working))})
			return
		}
	}
	if climbs(r.URL.Path) {
		writeText(w, http.StatusNotFound, "no such address")
		return
	}
	if r.URL.Path == "/healthz" { // for whoever watches over the process
		s.own.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/readyz" && s.options.Tokens != nil {
		if _, given := secretOf(r); !given {
			s.onlyReady(w, r)
			return
		}
	}
	c, ok := s.identify(w, r)
	if !ok {
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
	if _, pattern := s.own.Handler(r); pattern != "" {
		s.own.ServeHTTP(w, r)
		return
	}
	v, mux := s.workspaces[0], s.workspaces[0].bare
	if rest, ok := strings.CutPrefix(r.URL.Path, "/w/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		// Which workspaces there are is nobody's business who may not use them.
		if v = s.byName[name]; v == nil || !c.permits(name) {
			noWorkspace(w, name)
			return
		}
		mux = v.named
	} else if !c.permits(v.Name) {
		writeError(w, http.StatusNotFound, &tools.Failure{Code: tools.CodeNotFound, Message: "this token is for workspaces that have to be named: /w/NAME" + r.URL.Path})
		return
	}
	mux.ServeHTTP(w, r)
}

// climbs reports whether a path, decoded, has a part "..": no client of good
// will sends one, and what is mounted need not think of it.
func climbs(path string) bool { return slices.Contains(strings.Split(path, "/"), "..") }

func noWorkspace(w http.ResponseWriter, name string) {
	writeError(w, http.StatusNotFound, &tools.Failure{Code: tools.CodeNotFound, Message: fmt.Sprintf("no workspace %q is served here", name)})
}

// Handle adds a handler to a workspace: for pattern, as http.ServeMux takes it
// but without a host, below /w/NAME and, for the first workspace, at the root
// as well. Requests come without that prefix, which Prefix tells, and only from
// those who may use the workspace. It is called before Serve. A pattern that
// conflicts with another one is an error. Where tokens are asked for, one that may
// only read is good for GET, HEAD and OPTIONS.
func (s *Server) Handle(workspace, pattern string, h http.Handler) (err error) {
	v := s.byName[workspace]
	if v == nil {
		return fmt.Errorf("no workspace %q is served here", workspace)
	}
	defer func() {
		if bad := recover(); bad != nil { // the mux knows no other way
			err = fmt.Errorf("mounting %q: %v", pattern, bad)
		}
	}()
	v.handle(pattern, byMethod, h)
	v.mounted = append(v.mounted, pattern)
	return nil
}

type prefixKey struct{}

// Prefix is what was taken off the path of a request to a mounted handler:
// "/w/NAME", or "" at the root. Links of its answer begin with it.
func Prefix(r *http.Request) string {
	prefix, _ := r.Context().Value(prefixKey{}).(string)
	return prefix
}

// handle mounts h below the workspace's name and, for the first one, at the root.
func (v *served) handle(pattern string, a access, h http.Handler) {
	h = routed(pattern, v.Name, scoped(a, h))
	method, path := "", pattern
	if m, p, ok := strings.Cut(pattern, " "); ok {
		method, path = m+" ", strings.TrimLeft(p, " ")
	}
	prefix := "/w/" + v.Name
	v.named.Handle(method+prefix+path, http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), prefixKey{}, prefix)))
	})))
	if v.bare != nil {
		v.bare.Handle(pattern, h)
	}
}

// The limits of a connection.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second // of a whole request
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10 // bytes
)

// Serve answers on a listener until ctx ends, and then gives requests in flight
// the time of Options.Grace. It closes the listener, the sessions and the
// streams; the workspaces stay open.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	select {
	case err := <-ended:
		s.Close()
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Grace)
	defer cancel()
	// The streams would go on for ever, so they end first.
	s.Close()
	err := web.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.options.Logger.Warn("ending requests that took longer", "grace", s.options.Grace)
		err = web.Close()
	}
	<-ended // http.ErrServerClosed
	return err
}

// Close ends the sessions and streams of every workspace.
func (s *Server) Close() {
	var wg sync.WaitGroup
	for _, v := range s.workspaces {
		wg.Go(v.mcp.Close)
	}
	wg.Wait()
}

// readiness is what /readyz says of a workspace.
type readiness struct {
	Name     string   `json:"name"`
	Ready    bool     `json:"ready"`
	State    string   `json:"state"`
	Degraded []string `json:"degraded,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

// readyWait bounds the wait for one workspace's state.
const readyWait = 2 * time.Second

// ready answers 200 when every workspace the caller may use can be searched,
// else 503.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	all := s.allReady(r.Context(), callerOf(r.Context()))
	writeJSON(w, readyCode(all), map[string]any{"ready": readyCode(all) == http.StatusOK, "workspaces": all})
}

// onlyReady answers who has no token: whether all is well, and no names.
func (s *Server) onlyReady(w http.ResponseWriter, r *http.Request) {
	code := readyCode(s.allReady(r.Context(), caller{}))
	writeJSON(w, code, map[string]any{"ready": code == http.StatusOK})
}

func (s *Server) allReady(ctx context.Context, c caller) []readiness {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	all := []readiness{}
	for _, v := range s.workspaces {
		if c.permits(v.Name) {
			all = append(all, v.readiness(ctx))
		}
	}
	return all
}

func readyCode(all []readiness) int {
	if slices.ContainsFunc(all, func(r readiness) bool { return !r.Ready }) {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

func (v *served) readiness(ctx context.Context) readiness {
	out := readiness{Name: v.Name}
	st, err := v.Engine.Status(ctx)
	if err != nil {
		out.State, out.Reason = "unknown", oneLine(err.Error())
		return out
	}
	out.State, out.Reason = st.State, st.Problem
	out.Ready = answers(st)
	if v.Degraded != nil {
		out.Degraded = v.Degraded()
	}
	return out
}

// answers reports whether a workspace can be searched: at once by keyword,
// while vectors are still being made.
func answers(st *workspace.Status) bool {
	switch st.State {
	case "ready", "partial":
		return true
	case "building":
		return st.Files > 0
	}
	return false
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
