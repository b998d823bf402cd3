package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"cairn/internal/stage"
)

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

// TestNoText: text that Postgres cannot represent is an invalid request, not a failure of cairn.
func TestNoText(t *testing.T) {
	err := (&Store{}).fail(&pgconn.PgError{Code: "22021"})
	if !errors.Is(err, stage.Is(stage.CodeParameter)) {
		t.Errorf("the error is %v, want an invalid parameter", err)
	}
}
