// Package postgres stores records in Postgres, where servers on several machines share them.
// Every write locks the row of its space, so that writes to one space are sequential, and a
// writer reads the writes of others before its own.
//
// A space is one records.Store. Its row in cairn_spaces has the generations of the last
// write and of the last removal. Each record has the generation of its last write. A reader
// requests the records after its generation, or all records if there was a removal since.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cairn/internal/toolbox/records"
)

const schema = `
CREATE TABLE IF NOT EXISTS cairn_spaces (
  space text PRIMARY KEY, generation bigint NOT NULL DEFAULT 0, removed bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS cairn_records (
  space text, bucket text, key bytea, value bytea NOT NULL, generation bigint NOT NULL, PRIMARY KEY (space, bucket, key));
CREATE INDEX IF NOT EXISTS cairn_records_generation ON cairn_records (space, generation);
CREATE TABLE IF NOT EXISTS cairn_vectors (model text, key bytea, vector bytea NOT NULL, PRIMARY KEY (model, key));`

// schemaLock is the advisory lock of processes that create the tables: "cairnrec".
const schemaLock = 0x636169726e726563

const (
	// Age bounds the age of the result of Since, and so the time until one server sees the
	// writes of another.
	Age = 500 * time.Millisecond
	// retryAfter is the time until the next attempt after the server did not answer.
	retryAfter = 2 * time.Second
	// readTimeout and writeTimeout bound one call.
	readTimeout  = 3 * time.Second
	writeTimeout = 20 * time.Second
)

// DB is a connection to a database. It is safe for concurrent use.
type DB struct {
	pool   *pgxpool.Pool
	server string // for errors: without user and password
	log    *slog.Logger
}

// Open connects to a database and creates missing tables. log may be nil.
func Open(ctx context.Context, url string, log *slog.Logger) (*DB, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil { // err may contain the password
		return nil, errors.New("the address of Postgres is not valid, want postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	c := config.ConnConfig
	c.ConnectTimeout = readTimeout
	db := &DB{server: "Postgres at " + net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), log: log}
	if db.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, db.fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, schema)
		return err
	})
	if err != nil {
		db.pool.Close()
		return nil, db.fail(err)
	}
	return db, nil
}

// Close closes the connections.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

func (db *DB) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", db.server, err)
}

// Store is a space of a database.
type Store struct {
	db    *DB
	space string

	mu         sync.Mutex
	generation uint64    // the generation of the last read
	next       time.Time // the time before which Since does not query the database
}

var _ records.Store = (*Store)(nil)

// Store returns the records of a space.
func (db *DB) Store(space string) *Store { return &Store{db: db, space: space} }

// Since implements records.Store. While the database does not answer, it returns no changes
// to a caller that has read the records before.
func (s *Store) Since(ctx context.Context, generation uint64) (records.Changes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation > 0 && generation >= s.generation && time.Now().Before(s.next) {
		return records.Changes{Generation: generation}, nil
	}
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	c, err := s.since(reading, s.db.pool, generation)
	if err != nil && generation > 0 && ctx.Err() == nil {
		s.next = time.Now().Add(retryAfter)
		s.db.log.Warn("reading shared records", "space", s.space, "error", s.db.fail(err))
		return records.Changes{Generation: generation}, nil
	}
	if err != nil {
		return records.Changes{}, s.db.fail(err)
	}
	s.generation, s.next = c.Generation, time.Now().Add(Age)
	return c, nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// changed is one statement, so that it reads one state of the database. Without changes it
// returns one row without a record.
const changed = `
SELECT s.generation, s.removed > $2 OR $2 = 0, r.bucket, r.key, r.value FROM cairn_spaces s
LEFT JOIN cairn_records r ON r.space = s.space AND r.generation > CASE WHEN s.removed > $2 THEN 0 ELSE $2 END
WHERE s.space = $1 ORDER BY r.bucket COLLATE "C", r.key`

func (s *Store) since(ctx context.Context, q querier, generation uint64) (c records.Changes, err error) {
	rows, err := q.Query(ctx, changed, s.space, int64(generation))
	if err != nil {
		return c, err
	}
	var bucket *string
	var key, value []byte
	_, err = pgx.ForEachRow(rows, []any{&c.Generation, &c.Whole, &bucket, &key, &value}, func() error {
		if bucket != nil {
			c.Records = append(c.Records, records.Record{Bucket: *bucket, Key: string(key), Value: value})
		}
		value = nil // the record keeps it
		return nil
	})
	return c, err
}

const (
	createSpace = `INSERT INTO cairn_spaces (space) VALUES ($1) ON CONFLICT DO NOTHING`
	lockSpace   = `SELECT FROM cairn_spaces WHERE space = $1 FOR UPDATE`
	upsert      = `
INSERT INTO cairn_records (space, bucket, key, value, generation)
SELECT $1, unnest($2::text[]), unnest($3::bytea[]), unnest($4::bytea[]), $5
ON CONFLICT (space, bucket, key) DO UPDATE SET value = excluded.value, generation = excluded.generation`
	remove = `
DELETE FROM cairn_records r USING unnest($2::text[], $3::bytea[]) AS d(bucket, key)
WHERE r.space = $1 AND r.bucket = d.bucket AND r.key = d.key`
	advance = `UPDATE cairn_spaces SET generation = $2, removed = CASE WHEN $3 THEN $2 ELSE removed END WHERE space = $1`
)

// columns holds records to write, or to remove, as arrays. If several have the same key, it
// holds the last, because a statement must not write a row twice.
func columns(list []records.Record, removed bool) (buckets []string, keys, values [][]byte) {
	type name struct{ bucket, key string }
	at := map[name]int{}
	for i, r := range list {
		at[name{r.Bucket, r.Key}] = i
	}
	for i, r := range list {
		if at[name{r.Bucket, r.Key}] == i && removed == (r.Value == nil) {
			buckets, keys, values = append(buckets, r.Bucket), append(keys, []byte(r.Key)), append(values, r.Value)
		}
	}
	return buckets, keys, values
}

// Update implements records.Store.
func (s *Store) Update(ctx context.Context, generation uint64, write func(records.Changes) ([]records.Record, error)) (next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(createSpace, s.space)
		b.Queue(lockSpace, s.space)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		c, err := s.since(ctx, tx, generation)
		if err != nil {
			return err
		}
		next = c.Generation
		list, err := write(c)
		if err != nil || len(list) == 0 {
			return err
		}
		next++
		b = &pgx.Batch{}
		buckets, keys, values := columns(list, false)
		b.Queue(upsert, s.space, buckets, keys, values, int64(next))
		buckets, keys, _ = columns(list, true)
		b.Queue(remove, s.space, buckets, keys)
		b.Queue(advance, s.space, int64(next), len(keys) > 0)
		return tx.SendBatch(ctx, b).Close()
	})
	return next, s.db.fail(err)
}
