package postgres

import (
	"errors"
	"strings"
	"testing"

	"cairn/internal/base/testutil/pgtest"
	"cairn/internal/stage"
	"cairn/internal/stage/stagetest"
)

func open(t testing.TB, at string) *Store {
	t.Helper()
	s, err := Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	at := map[string]string{}
	stagetest.Store(t, func(t *testing.T) stage.Store {
		if at[t.Name()] == "" {
			at[t.Name()] = pgtest.Database(t)
		}
		return open(t, at[t.Name()])
	})
}

// TestUnreachable: the error names host and port, and no password.
func TestUnreachable(t *testing.T) {
	for _, at := range []string{"postgres://ann:geheim@127.0.0.1:1/x", "postgres://ann:geheim@[::bad/x", "host=127.0.0.1 port=1 password=geheim user=ann"} {
		_, err := Open(t.Context(), at)
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", at, err)
		}
		if strings.Contains(at, ":1/") && (!errors.Is(err, stage.Is(stage.CodeUnavailable)) || !strings.Contains(err.Error(), "127.0.0.1:1")) {
			t.Errorf("%s: %v, want it to name the server", at, err)
		}
	}
}
