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
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"cairn/internal/base/pg"
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
	pool *pg.Pool
	log  *slog.Logger
}

// Open connects to a database and creates missing tables. log may be nil.
func Open(ctx context.Context, url string, log *slog.Logger) (*DB, error) {
	pool, err := pg.Open(url, readTimeout)
	if err != nil {
		return nil, err
	}
	db := &DB{pool, cmp.Or(log, slog.New(slog.DiscardHandler))}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := pool.CreateTables(ctx, schemaLock, schema); err != nil {
		pool.Close()
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
	return fmt.Errorf("%s: %w", db.pool.Server, err)
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
	var c records.Changes
	err := s.db.pool.With(reading, func(conn *pg.Conn) (err error) {
		c, err = s.since(reading, conn, generation)
		return err
	})
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

// changed is one statement, so that it reads one state of the database. Without changes it
// returns one row without a record.
const changed = `
SELECT s.generation, s.removed > $2 OR $2 = 0, r.bucket, r.key, r.value FROM cairn_spaces s
LEFT JOIN cairn_records r ON r.space = s.space AND r.generation > CASE WHEN s.removed > $2 THEN 0 ELSE $2 END
WHERE s.space = $1 ORDER BY r.bucket COLLATE "C", r.key`

func (s *Store) since(ctx context.Context, conn *pg.Conn, generation uint64) (c records.Changes, err error) {
	err = conn.Query(ctx, func(row pg.Row) error {
		var r records.Record
		var key []byte
		if err := row.Scan(&c.Generation, &c.Whole, &r.Bucket, &key, &r.Value); err != nil {
			return err
		}
		if key != nil {
			r.Key = string(key)
			c.Records = append(c.Records, r)
		}
		return nil
	}, changed, s.space, generation)
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
	last := map[[2]string]int{}
	for i, r := range list {
		last[[2]string{r.Bucket, r.Key}] = i
	}
	for i, r := range list {
		if last[[2]string{r.Bucket, r.Key}] == i && removed == (r.Value == nil) {
			buckets, keys, values = append(buckets, r.Bucket), append(keys, []byte(r.Key)), append(values, r.Value)
		}
	}
	return buckets, keys, values
}

// Update implements records.Store.
func (s *Store) Update(ctx context.Context, generation uint64, write func(records.Changes) ([]records.Record, error)) (next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = s.db.pool.Begin(ctx, func(conn *pg.Conn) error {
		if _, err := conn.Exec(ctx, pg.Statement{SQL: createSpace, Args: []any{s.space}}, pg.Statement{SQL: lockSpace, Args: []any{s.space}}); err != nil {
			return err
		}
		c, err := s.since(ctx, conn, generation)
		if err != nil {
			return err
		}
		next = c.Generation
		list, err := write(c)
		if err != nil || len(list) == 0 {
			return err
		}
		next++
		buckets, keys, values := columns(list, false)
		removedBuckets, removedKeys, _ := columns(list, true)
		_, err = conn.Exec(ctx,
			pg.Statement{SQL: upsert, Args: []any{s.space, buckets, keys, values, next}},
			pg.Statement{SQL: remove, Args: []any{s.space, removedBuckets, removedKeys}},
			pg.Statement{SQL: advance, Args: []any{s.space, next, len(removedKeys) > 0}})
		return err
	})
	return next, s.db.fail(err)
}

// Vectors is a cache of the vectors of a model by the SHA-256 of the text. Servers share it,
// so that only one of them embeds a text. After an error the text is embedded again.
type Vectors struct {
	db        *DB
	model     string
	dimension int
}

// Vectors returns the cache of a model.
func (db *DB) Vectors(model string, dimension int) *Vectors { return &Vectors{db, model, dimension} }

// Get returns the vector of each key, nil for an unknown key.
func (v *Vectors) Get(keys [][32]byte) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	vectors := make([][]float32, len(keys))
	err := v.db.pool.With(ctx, func(c *pg.Conn) error {
		return c.Query(ctx, func(row pg.Row) error {
			var n int
			var b []byte
			err := row.Scan(&n, &b)
			if err == nil {
				vectors[n-1] = v.decode(b)
			}
			return err
		}, `SELECT k.n, v.vector FROM unnest($2::bytea[]) WITH ORDINALITY AS k(key, n) JOIN cairn_vectors v ON v.model = $1 AND v.key = k.key`, v.model, slicesOf(keys))
	})
	return vectors, v.db.fail(err)
}

// Put stores vectors.
func (v *Vectors) Put(keys [][32]byte, vectors [][]float32) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	values := make([][]byte, len(vectors))
	for i, vector := range vectors {
		for _, x := range vector {
			values[i] = binary.LittleEndian.AppendUint32(values[i], math.Float32bits(x))
		}
	}
	err := v.db.pool.With(ctx, func(c *pg.Conn) error {
		_, err := c.Exec(ctx, pg.Statement{
			SQL:  `INSERT INTO cairn_vectors (model, key, vector) SELECT $1, unnest($2::bytea[]), unnest($3::bytea[]) ON CONFLICT DO NOTHING`,
			Args: []any{v.model, slicesOf(keys), values},
		})
		return err
	})
	return v.db.fail(err)
}

func slicesOf(keys [][32]byte) [][]byte {
	list := make([][]byte, len(keys))
	for i := range keys {
		list[i] = keys[i][:]
	}
	return list
}

// decode returns nil for bytes that are not a vector of the model.
func (v *Vectors) decode(b []byte) []float32 {
	if len(b) != 4*v.dimension {
		return nil
	}
	vector := make([]float32, v.dimension)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if x := float64(vector[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return vector
}
