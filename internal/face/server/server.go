package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"cairn/internal/base/metrics"
	"cairn/internal/base/observe"
	"cairn/internal/base/owner"
	"cairn/internal/base/quota"
	"cairn/internal/face/token"
	"cairn/internal/folder/index"
	"cairn/tools"
)

// Workspace is a folder to serve.
type Workspace struct {
	// Name is its name in paths, see ParseName.
	Name string
	// Folder answers for the folder.
	Folder *owner.Folder
	// Tools are the tools that use Folder.
	Tools *tools.Server
	// Degraded returns the parts that the index lacked for the last search, such as
	// "vectors". If it is nil, /readyz does not report them.
	Degraded func() []string
}

// name matches the names of workspaces, which need no escapes in a path.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// ParseName checks the name of a workspace.
func ParseName(s string) (string, error) {
	if !name.MatchString(s) {
		return "", fmt.Errorf("%q cannot name a workspace, want 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning with a letter or digit", s)
	}
	return s, nil
}

// Options configures New. Nil and zero fields select the defaults.
type Options struct {
	// Logger receives errors that no answer reports; nil discards them.
	Logger *slog.Logger
	// Tokens checks the token of every request. If it is nil, requests need no token, and
	// every caller may do everything.
	Tokens *token.Store
	// Listener observes the requests; nil means none.
	Listener observe.Listener
	// Metrics are served at /metrics. If it is nil, that path answers 404.
	Metrics *metrics.Metrics
	// Hosts are additional host names to accept, see Server.hostAllowed.
	Hosts []string
	// MaxRequests bounds the concurrent requests; 0 means 256. One client may have a
	// quarter of them.
	MaxRequests int
	// MaxWait bounds how long a request waits if there are too many; 0 means 5 s.
	MaxWait time.Duration
	// NoRateLimit disables the rate limits.
	NoRateLimit bool
}

// Server is an HTTP server of workspaces. It is safe for concurrent use after the last call
// of Handle.
type Server struct {
	options    Options
	workspaces []*served
	byName     map[string]*served
	own        *http.ServeMux // paths that belong to no workspace
	limits     *limits
}

// served is a workspace with its handlers.
type served struct {
	Workspace
	mcp *tools.HTTP
	// named serves the paths below /w/NAME, and bare those at the root. bare is nil except
	// for the first workspace. With separate muxes, no path of one workspace reaches a
	// handler of another.
	named, bare *http.ServeMux
	mounted     []string // the patterns passed to Handle
}

// New returns a server of workspaces. It serves the first one at the root, too. The caller
// must call Serve or Close.
func New(workspaces []Workspace, o *Options) (*Server, error) {
	if len(workspaces) == 0 {
		return nil, errors.New("no workspace to serve")
	}
	s := &Server{byName: map[string]*served{}, own: http.NewServeMux(), options: *cmp.Or(o, &Options{})}
	s.options.Logger = cmp.Or(s.options.Logger, slog.New(slog.DiscardHandler))
	s.options.MaxRequests = cmp.Or(s.options.MaxRequests, 256)
	s.options.MaxWait = cmp.Or(s.options.MaxWait, 5*time.Second)
	share := max(1, s.options.MaxRequests/clientShare)
	s.limits = &limits{
		requests:  quota.New(share, s.options.MaxRequests),
		queue:     quota.New(queueLength*share, queueLength*s.options.MaxRequests),
		wait:      s.options.MaxWait,
		streams:   quota.New(maxStreams/clientShare, maxStreams),
		unlimited: s.options.NoRateLimit,
	}
	s.limits.rates, _ = lru.New[string, *rate.Limiter](maxRates) // fails only for a size of 0
	for _, w := range workspaces {
		if _, err := ParseName(w.Name); err != nil {
			return nil, err
		}
		if s.byName[w.Name] != nil {
			return nil, fmt.Errorf("two workspaces are called %q", w.Name)
		}
		v := &served{Workspace: w, mcp: w.Tools.HTTP(toolCaller), named: http.NewServeMux()}
		if len(s.workspaces) == 0 {
			v.bare = http.NewServeMux()
		}
		v.handle("/mcp", v.mcp)
		v.api()
		s.workspaces = append(s.workspaces, v)
		s.byName[w.Name] = v
	}
	own := func(pattern string, h http.Handler) { s.own.Handle(pattern, routed(pattern, "", h)) }
	own("GET /healthz", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "ok", http.StatusOK) }))
	own("GET /readyz", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ready(w, r, true) }))
	if s.options.Metrics != nil { // those of the process and of the workspaces that the caller may use
		own("GET /metrics", s.options.Metrics.Handler(func(r *http.Request, workspace string) bool { return callerOf(r.Context()).permits(workspace) }))
	}
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(under http.ResponseWriter, r *http.Request) {
	w := &answerWriter{ResponseWriter: under, control: http.NewResponseController(under)}
	defer w.end()
	w.extend() // the deadline of the previous request still applies to this connection
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.TLS != nil {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	if s.options.Listener == nil {
		s.answer(w, r)
		return
	}
	s.observed(w, r)
}

// answer checks a request and passes it to its handler.
func (s *Server) answer(w *answerWriter, r *http.Request) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.Logger.Error("request panicked", "id", observe.ID(r.Context()), "cause", cause, "stack", string(debug.Stack()))
			if w.code != 0 {
				panic(http.ErrAbortHandler) // the client notices that the answer is incomplete
			}
			refuse(w, r, http.StatusInternalServerError, &tools.Failure{Code: tools.CodeInternal, Message: fmt.Sprintf("a defect of cairn ended this request: %v", cause)})
		}
	}()
	why := ""
	if !s.hostAllowed(r) {
		why = fmt.Sprintf("this server is not called %q; allow the name with --allow-host", Hostname(r.Host))
	} else if !originAllowed(r) {
		why = "requests from pages of other sites are refused; a proxy has to forward the header Host, with the port"
	}
	if why != "" {
		refuse(w, r, http.StatusForbidden, &tools.Failure{Code: tools.CodeInvalidParams, Message: why})
		return
	}
	// Refuse a decoded path with ".." before it reaches a mounted handler.
	if slices.Contains(strings.Split(r.URL.Path, "/"), "..") {
		http.Error(w, "no such address", http.StatusNotFound)
		return
	}
	// Monitors request /healthz without a token. It has no limits.
	if r.URL.Path == "/healthz" {
		s.own.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == "/login" {
		s.login(w, r)
		return
	}
	if r.URL.Path == "/readyz" && s.options.Tokens != nil {
		if _, sent := secretOf(r); !sent {
			s.ready(w, r, false)
			return
		}
	}
	c, ok := s.identify(w, r)
	if !ok {
		return
	}
	if call, ok := r.Context().Value(callKey{}).(*observe.Call); ok {
		call.Token = c.token.Name
		r.Header.Set(observe.TokenHeader, call.Token)
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
	if r.URL.Path != "/readyz" {
		client := quota.Client(c.token.ID, r.RemoteAddr)
		leave, ok := s.limits.enter(w, r, client)
		if !ok {
			return
		}
		defer leave()
		if !s.limits.allow(w, r, client) {
			return
		}
	}
	if _, pattern := s.own.Handler(r); pattern != "" {
		s.own.ServeHTTP(w, r)
		return
	}
	v, mux := s.workspaces[0], s.workspaces[0].bare
	if rest, ok := strings.CutPrefix(r.URL.Path, "/w/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		// Do not reveal the names of workspaces to callers without access.
		if v = s.byName[name]; v == nil || !c.permits(name) {
			refuse(w, r, http.StatusNotFound, &tools.Failure{Code: tools.CodeNotFound, Message: fmt.Sprintf("no workspace %q is served here", name)}, s.Permitted(r)...)
			return
		}
		mux = v.named
	} else if !c.permits(v.Name) {
		if all := s.Permitted(r); r.URL.Path == "/" && len(all) > 0 {
			http.Redirect(w, r, "/w/"+all[0].Name+"/", http.StatusSeeOther)
			return
		}
		refuse(w, r, http.StatusNotFound, &tools.Failure{Code: tools.CodeNotFound, Message: "this token requires the name of a workspace in the path: /w/NAME" + r.URL.Path}, s.Permitted(r)...)
		return
	}
	mux.ServeHTTP(w, r)
}

// Handle mounts a handler below /w/NAME of a workspace and, for the first workspace, at the
// root. pattern is a pattern of http.ServeMux without a host. Like http.ServeMux, Handle panics if
// it conflicts with another pattern. The handler receives paths without the prefix, see Prefix,
// and only requests that the token of the caller permits: with the scope read only GET, HEAD
// and OPTIONS. Handle must be called before Serve.
func (s *Server) Handle(workspace, pattern string, h http.Handler) {
	v := s.byName[workspace]
	v.handle(pattern, scoped(h))
	v.mounted = append(v.mounted, pattern)
}

type prefixKey struct{}

// Prefix returns the prefix that was removed from the path of a request to a mounted
// handler: "/w/NAME", or "" at the root. Links in the answer must start with the prefix.
func Prefix(r *http.Request) string {
	prefix, _ := r.Context().Value(prefixKey{}).(string)
	return prefix
}

// Permitted returns the workspaces that the sender of a request may use, in the order of New.
func (s *Server) Permitted(r *http.Request) (all []Workspace) {
	for _, v := range s.workspaces {
		if callerOf(r.Context()).permits(v.Name) {
			all = append(all, v.Workspace)
		}
	}
	return all
}

// MayWrite reports whether the sender of a request to a mounted handler may change
// something.
func MayWrite(r *http.Request) bool { return callerOf(r.Context()).mayWrite() }

// handle mounts h without a check of the scope.
func (v *served) handle(pattern string, h http.Handler) {
	h = routed(pattern, v.Name, h)
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
	// grace bounds the time to finish requests at shutdown.
	grace = time.Second
)

// Serve serves a listener until ctx ends, and then waits for requests in progress, for at
// most grace. It closes the listener, the sessions and the streams, but not the workspaces.
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
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	// Shutdown waits for streams, which do not end by themselves.
	s.Close()
	err := web.Shutdown(ending)
	if errors.Is(err, context.DeadlineExceeded) {
		s.options.Logger.Warn("closing connections with unfinished requests", "grace", grace)
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

// readiness is the state of a workspace in the answer of /readyz.
type readiness struct {
	Name     string   `json:"name"`
	Ready    bool     `json:"ready"`
	State    string   `json:"state"`
	Degraded []string `json:"degraded,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

// readyWait bounds the wait for the states of all workspaces.
const readyWait = 2 * time.Second

// ready answers 200 if every workspace that the caller may use can be searched, and 503
// otherwise. Callers without a token do not receive the names of workspaces.
func (s *Server) ready(w http.ResponseWriter, r *http.Request, named bool) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWait)
	defer cancel()
	all, code := []readiness{}, http.StatusOK
	for _, v := range s.workspaces {
		if named && !callerOf(ctx).permits(v.Name) {
			continue
		}
		state := v.readiness(ctx)
		if all = append(all, state); !state.Ready {
			code = http.StatusServiceUnavailable
		}
	}
	answer := map[string]any{"ready": code == http.StatusOK}
	if named {
		answer["workspaces"] = all
	}
	writeJSON(w, code, answer)
}

func (v *served) readiness(ctx context.Context) readiness {
	out := readiness{Name: v.Name, State: "unknown"}
	st, err := index.StatusOp.Call(ctx, v.Folder, index.StatusRequest{}, nil)
	if err != nil {
		out.Reason = strings.Join(strings.Fields(err.Error()), " ")
		return out
	}
	out.State, out.Reason, out.Ready = st.State, st.Problem, searchable(st)
	if v.Degraded != nil {
		out.Degraded = v.Degraded()
	}
	return out
}

// searchable reports whether a workspace can be searched, at least by keyword.
func searchable(st *index.Status) bool {
	switch st.State {
	case "ready", "partial":
		return true
	case "building":
		return st.Files > 0
	}
	return false
}
