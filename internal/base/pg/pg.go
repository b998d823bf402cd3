// Package pg sends statements to Postgres. It uses pgconn, the lower layer of pgx: the upper
// one adds 2 MB to the binary for types of columns that cairn does not use.
package pg

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Pool holds connections to a database. It is safe for concurrent use.
type Pool struct {
	// Server names the server in errors, without user and password.
	Server string
	conns  *puddle.Pool[*pgconn.PgConn]
}

// Open returns a pool without connections. The address is a URL, or a list of settings such
// as "host=db user=ann". timeout bounds the time to connect.
func Open(address string, timeout time.Duration) (*Pool, error) {
	invalid := errors.New("the address of Postgres is not valid, want postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	config, err := pgconn.ParseConfig(address)
	if err != nil { // err may contain the password
		return nil, invalid
	}
	size := max(4, runtime.NumCPU())
	if text, ok := config.RuntimeParams["pool_max_conns"]; ok {
		delete(config.RuntimeParams, "pool_max_conns")
		if size, err = strconv.Atoi(text); err != nil || size < 1 {
			return nil, invalid
		}
	}
	config.ConnectTimeout = timeout
	p := &Pool{Server: "Postgres at " + net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	p.conns, err = puddle.NewPool(&puddle.Config[*pgconn.PgConn]{
		MaxSize:     int32(size),
		Constructor: func(ctx context.Context) (*pgconn.PgConn, error) { return pgconn.ConnectConfig(ctx, config) },
		Destructor: func(c *pgconn.PgConn) {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_ = c.Close(ctx) // the server notices a connection that breaks
		},
	})
	return p, err
}

// Close closes the connections.
func (p *Pool) Close() { p.conns.Close() }

// checkAfter is the idle time after which a connection is checked before it is used.
const checkAfter = time.Second

// With calls fn with a connection.
func (p *Pool) With(ctx context.Context, fn func(*Conn) error) error {
	for {
		r, err := p.conns.Acquire(ctx)
		if err != nil {
			return err
		}
		c := r.Value()
		if r.IdleDuration() > checkAfter && c.Ping(ctx) != nil && ctx.Err() == nil {
			r.Destroy()
			continue
		}
		defer func() {
			if c.IsClosed() || c.IsBusy() || c.TxStatus() != 'I' {
				r.Destroy()
			} else {
				r.Release()
			}
		}()
		return fn(&Conn{c})
	}
}

// Begin calls fn in a transaction, and commits it if fn returns nil.
func (p *Pool) Begin(ctx context.Context, fn func(*Conn) error) error {
	return p.With(ctx, func(c *Conn) error {
		if err := c.script(ctx, "BEGIN"); err != nil {
			return err
		}
		// With closes a connection whose transaction has not ended.
		if err := fn(c); err != nil {
			return errors.Join(err, c.script(ctx, "ROLLBACK"))
		}
		return c.script(ctx, "COMMIT")
	})
}

// CreateTables runs the statements of a schema in a transaction, in one process at a time
// of those that pass the same lock.
func (p *Pool) CreateTables(ctx context.Context, lock int64, schema string) error {
	return p.Begin(ctx, func(c *Conn) error {
		if _, err := c.Exec(ctx, Statement{"SELECT pg_advisory_xact_lock($1)", []any{lock}}); err != nil {
			return err
		}
		return c.script(ctx, schema)
	})
}

// Conn is a connection, for one goroutine at a time.
type Conn struct{ conn *pgconn.PgConn }

func (c *Conn) script(ctx context.Context, sql string) error { return c.conn.Exec(ctx, sql).Close() }

// Statement is an SQL statement with the values of $1, $2 and so on. The types of the values
// are strings, integers, bools, time.Time, []byte, slices of strings and of []byte, and nil.
type Statement struct {
	SQL  string
	Args []any
}

// Exec sends statements at once and returns how many rows each changed. Outside of a
// transaction they are one.
func (c *Conn) Exec(ctx context.Context, statements ...Statement) ([]int64, error) {
	b := &pgconn.Batch{}
	for _, s := range statements {
		values, err := encode(s.Args)
		if err != nil {
			return nil, err
		}
		b.ExecParams(s.SQL, values, nil, nil, nil)
	}
	results, err := c.conn.ExecBatch(ctx, b).ReadAll()
	if err != nil {
		return nil, err
	}
	changed := make([]int64, len(results))
	for i, r := range results {
		changed[i] = r.CommandTag.RowsAffected()
	}
	return changed, nil
}

// Query calls row for each row that a statement returns.
func (c *Conn) Query(ctx context.Context, row func(Row) error, sql string, args ...any) error {
	values, err := encode(args)
	if err != nil {
		return err
	}
	rows := c.conn.ExecParams(ctx, sql, values, nil, nil, nil)
	for err == nil && rows.NextRow() {
		err = row(rows.Values())
	}
	_, end := rows.Close()
	return errors.Join(err, end)
}

// encode returns values as the text that Postgres reads.
func encode(args []any) ([][]byte, error) {
	values := make([][]byte, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case nil:
		case time.Time:
			values[i] = v.UTC().Truncate(time.Microsecond).AppendFormat(nil, time.RFC3339Nano)
		case []byte:
			values[i] = bytea(nil, v)
		case []string:
			values[i] = array(v, func(to []byte, s string) []byte { return append(to, quote.Replace(s)...) })
		case [][]byte:
			values[i] = array(v, func(to, b []byte) []byte { return bytea(append(to, '\\'), b) })
		default:
			switch kind := reflect.TypeOf(arg).Kind(); kind {
			case reflect.String, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Bool:
				values[i] = fmt.Append([]byte{}, arg) // nil is NULL
				continue
			}
			return nil, fmt.Errorf("parameter $%d is %T, which package pg does not send", i+1, arg)
		}
	}
	return values, nil
}

func bytea(to, b []byte) []byte { return hex.AppendEncode(append(to, `\x`...), b) }

var quote = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// array returns an array of quoted elements.
func array[T any](list []T, element func(to []byte, e T) []byte) []byte {
	to := []byte{'{'}
	for i, e := range list {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(element(append(to, '"'), e), '"')
	}
	return append(to, '}')
}

// Row is a row as the text of its columns, nil for NULL. It is valid until the next row.
type Row [][]byte

// Scan stores the columns in the variables that to points to: strings, integers, bools and
// []byte. NULL is the zero value.
func (r Row) Scan(to ...any) error {
	if len(to) != len(r) {
		return fmt.Errorf("the row has %d columns, want %d", len(r), len(to))
	}
	for i, text := range r {
		var err error
		switch v := reflect.ValueOf(to[i]).Elem(); v.Kind() {
		case reflect.String:
			v.SetString(string(text))
		case reflect.Bool:
			v.SetBool(string(text) == "t")
		case reflect.Int, reflect.Int64, reflect.Uint64:
			var n int64
			if text != nil {
				n, err = strconv.ParseInt(string(text), 10, 64)
			}
			v.Set(reflect.ValueOf(n).Convert(v.Type()))
		default:
			var b []byte
			if digits, ok := strings.CutPrefix(string(text), `\x`); ok {
				b, err = hex.DecodeString(digits)
			} else if text != nil {
				err = errors.New(`the server does not write bytea in hex: set bytea_output`)
			}
			v.SetBytes(b)
		}
		if err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}
