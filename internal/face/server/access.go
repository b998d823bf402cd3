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

	"cairn/internal/face/token"
	"cairn/tools"
)

// hostAllowed reports whether the Host header names this server. Another site can make its
// host name resolve to this machine (DNS rebinding), but it cannot do so with an address. A
// server on a loopback address therefore accepts loopback names and addresses, and a server
// on a network accepts any address. Both accept the names in Options.Hosts.
func (s *Server) hostAllowed(r *http.Request) bool {
	host := Hostname(r.Host)
	if slices.ContainsFunc(s.options.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && !local.IP.IsLoopback() {
		_, err := netip.ParseAddr(host)
		return err == nil || host == "localhost"
	}
	return Loopback(host)
}

// Loopback reports whether host is a loopback address or localhost. Other names may resolve
// to another address later.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// Hostname returns a Host header without port and brackets.
func Hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// originAllowed reports whether a request is not from a web page, is from a page of this
// server, or follows a link of another site. Browsers send the site of the page in Origin,
// and its relation to the server in Sec-Fetch-Site, over HTTPS and to loopback addresses. Host
// may differ from Origin if a proxy sets it.
func originAllowed(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return true
	}
	if origin := r.Header.Values("Origin"); len(origin) > 0 {
		u, err := url.Parse(origin[0])
		return err == nil && len(origin) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none":
		return true
	}
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && !strings.Contains(r.URL.Path, "/api/")
}

// caller is the sender of a request. On a server without tokens, every caller may do
// everything.
type caller struct {
	token token.Token
	known bool // the server requires tokens, and token is that of the caller
}

func (c caller) permits(workspace string) bool { return !c.known || c.token.Permits(workspace) }
func (c caller) mayWrite() bool                { return !c.known || c.token.MayWrite() }

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// toolCaller returns the sender of a request for tools.Server.HTTP.
func toolCaller(r *http.Request) (tools.Caller, bool) {
	c := callerOf(r.Context())
	return tools.Caller{ID: c.token.ID, MayWrite: c.token.MayWrite(), MayAdminister: c.token.MayAdminister()}, c.known
}

// identify returns the caller of a request, or answers 401.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) (caller, bool) {
	if s.options.Tokens == nil {
		return caller{}, true
	}
	secret, sent := secretOf(r)
	why := "this server requires a token: send Authorization: Bearer TOKEN; `cairn token new NAME` creates one"
	challenge := `Bearer realm="cairn"`
	if sent {
		t, err := s.options.Tokens.Check(secret)
		if err == nil && strings.HasPrefix(t.Name, linkPrefix) {
			err = token.ErrUnknown // a link only signs in
		}
		if err == nil {
			return caller{t, true}, true
		}
		if !errors.Is(err, token.ErrUnknown) {
			s.options.Logger.Error("checking a token", "error", err)
			refuse(w, r, http.StatusInternalServerError, &tools.Failure{Code: tools.CodeInternal, Message: "the tokens cannot be read; the server's log says why"})
			return caller{}, false
		}
		why, challenge = "this token is unknown, revoked or expired", challenge+`, error="invalid_token"`
	}
	w.Header().Add("WWW-Authenticate", challenge)
	if wantsPage(r) {
		why = "Other people can reach this server, so its pages open only for those who sign in."
	}
	refuse(w, r, http.StatusUnauthorized, &tools.Failure{Code: tools.CodeInvalidParams, Message: why})
	return caller{}, false
}

// secretOf returns the token of a request: the bearer token, the password of basic
// authentication, or for pages the cookie that login sets.
func secretOf(r *http.Request) (string, bool) {
	if _, password, ok := r.BasicAuth(); ok {
		return password, true
	}
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		if cookie, err := r.Cookie(cookieName); err == nil && !forPrograms(r) {
			return cookie.Value, true
		}
		return "", false
	}
	return strings.TrimSpace(secret), true
}

// scoped answers 403 if the method of a request is not GET, HEAD or OPTIONS and its caller
// may only read.
func scoped(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
		default:
			if !callerOf(r.Context()).mayWrite() {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
				refuse(w, r, http.StatusForbidden, &tools.Failure{Code: tools.CodeInvalidParams, Message: fmt.Sprintf("%s %s changes something and this token may only read; make one with `cairn token new --scope write`", r.Method, r.URL.Path)})
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}
