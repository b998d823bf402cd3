//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestImage runs the command of the container image with its environment: the server does not
// start without a token file and then requires a token. It also runs the command without
// tokens in the first lines of the Dockerfile.
func TestImage(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	m := regexp.MustCompile(`(?m)^CMD (.*)$`).FindSubmatch(text)
	if m == nil || json.Unmarshal(m[1], &args) != nil || len(args) < 3 || args[0] != "serve" {
		t.Fatalf("the image's command is %q, want serve with its address", m)
	}
	if !strings.Contains(string(text), "\n# ") || !strings.Contains(string(text), strings.Join(args, " ")+" --auth off") {
		t.Errorf("the Dockerfile does not say how to serve without tokens")
	}
	t.Setenv("CAIRN_AUTH", "")
	dir := t.TempDir()
	env := regexp.MustCompile(`(?m)^ENV (.*)$`).FindSubmatch(text)
	if env == nil {
		t.Fatal("the image sets no environment")
	}
	for _, pair := range strings.Fields(string(env[1])) {
		key, value, _ := strings.Cut(pair, "=")
		t.Setenv(key, filepath.Join(dir, value)) // the image's folders are this one's
	}
	book := filepath.Join(dir, "workspace")
	if err := os.CopyFS(book, handbook()); err != nil {
		t.Fatal(err)
	}
	cairn := binary(t)
	// A free port on every address, as within a container.
	for i, arg := range args {
		args[i] = strings.Replace(arg, ":7420", ":0", 1)
	}
	if out, err := exec.Command(cairn, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "cairn token new") {
		t.Errorf("without a token: %v, %s, want that it says how to make one", err, out)
	}
	out, err := exec.Command(cairn, "token", "new", "ann").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "config", "tokens.json")); err != nil {
		t.Errorf("the tokens are not in the volume /config: %v", err)
	}
	token := "Bearer " + strings.TrimSpace(string(out))
	for _, c := range []struct {
		more   []string
		header []string
		want   int
	}{
		{nil, nil, http.StatusUnauthorized},
		{nil, []string{"Authorization", token}, http.StatusOK},
		{[]string{"--auth", "off"}, nil, http.StatusOK},
	} {
		s := startServe(t, append(args[1:len(args):len(args)], c.more...)...)
		port := s.url[strings.LastIndex(s.url, ":"):]
		if status, body := get(t, "http://127.0.0.1"+port+"/api/status", c.header...); status != c.want {
			t.Errorf("%v with %v: %d %s, want %d", c.more, c.header, status, body, c.want)
		}
		if err := s.stop(t); err != nil {
			t.Errorf("after SIGTERM: %v\n%s", err, s.log)
		}
	}
}
