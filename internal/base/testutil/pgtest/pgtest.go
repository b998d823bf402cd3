// Package pgtest makes databases on a Postgres server for tests.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Database creates a database for the test on the server of CAIRN_TEST_POSTGRES
// and returns its address. Without the variable it skips the test.
func Database(t testing.TB) string {
	t.Helper()
	at := os.Getenv("CAIRN_TEST_POSTGRES")
	if at == "" {
		t.Skip("set CAIRN_TEST_POSTGRES to the address of a server that may be written to")
	}
	name := fmt.Sprintf("cairn_test_%d", time.Now().UnixNano())
	c, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := c.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		if err := errors.Join(err, c.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
