package host

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/face/token"
)

func TestListsOthers(t *testing.T) {
	for passwd, want := range map[string]bool{
		"": false,
		"root:x:0:0::/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/bash\n":                      false,
		"ann:x:1000:1000::/home/ann:/bin/bash\nbob:x:1001:1001::/home/bob:/bin/zsh\n":              true,
		"ann:x:1000:1000::/home/ann:/bin/bash\nnobody:x:65534:65534::/nonexistent:/sbin/nologin\n": false,
		"daemon:x:1:1::/usr/sbin:/bin/sh\nbroken:x:2000\n":                                         false,
	} {
		if got := listsOthers(passwd, 1000); got != want {
			t.Errorf("listsOthers(%q) = %v, want %v", passwd, got, want)
		}
	}
}

// TestLoopbackOnASharedMachine: where other users can log in, or a proxy forwards requests, a
// loopback address requires a token, which is in a file that only this user can read; a second
// start keeps it.
func TestLoopbackOnASharedMachine(t *testing.T) {
	store := token.Open(filepath.Join(t.TempDir(), "cairn", "tokens.json"), nil)
	proxied := false
	listen := func(shared bool) (*token.Store, string) {
		t.Helper()
		var log strings.Builder
		l, tokens, err := Listen(context.Background(), ListenOptions{
			Address: "127.0.0.1:0", Auth: "auto", Tokens: func() (*token.Store, error) { return store, nil }, Shared: func() bool { return shared }, Proxied: proxied,
		}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		return tokens, log.String()
	}
	if tokens, _ := listen(false); tokens != nil {
		t.Error("a token is wanted where this user is the only one")
	}
	proxied = true
	if tokens, _ := listen(false); tokens == nil {
		t.Error("no token is required behind a proxy")
	}
	proxied = false
	tokens, log := listen(true)
	if tokens == nil {
		t.Fatal("no token is wanted where there are other users")
	}
	info, err := os.Stat(store.LocalPath())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file of the token: %v, %v, want mode 0600", info, err)
	}
	secret, err := os.ReadFile(store.LocalPath())
	if err != nil {
		t.Fatal(err)
	}
	if tk, err := tokens.Check(strings.TrimSpace(string(secret))); err != nil || !tk.MayWrite() {
		t.Errorf("the token in the file: %+v, %v, want one that may write", tk, err)
	}
	if !strings.Contains(log, store.LocalPath()) || strings.Contains(log, strings.TrimSpace(string(secret))) {
		t.Errorf("the log names the file and not the token, got %s", log)
	}
	listen(true)
	if again, err := os.ReadFile(store.LocalPath()); err != nil || string(again) != string(secret) {
		t.Errorf("a second start replaced the token: %v", err)
	}
	// A token that was revoked, or a file that was removed, is replaced.
	if _, err := store.Revoke(t.Context(), "local"); err != nil {
		t.Fatal(err)
	}
	listen(true)
	if again, err := os.ReadFile(store.LocalPath()); err != nil || string(again) == string(secret) {
		t.Errorf("a revoked token was kept: %v", err)
	}
	if err := os.Remove(store.LocalPath()); err != nil {
		t.Fatal(err)
	}
	listen(true)
	if known, err := store.List(); err != nil || len(known) != 1 {
		t.Errorf("the store has %d tokens, %v, want 1", len(known), err)
	}
}
