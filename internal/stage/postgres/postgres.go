// Package postgres stores question tasks in Postgres. The file schema.sql defines the tables.
package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"cairn/internal/stage"
)

// schema creates the tables that are missing.
//
//go:embed schema.sql
var schema string

// schemaLock is the advisory lock of processes that create the tables: "cairntsk".
const schemaLock = 0x636169726e74736b

// Store is a stage.Store in Postgres.
type Store struct {
	pool   *pgxpool.Pool
	server string // the address for errors, without user and password
}

var _ stage.Store = (*Store)(nil)

// Open connects to a database and creates missing tables. Several processes may call Open at
// the same time.
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil { // err may quote the password
		return nil, errors.New("the address of Postgres is not valid, want postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	c := config.ConnConfig
	s := &Store{server: "Postgres at " + net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.fail(err)
	}
	if err := s.createTables(ctx); err != nil {
		s.pool.Close()
		return nil, s.fail(err)
	}
	return s, nil
}

// createTables creates missing tables.
func (s *Store) createTables(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, schema)
		return err
	})
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
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && !transient(e.Code) {
		return fmt.Errorf("%s: %w", s.server, err)
	}
	return stage.Unavailable(s.server, err)
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
func transition(st *stage.State, e stage.Entry) (*pgx.Batch, error) {
	text, err := stage.Encode(st)
	if err != nil {
		return nil, err
	}
	var deadline, resend *time.Time
	if d := st.Deadline(); !d.IsZero() {
		deadline = &d
	}
	if _, ok := st.Job(); ok {
		resend = new(st.UpdatedAt.Add(stage.ResendAfter))
	}
	b := &pgx.Batch{}
	b.Queue(put, st.ID, st.UserID, st.Template, st.Status, st.Current, st.Machine.Run, st.Machine.Version, st.StartedAt, st.UpdatedAt, deadline, resend, string(text))
	b.Queue(logRow, e.TaskID, e.Version, e.At, e.Stage, e.Action, e.Status, e.Detail, e.Event, e.Worker, e.Run)
	return b, nil
}

// Create implements stage.Store.
func (s *Store) Create(ctx context.Context, st *stage.State, fx *stage.Effects) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	b, err := transition(st, fx.Entry)
	if err != nil {
		return err
	}
	return s.fail(pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Of two transactions with the same id, the second waits and inserts no row.
		results := tx.SendBatch(ctx, b)
		tag, err := results.Exec()
		if err := errors.Join(err, results.Close()); err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return stage.Exists(st.ID)
		}
		return nil
	}))
}

// Update implements stage.Store.
func (s *Store) Update(ctx context.Context, id string, fn stage.Change) (next *stage.State, fx *stage.Effects, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		old, err := scan(tx.QueryRow(ctx, `SELECT state FROM task_histories WHERE task_id = $1 FOR UPDATE`, id), id)
		if err != nil {
			return err
		}
		if next, fx, err = fn(old); err != nil {
			return err
		}
		b, err := transition(next, fx.Entry)
		if err != nil {
			return err
		}
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, nil, s.fail(err)
	}
	return next, fx, nil
}

func scan(row pgx.Row, id string) (*stage.State, error) {
	var text string
	err := row.Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, stage.NotFound(id)
	}
	if err != nil {
		return nil, err
	}
	return stage.Decode([]byte(text))
}

// Load implements stage.Store.
func (s *Store) Load(ctx context.Context, id string) (*stage.State, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	st, err := scan(s.pool.QueryRow(ctx, `SELECT state FROM task_histories WHERE task_id = $1`, id), id)
	return st, s.fail(err)
}

// List implements stage.Store.
func (s *Store) List(ctx context.Context, q stage.Query) ([]*stage.State, error) {
	return query(ctx, s, state, `SELECT state FROM task_histories WHERE ($1 = '' OR user_id = $1) AND ($2 = '' OR status = $2)
ORDER BY started_at DESC, task_id LIMIT $3`, q.UserID, q.Status, q.Bound())
}

// query returns the rows of a query.
func query[T any](ctx context.Context, s *Store, row pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, s.fail(err)
	}
	list, err := pgx.CollectRows(rows, row)
	return list, s.fail(err)
}

func state(row pgx.CollectableRow) (*stage.State, error) {
	var text string
	if err := row.Scan(&text); err != nil {
		return nil, err
	}
	return stage.Decode([]byte(text))
}

// Due implements stage.Store.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return query(ctx, s, pgx.RowTo[string], `SELECT task_id FROM task_histories WHERE deadline <= $1 ORDER BY deadline LIMIT $2`, now, limit)
}

// Unsent implements stage.Store.
func (s *Store) Unsent(ctx context.Context, now time.Time, limit int) ([]stage.Job, error) {
	return query(ctx, s, func(row pgx.CollectableRow) (j stage.Job, err error) {
		err = row.Scan(&j.TaskID, &j.Stage, &j.Run)
		return j, err
	}, `SELECT task_id, current_stage, run FROM task_histories WHERE resend_at <= $1 ORDER BY resend_at LIMIT $2`, now, limit)
}

// Postpone implements stage.Store.
func (s *Store) Postpone(ctx context.Context, until time.Time, jobs ...stage.Job) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	b := &pgx.Batch{}
	for _, j := range jobs {
		b.Queue(`UPDATE task_histories SET resend_at = $1 WHERE task_id = $2 AND run = $3 AND resend_at IS NOT NULL`, until, j.TaskID, j.Run)
	}
	return s.fail(s.pool.SendBatch(ctx, b).Close())
}

// Log implements stage.Store.
func (s *Store) Log(ctx context.Context, id string) ([]stage.Entry, error) {
	entries, err := query(ctx, s, func(row pgx.CollectableRow) (e stage.Entry, err error) {
		err = row.Scan(&e.TaskID, &e.Version, &e.At, &e.Stage, &e.Action, &e.Status, &e.Detail, &e.Event, &e.Worker, &e.Run)
		e.At = e.At.UTC()
		return e, err
	}, `SELECT task_id, version, ts, stage, action, status, detail, event_id, worker, run FROM task_stage_logs WHERE task_id = $1 ORDER BY version`, id)
	if err == nil && len(entries) == 0 {
		err = stage.NotFound(id)
	}
	return entries, err
}

// Clean implements stage.Store.
func (s *Store) Clean(ctx context.Context, now time.Time, keep time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	tag, err := s.pool.Exec(ctx, `DELETE FROM task_histories WHERE deadline IS NULL AND updated_at <= $1`, now.Add(-keep))
	return int(tag.RowsAffected()), s.fail(err)
}
