package upgrade

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const binary = "#!/bin/sh\necho new\n"

// feed serves a release for this test's system, signed, after change.
func feed(t *testing.T, change func(*Release), body string) Options {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(binary))
	a := Asset{OS: runtime.GOOS, Arch: runtime.GOARCH, URL: "files/cairn", Size: int64(len(binary)), SHA256: hex.EncodeToString(sum[:])}
	a.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(private, Message("v1.2.0", a)))
	r := &Release{Version: "v1.2.0", Assets: []Asset{{OS: "plan9", Arch: "386"}, a}}
	change(r)
	mux := http.NewServeMux()
	mux.HandleFunc("/feed.json", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(r) })
	mux.HandleFunc("/files/cairn", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://example.com/cairn", http.StatusFound)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	program := filepath.Join(t.TempDir(), "cairn")
	if err := os.WriteFile(program, []byte("old"), 0o751); err != nil {
		t.Fatal(err)
	}
	return Options{Feed: server.URL + "/feed.json", Key: base64.StdEncoding.EncodeToString(public), Version: "v1.1.9", Program: program}
}

func nothing(*Release) {}

func TestInstall(t *testing.T) {
	o := feed(t, nothing, binary)
	r, err := Check(t.Context(), o)
	if err != nil || !r.Newer || r.Installed || r.Latest != "v1.2.0" {
		t.Fatalf("Check = %+v, %v", r, err)
	}
	if text, _ := os.ReadFile(o.Program); string(text) != "old" {
		t.Fatalf("Check changed the program to %q", text)
	}
	if r, err = Install(t.Context(), o); err != nil || !r.Installed {
		t.Fatalf("Install = %+v, %v", r, err)
	}
	info, err := os.Stat(o.Program)
	if text, _ := os.ReadFile(o.Program); err != nil || string(text) != binary || info.Mode().Perm() != 0o751 {
		t.Errorf("the program is %q with mode %v, %v", text, info.Mode(), err)
	}
	o.Version = "v1.2.0"
	if r, err := Install(t.Context(), o); err != nil || r.Installed || r.Newer {
		t.Errorf("Install of what is there = %+v, %v", r, err)
	}
	o.Version = "v1.10.0"
	if r, err := Install(t.Context(), o); err != nil || r.Installed {
		t.Errorf("Install of something older = %+v, %v", r, err)
	}
	o.Version = "devel"
	if r, err := Install(t.Context(), o); err != nil || r.Installed || !r.Unversioned {
		t.Errorf("Install over a build without a version = %+v, %v", r, err)
	}
	o.Force = true
	if r, err := Install(t.Context(), o); err != nil || !r.Installed {
		t.Errorf("forced Install = %+v, %v", r, err)
	}
}

// TestRefusals: whatever is wrong, the program stays as it is.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name    string
		release func(*Release)
		body    string
		options func(*Options)
		want    string
		code    int
	}{
		{"another binary", nothing, strings.Replace(binary, "new", "bad", 1), nil, "is not the binary of the release", 1004},
		{"too short", nothing, binary[:5], nil, "(5 bytes)", 1004},
		{"too long", nothing, binary + "more", nil, "is not the binary of the release", 1004},
		{"another checksum", func(r *Release) { r.Assets[1].SHA256 = strings.Repeat("0", 64) }, binary, nil, "signature", 1004},
		{"a signature of an older release", func(r *Release) { r.Version = "v9.0.0" }, binary, nil, "signature", 1004},
		{"no signature", func(r *Release) { r.Assets[1].Signature = "" }, binary, nil, "signature", 1004},
		{"another key", nothing, binary, func(o *Options) { o.Key = base64.StdEncoding.EncodeToString(make([]byte, 32)) }, "signature", 1004},
		{"no key", nothing, binary, func(o *Options) { o.Key = "" }, "CAIRN_RELEASE_KEY", 1004},
		{"another system", func(r *Release) { r.Assets[1].Arch = "mips" }, binary, nil, "no binary for " + runtime.GOOS + " on " + runtime.GOARCH, 1004},
		{"a strange version", func(r *Release) { r.Version = "latest" }, binary, nil, "want one such as", 1004},
		{"a strange size", func(r *Release) { r.Assets[1].Size = 1 << 40 }, binary, nil, "size of", 1004},
		{"not a feed", nothing, binary, func(o *Options) { o.Feed = strings.Replace(o.Feed, "feed.json", "files/cairn", 1) }, "cannot be parsed", 1004},
		{"plain http", nothing, binary, func(o *Options) { o.Feed = "http://example.com/feed.json" }, "not an https URL", 1004},
		{"a file", nothing, binary, func(o *Options) { o.Feed = "file:///etc/passwd" }, "not an https URL", 1004},
		{"led away", func(r *Release) { r.Assets[1].URL = "/away" }, binary, nil, "not an https URL", 1005},
		{"not there", nothing, binary, func(o *Options) { o.Feed += "x" }, "404", 1005},
		{"nobody there", nothing, binary, func(o *Options) { o.Feed = "http://127.0.0.1:1/feed.json" }, "network error", 1005},
	} {
		o := feed(t, c.release, c.body)
		if c.options != nil {
			c.options(&o)
		}
		r, err := Install(t.Context(), o)
		coded, ok := errors.AsType[interface {
			error
			Code() int
		}](err)
		if !ok || coded.Code() != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %d with %q", c.name, r, err, c.code, c.want)
		}
		if text, _ := os.ReadFile(o.Program); string(text) != "old" {
			t.Errorf("%s: the program is %q", c.name, text)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(o.Program), ".*.tmp")); len(left) > 0 {
			t.Errorf("%s: left over: %v", c.name, left)
		}
	}
	if _, err := Check(t.Context(), Options{}); !errors.Is(err, ErrNoFeed) {
		t.Errorf("without a feed: %v", err)
	}
}
