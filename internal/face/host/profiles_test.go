package host

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestServeProfiles(t *testing.T) {
	for _, bad := range []string{"", ":6060", "0.0.0.0:6060", "192.0.2.1:0", "[::]:0", "example.com:0", "127.0.0.1", "localhost.example.com:0", "127.0.0.1:x"} {
		if s, err := serveProfiles(t.Context(), bad); err == nil {
			s.Close()
			t.Errorf("profiles are served on %q", bad)
		} else if !strings.Contains(err.Error(), "want one like") && !strings.Contains(err.Error(), "choose another port") {
			t.Errorf("%q: %v, which does not say what to do", bad, err)
		}
	}
	s, err := serveProfiles(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := serveProfiles(t.Context(), s.Addr); err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("a port that is taken: %v", err)
	}
	url := "http://" + s.Addr
	ask := func(path string, header ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			if header[i] == "Host" {
				r.Host = header[i+1]
			}
			r.Header.Set(header[i], header[i+1])
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, string(text)
	}
	for path, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/cmdline": "host.test", "/debug/pprof/symbol": "num_symbols"} {
		if code, text := ask(path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.100s, want %s", path, code, text, want)
		}
	}
	for _, header := range [][]string{{"Host", "evil.example"}, {"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		if code, _ := ask("/debug/pprof/", header...); code != http.StatusForbidden {
			t.Errorf("with %v: %d, want 403", header, code)
		}
	}
	if code, _ := ask("/other"); code != http.StatusNotFound {
		t.Errorf("/other: %d, want 404", code)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}
