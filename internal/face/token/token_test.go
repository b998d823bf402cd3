package token

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestStore(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "cairn", "tokens.json")
	clock := func() time.Time { return now }
	s, other := Open(path, clock), Open(path, clock) // two processes
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Fatalf("an empty store lists %v, %v", list, err)
	}
	if _, err := s.Check("cairn_a_b"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a secret in an empty store: %v, want ErrUnknown", err)
	}
	secret, made, err := s.New(t.Context(), "ann", Read, []string{"b", "a", "b"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if part := strings.SplitN(secret, "_", 3)[2]; strings.Contains(string(text), part) || len(part) < 43 {
		t.Errorf("the file holds the secret %q, or it is short:\n%s", part, text)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, want 0600", info.Mode().Perm())
	}
	got, err := other.Check(secret)
	if err != nil || got.ID != made.ID || got.MayWrite() || !got.Permits("a") || got.Permits("c") || len(got.Workspaces) != 2 {
		t.Errorf("Check: %+v, %v, want %+v", got, err, made)
	}
	for _, wrong := range []string{"", "cairn_", secret[:len(secret)-1], secret + "x", strings.TrimPrefix(secret, "cairn_"), "cairn_" + made.ID + "_", "cairn_" + made.ID, strings.ToUpper(secret), "cairn_" + made.ID + "_" + made.Hash} {
		if _, err := other.Check(wrong); !errors.Is(err, ErrUnknown) {
			t.Errorf("Check(%q): %v, want ErrUnknown", wrong, err)
		}
	}
	writer, w, err := other.New(t.Context(), "writer", Write, nil, 0)
	if err != nil || !w.MayWrite() || !w.Permits("anything") {
		t.Fatalf("New: %+v, %v", w, err)
	}
	if _, _, err := s.New(t.Context(), "writer", Read, nil, 0); err == nil {
		t.Error("a name twice is no error")
	}
	now = now.Add(time.Hour)
	if _, err := s.Check(secret); !errors.Is(err, ErrUnknown) {
		t.Errorf("an expired token: %v, want ErrUnknown", err)
	}
	if _, err := s.Check(writer); err != nil {
		t.Errorf("a token that never expires: %v", err)
	}
	if gone, err := s.Revoke(t.Context(), "writer"); err != nil || gone.ID != w.ID {
		t.Errorf("Revoke: %+v, %v", gone, err)
	}
	if _, err := other.Check(writer); !errors.Is(err, ErrUnknown) {
		t.Errorf("a token revoked by another process: %v, want ErrUnknown", err)
	}
	if _, err := s.Revoke(t.Context(), w.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoking twice: %v, want ErrNotFound", err)
	}
	if list, err := other.List(); err != nil || len(list) != 1 || list[0].Name != "ann" {
		t.Errorf("List: %+v, %v, want ann", list, err)
	}
}

func TestNewRefuses(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "tokens.json"), nil)
	for _, c := range []struct {
		name    string
		scope   Scope
		expires time.Duration
	}{{"", Read, 0}, {" x", Read, 0}, {"a\nb", Read, 0}, {"a", "root", 0}, {"a", "", 0}, {"a", Read, -1}} {
		if _, _, err := s.New(t.Context(), c.name, c.scope, nil, c.expires); err == nil {
			t.Errorf("New(%q, %q, %v): no error", c.name, c.scope, c.expires)
		}
	}
	if _, err := os.Stat(s.Path()); err == nil {
		t.Error("a refused token left a file")
	}
}

// TestUntrusted: a file that cannot be trusted permits nothing, not even what
// was read from it before.
func TestUntrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	s := Open(path, nil)
	secret, _, err := s.New(t.Context(), "a", Write, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, damage := range map[string]func() error{
		"writable by others": func() error { return errors.Join(os.WriteFile(path, append(good, ' '), 0o600), os.Chmod(path, 0o666)) },
		"no JSON":            func() error { return os.WriteFile(path, good[:len(good)/2], 0o600) },
		"a later version": func() error {
			return os.WriteFile(path, []byte(strings.Replace(string(good), `"version": 1`, `"version": 2`, 1)), 0o600)
		},
	} {
		if _, err := s.Check(secret); err != nil {
			t.Fatalf("before: %v", err)
		}
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Check(secret); err == nil {
			t.Errorf("%s: the token is still good", what)
		}
		os.Remove(path)
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConcurrentChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, _, err := Open(path, nil).New(t.Context(), string(rune('a'+i)), Read, nil, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := Open(path, nil).List(); err != nil || len(list) != 8 {
		t.Errorf("%d tokens, %v, want 8", len(list), err)
	}
}
