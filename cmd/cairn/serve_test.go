//go:build unix

package main

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// serving is a running `cairn serve`.
type serving struct {
	cmd *exec.Cmd
	url string
	log *strings.Builder // complete once the process has ended
	end chan struct{}
}

var listening = regexp.MustCompile(`msg=listening .*url=(\S+)`)

// startServe runs `cairn serve` on a free port and waits until it listens.
func startServe(t *testing.T, args ...string) *serving {
	t.Helper()
	s := &serving{cmd: exec.Command(binary(t), append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...), log: &strings.Builder{}, end: make(chan struct{})}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		defer close(s.end)
		defer close(found)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.log.WriteString(lines.Text() + "\n")
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.cmd.Process.Kill()
			s.cmd.Wait()
		}
	})
	url, ok := <-found
	if !ok {
		t.Fatalf("cairn serve ended: %s", s.log)
	}
	s.url = url
	return s
}

// stop ends the process like a service manager and returns its error.
func (s *serving) stop(t *testing.T) error {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.end
	return s.cmd.Wait()
}

// get returns the status and the body of an address.
func get(t *testing.T, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// indexed is a copy of the handbook with its index, and a folder of one other document.
func indexed(t *testing.T) (handbookDir, other string) {
	t.Helper()
	handbookDir, other = t.TempDir(), t.TempDir()
	if err := os.CopyFS(handbookDir, handbook()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "zoo.md"), []byte("# Zoo\n\nThe quagga is extinct.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{handbookDir, other} {
		if out, err := exec.Command(binary(t), "index", "-C", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return handbookDir, other
}

func TestServe(t *testing.T) {
	book, zoo := indexed(t)
	s := startServe(t, "book="+book, "zoo="+zoo)
	for path, want := range map[string]string{
		"/healthz":                            "ok",
		"/readyz":                             `"ready":true`,
		"/api/search?q=rotate+a+token":        "access/rotate-a-token.md",
		"/w/zoo/api/search?q=quagga":          "zoo.md",
		"/w/book/api/read?path=index.md":      `"title":"Search service handbook"`,
		"/w/zoo/api/read?path=zoo.md&next=":   "extinct",
		"/w/zoo/api/search?q=rotate+a+token":  `"results":`,
		"/api/search?q=quagga&mode=keyword":   `"results":[]`,
		"/w/book/api/read?path=zoo.md":        `"code":1001`,
		"/w/other/api/search?q=rotate+a+toke": "no workspace",
	} {
		if _, got := get(t, s.url+path); !strings.Contains(got, want) || strings.Contains(path, "zoo/api/search?q=rotate") && strings.Contains(got, "rotate-a-token") {
			t.Errorf("GET %s: %.300s, want %s", path, got, want)
		}
	}
	if err := s.stop(t); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, s.log)
	}
}

func TestServeArguments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"serve nonsense", "want NAME=DIR"},
		{"serve A=/tmp", "cannot name a workspace"},
		{"serve a=/tmp/x a=/tmp/y", "two workspaces"},
		{"serve -C /tmp/x a=/tmp/x", "not both"},
		{"serve --tools nothing", "unknown group"},
	} {
		var out, stderr strings.Builder
		if code := run(strings.Fields(c.args), strings.NewReader(""), &out, &stderr); code != exitUsage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("cairn %s: exit %d, %s, want %d and %q", c.args, code, stderr.String(), exitUsage, c.want)
		}
	}
}

// TestServeAsksForTokens: with TLS and tokens, as on a network. The server refuses a revoked
// token immediately.
func TestServeAsksForTokens(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CAIRN_TOKENS", filepath.Join(dir, "tokens.json"))
	token := func() string {
		var out, stderr strings.Builder
		if code := run([]string{"token", "new", "ann"}, strings.NewReader(""), &out, &stderr); code != 0 {
			t.Fatal(stderr.String())
		}
		return strings.TrimSpace(out.String())
	}()
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS() // for its certificate, which is good for 127.0.0.1
	pair.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: pair.TLS.Certificates[0].Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	book, _ := indexed(t)
	s := startServe(t, "-C", book, "--auth", "on", "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"))
	client := pair.Client()
	status := func(header string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		r, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		return r.StatusCode
	}
	if got := []int{status(""), status("Bearer " + token), status("Bearer x" + token)}; got[0] != 401 || got[1] != 200 || got[2] != 401 {
		t.Errorf("without, with, and with a wrong token: %v, want 401, 200, 401", got)
	}
	var out, stderr strings.Builder
	if code := run([]string{"open", "--web", "--url", s.url, "-C", book}, strings.NewReader(""), &out, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, want := range []int{http.StatusSeeOther, http.StatusUnauthorized} { // the link works once
		r, err := client.Get(strings.TrimSpace(out.String()))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if cookies := r.Cookies(); r.StatusCode != want || want == http.StatusSeeOther && (len(cookies) != 1 || !cookies[0].Secure) {
			t.Errorf("opening the link of open --web: %d %v, want %d", r.StatusCode, cookies, want)
		}
	}
	out.Reset()
	if code := run([]string{"token", "revoke", "ann"}, strings.NewReader(""), &out, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	if got := status("Bearer " + token); got != 401 {
		t.Errorf("with the revoked token: %d, want 401", got)
	}
	if err := s.stop(t); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, s.log)
	}
}
