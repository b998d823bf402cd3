package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/token"
	"cairn/tools"
)

// Everything that decides whether a request is answered at all, in this order:
// the name it was sent to, the page it came from, the room there is, the token,
// the workspace, the scope.

// hostAllowed reports whether a request was meant for this server by the name
// it used. A page elsewhere can make a browser believe that its own name is
// this machine's address (DNS rebinding), but not that an address is: so
// addresses are taken where the server is on a network, and loopback names
// where it is not. Further names are allowed by Options.Hosts.
func (s *Server) hostAllowed(r *http.Request) bool {
	host := hostname(r.Host)
	if slices.ContainsFunc(s.options.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && !local.IP.IsLoopback() {
		return err == nil || host == "localhost"
	}
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// hostname is a Host header without its port and brackets.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// originAllowed reports whether a request comes from no page, or from one of
// this server. Browsers name the page in Origin where it matters, and its
// relation in Sec-Fetch-Site; following a link from elsewhere is allowed.
func originAllowed(r *http.Request) bool {
	if origin := r.Header.Values("Origin"); len(origin) > 0 {
		u, err := url.Parse(origin[0])
		return err == nil && len(origin) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && !strings.Contains(r.URL.Path, "/api/")
}

// caller is who sent a request; without tokens everybody may do everything.
type caller struct {
	token token.Token
	known bool // a token was asked for and given
}

func (c caller) permits(workspace string) bool { return !c.known || c.token.Permits(workspace) }
func (c caller) mayWrite() bool                { return !c.known || c.token.MayWrite() }

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// toolCaller tells the tools who sent a request.
func toolCaller(r *http.Request) (tools.Caller, bool) {
	c := callerOf(r.Context())
	return tools.Caller{ID: c.token.ID, MayWrite: c.token.MayWrite()}, c.known
}

// identify finds the caller of a request, or answers 401.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) (caller, bool) {
	if s.options.Tokens == nil {
		return caller{}, true
	}
	secret, given := secretOf(r)
	why := "this server wants a token: Authorization: Bearer cairn_...; `cairn token new` makes one"
	challenge := `Bearer realm="cairn"`
	if given {
		t, err := s.options.Tokens.Check(secret)
		if err == nil {
			return caller{t, true}, true
		}
		if !errors.Is(err, token.ErrUnknown) {
			s.options.Logger.Error("checking a token", "error", err)
			writeError(w, http.StatusInternalServerError, &tools.Failure{Code: tools.CodeInternal, Message: "the tokens cannot be read; the server's log says why"})
			return caller{}, false
		}
		why, challenge = "this token is unknown, revoked or expired", challenge+`, error="invalid_token"`
	}
	w.Header().Add("WWW-Authenticate", challenge)
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		// A browser asks its user then, and the password is the token.
		w.Header().Add("WWW-Authenticate", `Basic realm="cairn", charset="UTF-8"`)
	}
	writeError(w, http.StatusUnauthorized, &tools.Failure{Code: tools.CodeInvalidParams, Message: why})
	return caller{}, false
}

// secretOf is the token a request carries: as a bearer token, or as the
// password of basic authentication for browsers.
func secretOf(r *http.Request) (string, bool) {
	if _, password, ok := r.BasicAuth(); ok {
		return password, true
	}
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(secret), true
}

// access says who may use what is mounted under a pattern.
type access int

const (
	// byMethod lets readers GET, HEAD and OPTIONS, and writers do the rest.
	byMethod access = iota
	// forReaders is for what changes nothing whatever the method, or checks by itself.
	forReaders
)

// scoped answers 403 where a request would change something and its caller may not.
func scoped(a access, h http.Handler) http.Handler {
	if a == forReaders {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
		default:
			if !callerOf(r.Context()).mayWrite() {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
				writeError(w, http.StatusForbidden, &tools.Failure{Code: tools.CodeInvalidParams, Message: fmt.Sprintf("%s %s changes something and this token may only read; make one with `cairn token new --scope write`", r.Method, r.URL.Path)})
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// admitted runs the checks before routing; false when it has answered.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request) bool {
	why := ""
	switch {
	case !s.hostAllowed(r):
		why = fmt.Sprintf("this server is not called %q; allow the name with --allow-host", hostname(r.Host))
	case !originAllowed(r):
		why = "requests from pages of other sites are refused"
	}
	if why == "" {
		return true
	}
	writeError(w, http.StatusForbidden, &tools.Failure{Code: tools.CodeInvalidParams, Message: why})
	return false
}
