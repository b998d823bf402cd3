// Package profile serves Go's profiles (pprof) to this machine.
package profile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"
)

// Server serves profiles until Close.
type Server struct {
	server *http.Server
	addr   net.Addr
	ended  chan struct{}
}

// Open listens on addr, which has to be an address of loopback with a port; 0
// takes a free one. A profile tells of memory and command lines: it is for who
// is on the machine already.
func Open(ctx context.Context, addr string) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !loopback(host) {
		return nil, fmt.Errorf("profiles are served on this machine alone, and %q is no such address: want one like 127.0.0.1:6060", addr)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening for profiles on %s: %w; choose another port", addr, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	s := &Server{addr: l.Addr(), ended: make(chan struct{}), server: &http.Server{Handler: local(mux), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}}
	go func() {
		defer close(s.ended)
		_ = s.server.Serve(l) // ends with Close
	}()
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.addr }

// Close ends it, with the profiles that are being taken.
func (s *Server) Close() error {
	err := s.server.Close()
	<-s.ended
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// loopback reports whether a host is this machine's own name for itself.
// Other names could come to mean another address.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// local refuses pages of other sites, which a browser on this machine may show.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		site := r.Header.Get("Sec-Fetch-Site")
		if !loopback(host) || r.Header.Get("Origin") != "" || site != "" && site != "none" && site != "same-origin" {
			http.Error(w, "profiles are for this machine alone", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
