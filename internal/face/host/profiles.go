package host

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"cairn/internal/face/server"
)

// serveProfiles serves Go's profiles (pprof) to local clients on addr, a loopback address with
// a port; port 0 means any free one. Profiles reveal memory and command lines, so only users of
// this machine may read them. The server has the address on which it listens.
func serveProfiles(ctx context.Context, addr string) (*http.Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !server.Loopback(host) {
		return nil, fmt.Errorf("profiles are served only on a loopback address, not on %q; want one like 127.0.0.1:6060", addr)
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
	s := &http.Server{Addr: l.Addr().String(), Handler: local(mux), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = s.Serve(l) }() // returns after Close
	return s, nil
}

// local refuses requests of web pages, which a browser on this machine may send.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		if !server.Loopback(server.Hostname(r.Host)) || r.Header.Get("Origin") != "" || site != "" && site != "none" && site != "same-origin" {
			http.Error(w, "profiles are served only to this machine", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
