// Package postgres stores question tasks in Postgres. The file schema.sql defines the tables.
package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"cairn/internal/base/pg"
	"cairn/internal/stage"
)

// schema creates the tables that are missing.
//
//go:embed schema.sql
var schema string

// schemaLock is the advisory lock of processes that create the tables: "cairntsk".
const schemaLock = 0x636169726e74736b

// Store is a stage.Store in Postgres.
type Store struct{ pool *pg.Pool }

var _ stage.Store = (*Store)(nil)

// Open connects to a database and creates missing tables. Several processes may call Open at
// the same time.
func Open(ctx context.Context, url string) (*Store, error) {
	pool, err := pg.Open(url, 5*time.Second)
	if err != nil {
		return nil, err
	}
	s := &Store{pool}
	if err := pool.CreateTables(ctx, schemaLock, schema); err != nil {
		pool.Close()
		return nil, s.fail(err)
	}
	return s, nil
}

// Close closes the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// callLimit is the maximum duration of a call. A server that does not answer in this time
// counts as unreachable.
const callLimit = 10 * time.Second

// fail adds the address of the server to an error, unless it is a *stage.Error.
func (s *Store) fail(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ours := errors.AsType[*stage.Error](err); ours {
		return err
	}
	switch e, ok := errors.AsType[*pgconn.PgError](err); {
	case !ok || transient(e.Code):
		return stage.Unavailable(s.pool.Server, err)
	case e.Code == "22021": // character_not_in_repertoire, such as in the ID of a request
		return &stage.Error{Code: stage.CodeParameter, Message: "the request has a zero byte or is not UTF-8"}
	}
	return fmt.Errorf("%s: %w", s.pool.Server, err)
}

// transient reports whether an SQLSTATE belongs to a class of errors that a server returns
// while it starts, stops or lacks resources.
func transient(code string) bool {
	return slices.ContainsFunc([]string{"08", "53", "57", "40"}, func(class string) bool { return strings.HasPrefix(code, class) })
}

const put = `
INSERT INTO task_histories (task_id, user_id, template, status, current_stage, run, version, started_at, updated_at, deadline, resend_at, state)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (task_id) DO UPDATE SET
  status = excluded.status, current_stage = excluded.current_stage, run = excluded.run, version = excluded.version,
  updated_at = excluded.updated_at, deadline = excluded.deadline, resend_at = excluded.resend_at, state = excluded.state
WHERE task_histories.version < excluded.version`

const logRow = `
INSERT INTO task_stage_logs (task_id, version, ts, stage, action, status, detail, event_id, worker, run)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`

// transition returns the statements that store a transition.
func transition(st *stage.State, e stage.Entry) ([]pg.Statement, error) {
	text, err := stage.Encode(st)
	if err != nil {
		return nil, err
	}
	var deadline, resend any
	if d := st.Deadline(); !d.IsZero() {
		deadline = d
	}
	if _, ok := st.Job(); ok {
		resend = st.UpdatedAt.Add(stage.ResendAfter)
	}
	return []pg.Statement{
		{SQL: put, Args: []any{st.ID, st.UserID, st.Template, st.Status, st.Current, st.Machine.Run, st.Machine.Version, st.StartedAt, st.UpdatedAt, deadline, resend, string(text)}},
		{SQL: logRow, Args: []any{e.TaskID, e.Version, e.At, e.Stage, e.Action, e.Status, e.Detail, e.Event, e.Worker, e.Run}},
	}, nil
}

// begin calls fn in a transaction.
func (s *Store) begin(ctx context.Context, fn func(context.Context, *pg.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return s.fail(s.pool.Begin(ctx, func(c *pg.Conn) error { return fn(ctx, c) }))
}

// Update implements stage.Store.
func (s *Store) Update(ctx context.Context, id string, fn stage.Change) (next *stage.State, fx *stage.Effects, err error) {
	err = s.begin(ctx, func(ctx context.Context, c *pg.Conn) error {
		var old *stage.State
		err := c.Query(ctx, func(row pg.Row) error { return scan(row, &old) }, `SELECT state FROM task_histories WHERE task_id = $1 FOR UPDATE`, id)
		if err != nil {
			return err
		}
		if next, fx, err = fn(old); err != nil {
			return err
		}
		statements, err := transition(next, fx.Entry)
		if err != nil {
			return err
		}
		// Of two transactions that create a task, the second waits and inserts no row.
		changed, err := c.Exec(ctx, statements...)
		if err == nil && changed[0] == 0 {
			return stage.Exists(id)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return next, fx, nil
}

// scan reads the state of a row.
func scan(row pg.Row, to **stage.State) error {
	var text string
	if err := row.Scan(&text); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return fmt.Errorf("reading a task: %w", err)
	}
	return nil
}

// query returns the rows of a query.
func query[T any](ctx context.Context, s *Store, scan func(pg.Row, *T) error, sql string, args ...any) (list []T, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err = s.pool.With(ctx, func(c *pg.Conn) error {
		return c.Query(ctx, func(row pg.Row) error {
			list = append(list, *new(T))
			return scan(row, &list[len(list)-1])
		}, sql, args...)
	})
	return list, s.fail(err)
}

// Load implements stage.Store.
func (s *Store) Load(ctx context.Context, id string) (*stage.State, error) {
	list, err := query(ctx, s, scan, `SELECT state FROM task_histories WHERE task_id = $1`, id)
	if err == nil && len(list) == 0 {
		err = stage.NotFound(id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// List implements stage.Store.
func (s *Store) List(ctx context.Context, q stage.Query) ([]*stage.State, error) {
	return query(ctx, s, scan, `SELECT state FROM task_histories WHERE ($1 = '' OR user_id = $1) AND ($2 = '' OR status = $2)
ORDER BY started_at DESC, task_id LIMIT $3`, q.UserID, q.Status, q.Bound())
}

// Due implements stage.Store.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return query(ctx, s, func(row pg.Row, id *string) error { return row.Scan(id) },
		`SELECT task_id FROM task_histories WHERE deadline <= $1 ORDER BY deadline LIMIT $2`, now, limit)
}

// Unsent implements stage.Store.
func (s *Store) Unsent(ctx context.Context, now time.Time, limit int) ([]stage.Job, error) {
	return query(ctx, s, func(row pg.Row, j *stage.Job) error { return row.Scan(&j.TaskID, &j.Stage, &j.Run) },
		`SELECT task_id, current_stage, run FROM task_histories WHERE resend_at <= $1 ORDER BY resend_at LIMIT $2`, now, limit)
}

// Postpone implements stage.Store.
func (s *Store) Postpone(ctx context.Context, until time.Time, jobs ...stage.Job) error {
	var statements []pg.Statement
	for _, j := range jobs {
		statements = append(statements, pg.Statement{
			SQL:  `UPDATE task_histories SET resend_at = $1 WHERE task_id = $2 AND run = $3 AND resend_at IS NOT NULL`,
			Args: []any{until, j.TaskID, j.Run},
		})
	}
	return s.begin(ctx, func(ctx context.Context, c *pg.Conn) error {
		_, err := c.Exec(ctx, statements...)
		return err
	})
}

// Log implements stage.Store.
func (s *Store) Log(ctx context.Context, id string) (entries []stage.Entry, err error) {
	entries, err = query(ctx, s, func(row pg.Row, e *stage.Entry) error {
		var at int64
		err := row.Scan(&e.TaskID, &e.Version, &at, &e.Stage, &e.Action, &e.Status, &e.Detail, &e.Event, &e.Worker, &e.Run)
		e.At = time.UnixMicro(at).UTC()
		return err
	}, `SELECT task_id, version, (extract(epoch FROM ts) * 1000000)::bigint, stage, action, status, detail, event_id, worker, run
FROM task_stage_logs WHERE task_id = $1 ORDER BY version`, id)
	if err == nil && len(entries) == 0 {
		err = stage.NotFound(id)
	}
	return entries, err
}

// Clean implements stage.Store.
func (s *Store) Clean(ctx context.Context, now time.Time, keep time.Duration) (n int, err error) {
	err = s.begin(ctx, func(ctx context.Context, c *pg.Conn) error {
		changed, err := c.Exec(ctx, pg.Statement{SQL: `DELETE FROM task_histories WHERE deadline IS NULL AND updated_at <= $1`, Args: []any{now.Add(-keep)}})
		if err == nil {
			n = int(changed[0])
		}
		return err
	})
	return n, err
}
