// Package embedded stores stage tasks in one local file, without a server.
//
// # Buckets
//
//	stage.active   id -> state as JSON; until KeepActive after the end
//	stage.archive  id -> state as JSON of tasks that have ended
//	stage.log      id 0 version:8 -> entry as JSON
//	stage.recent   ^created:8 id -> user; all tasks, newest first
//	stage.user     user 0 ^created:8 id -> nothing
//	stage.due      deadline:8 id -> nothing
//	stage.resend   id -> time:8 run:8; all open jobs, few enough to scan
//	stage.expire   time:8 id -> nothing; ends of active copies
//	stage.retire   time:8 id -> nothing; ends of archived copies
//
// Numbers are big-endian, times are milliseconds since 1970, ^ is the
// complement. Ids and users hold no zero byte.
package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"cairn/internal/kv"
	"cairn/internal/stage"
)

// DB holds the buckets; *kv.DB is one.
type DB interface {
	View(func(*kv.Tx) error) error
	Update(func(*kv.Tx) error) error
}

// Store is a stage.Store in a file.
type Store struct {
	db    DB
	close func() error

	mu      sync.Mutex
	pending []*write // writes that wait for the current commit
	busy    bool     // a commit is in progress
}

// Open returns the store in db. Close calls close, which may be nil.
func Open(db DB, close func() error) *Store { return &Store{db: db, close: close} }

var _ stage.Store = (*Store)(nil)

// Close calls the function given to Open.
func (s *Store) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

const (
	active  = "stage.active"
	archive = "stage.archive"
	logged  = "stage.log"
	recent  = "stage.recent"
	byUser  = "stage.user"
	due     = "stage.due"
	resend  = "stage.resend"
	expire  = "stage.expire"
	retire  = "stage.retire"
)

// Buckets are the buckets of a Store.
func Buckets() []string {
	return []string{active, archive, logged, recent, byUser, due, resend, expire, retire}
}

// write is one change to commit.
type write struct {
	fn   func(*kv.Tx) error
	err  error
	done chan struct{}
}

// update commits fn together with all pending writes, as a commit costs the same
// for one change as for many. fn must return its refusals before its first write,
// since the other changes of the batch commit that write too.
func (s *Store) update(ctx context.Context, fn func(*kv.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{fn: fn, done: make(chan struct{})}
	s.mu.Lock()
	s.pending = append(s.pending, w)
	if s.busy {
		s.mu.Unlock()
		<-w.done // a commit cannot be cancelled
		return w.err
	}
	s.busy = true
	for len(s.pending) > 0 {
		batch := s.pending
		s.pending = nil
		s.mu.Unlock()
		s.commit(batch)
		s.mu.Lock()
	}
	s.busy = false
	s.mu.Unlock()
	return w.err
}

func (s *Store) commit(batch []*write) {
	err := s.db.Update(func(tx *kv.Tx) error {
		for _, w := range batch {
			w.err = w.fn(tx)
			if partial, ok := errors.AsType[*partialWriteError](w.err); ok {
				return partial // fn may have written: discard the whole batch
			}
		}
		return nil
	})
	for _, w := range batch {
		if w.err == nil {
			w.err = err
		}
		close(w.done)
	}
}

// partialWriteError is an error after fn may have written.
type partialWriteError struct{ err error }

func (e *partialWriteError) Error() string { return e.err.Error() }
func (e *partialWriteError) Unwrap() error { return e.err }

// Create implements stage.Store.
func (s *Store) Create(ctx context.Context, st *stage.State, fx *stage.Effects) error {
	return s.update(ctx, func(tx *kv.Tx) error {
		if old, err := load(tx, st.ID); err != nil || old != nil {
			if err == nil {
				err = stage.Exists(st.ID)
			}
			return err
		}
		return put(tx, nil, st, fx)
	})
}

// Update implements stage.Store.
func (s *Store) Update(ctx context.Context, id string, fn stage.Change) (next *stage.State, fx *stage.Effects, err error) {
	err = s.update(ctx, func(tx *kv.Tx) error {
		old, err := load(tx, id)
		if err != nil {
			return err
		}
		if old == nil {
			return stage.NotFound(id)
		}
		if next, fx, err = fn(old); err != nil {
			return err
		}
		return put(tx, old, next, fx)
	})
	if err != nil {
		return nil, nil, err
	}
	return next, fx, nil
}

// Load implements stage.Store.
func (s *Store) Load(_ context.Context, id string) (*stage.State, error) {
	var st *stage.State
	err := s.db.View(func(tx *kv.Tx) (err error) {
		st, err = load(tx, id)
		return err
	})
	if err == nil && st == nil {
		err = stage.NotFound(id)
	}
	return st, err
}

// List implements stage.Store.
func (s *Store) List(_ context.Context, q stage.Query) ([]*stage.State, error) {
	list := []*stage.State{}
	err := s.db.View(func(tx *kv.Tx) error {
		name, prefix := recent, []byte{}
		if q.UserID != "" {
			name, prefix = byUser, append([]byte(q.UserID), 0)
		}
		b, err := tx.Bucket(name)
		if err != nil {
			return err
		}
		var failed error
		b.Prefix(prefix, func(k, _ []byte) bool {
			st, err := load(tx, string(k[len(prefix)+8:]))
			if err != nil {
				failed = err
				return false
			}
			if st != nil && q.Matches(st) {
				list = append(list, st)
			}
			return len(list) < q.Bound()
		})
		return failed
	})
	return list, err
}

// Due implements stage.Store.
func (s *Store) Due(_ context.Context, now time.Time, limit int) ([]string, error) {
	var ids []string
	err := s.db.View(func(tx *kv.Tx) error {
		return scanUntil(tx, due, now, limit, func(k []byte) { ids = append(ids, string(k[8:])) })
	})
	return ids, err
}

// Unsent implements stage.Store.
func (s *Store) Unsent(_ context.Context, now time.Time, limit int) ([]stage.Job, error) {
	type waiting struct {
		id string
		at uint64
	}
	var jobs []stage.Job
	err := s.db.View(func(tx *kv.Tx) error {
		b, err := tx.Bucket(resend)
		if err != nil {
			return err
		}
		var list []waiting
		b.ForEach(func(k, v []byte) bool {
			if at := binary.BigEndian.Uint64(v); at <= uint64(now.UnixMilli()) {
				list = append(list, waiting{string(k), at})
			}
			return true
		})
		slices.SortStableFunc(list, func(a, b waiting) int { return cmp.Compare(a.at, b.at) })
		for _, w := range list[:min(limit, len(list))] {
			st, err := load(tx, w.id)
			if err != nil {
				return err
			}
			if st == nil {
				continue
			}
			if j, ok := st.Job(); ok {
				jobs = append(jobs, j)
			}
		}
		return nil
	})
	return jobs, err
}

// Postpone implements stage.Store.
func (s *Store) Postpone(ctx context.Context, at time.Time, jobs ...stage.Job) error {
	return s.update(ctx, func(tx *kv.Tx) error {
		b, err := tx.Bucket(resend)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			v := b.Get([]byte(j.TaskID))
			if v == nil || binary.BigEndian.Uint64(v[8:]) != uint64(j.Run) {
				continue
			}
			if err := b.Put([]byte(j.TaskID), slices.Concat(number(uint64(at.UnixMilli())), number(uint64(j.Run)))); err != nil {
				return &partialWriteError{err}
			}
		}
		return nil
	})
}

// Log implements stage.Store.
func (s *Store) Log(_ context.Context, id string) ([]stage.Entry, error) {
	var entries []stage.Entry
	err := s.db.View(func(tx *kv.Tx) error {
		b, err := tx.Bucket(logged)
		if err != nil {
			return err
		}
		var failed error
		b.Prefix(append([]byte(id), 0), func(k, v []byte) bool {
			var e stage.Entry
			if failed = json.Unmarshal(v, &e); failed != nil {
				failed = fmt.Errorf("reading the log of task %s: %w", id, failed)
				return false
			}
			entries = append(entries, e)
			return true
		})
		return failed
	})
	if err == nil && len(entries) == 0 {
		err = stage.NotFound(id)
	}
	return entries, err
}

// maxCleaned bounds the tasks that one commit of Clean deletes.
const maxCleaned = 500

// Clean implements stage.Store.
func (s *Store) Clean(ctx context.Context, now time.Time) (int, error) {
	total := 0
	for {
		var expired, retired [][]byte
		err := s.db.View(func(tx *kv.Tx) error {
			return errors.Join(
				scanUntil(tx, expire, now, maxCleaned, func(k []byte) { expired = append(expired, bytes.Clone(k)) }),
				scanUntil(tx, retire, now, maxCleaned, func(k []byte) { retired = append(retired, bytes.Clone(k)) }))
		})
		if err != nil || len(expired)+len(retired) == 0 {
			return total, err
		}
		err = s.update(ctx, func(tx *kv.Tx) error {
			w := &writer{tx: tx}
			for _, k := range expired {
				w.delete(expire, k)
				w.delete(active, k[8:])
			}
			for _, k := range retired {
				w.delete(retire, k)
				w.deleteTask(string(k[8:]))
			}
			return w.partial()
		})
		if err != nil {
			return total, err
		}
		total += len(retired)
	}
}

// load returns a task, nil if there is none.
func load(tx *kv.Tx, id string) (*stage.State, error) {
	for _, name := range []string{active, archive} {
		b, err := tx.Bucket(name)
		if err != nil {
			return nil, err
		}
		if text := b.Get([]byte(id)); id != "" && text != nil {
			st := &stage.State{}
			if err := json.Unmarshal(text, st); err != nil {
				return nil, fmt.Errorf("reading task %s: %w", id, err)
			}
			return st, nil
		}
	}
	return nil, nil
}

// put stores a state, its log entry and its index entries. old is nil for a new task.
func put(tx *kv.Tx, old, st *stage.State, fx *stage.Effects) error {
	text, err := stage.Encode(st)
	if err != nil {
		return err
	}
	if err := putEntry(tx, fx.Entry); err != nil {
		return err
	}
	w := &writer{tx: tx}
	if old == nil {
		w.put(recent, newest(st.StartedAt, st.ID), nil)
		w.put(byUser, append(append([]byte(st.UserID), 0), newest(st.StartedAt, st.ID)...), nil)
	} else if d := old.Deadline(); !d.IsZero() {
		w.delete(due, timed(d, st.ID))
		w.delete(resend, []byte(st.ID))
	}
	w.put(active, []byte(st.ID), text)
	if st.Status.Final() {
		w.put(archive, []byte(st.ID), text)
		w.put(expire, timed(st.UpdatedAt.Add(stage.KeepActive), st.ID), nil)
		w.put(retire, timed(st.UpdatedAt.Add(stage.KeepArchive), st.ID), nil)
	} else {
		w.put(due, timed(st.Deadline(), st.ID), nil)
		if j, ok := st.Job(); ok {
			w.put(resend, []byte(st.ID), slices.Concat(number(uint64(st.UpdatedAt.Add(stage.ResendAfter).UnixMilli())), number(uint64(j.Run))))
		}
	}
	return w.partial()
}

// putEntry appends an entry to a task's log.
func putEntry(tx *kv.Tx, e stage.Entry) error {
	text, err := stage.Encode(e)
	if err != nil {
		return err
	}
	w := &writer{tx: tx}
	w.put(logged, append(append([]byte(e.TaskID), 0), number(uint64(e.Version))...), text)
	return w.partial()
}

// writer keeps the first error of several writes.
type writer struct {
	tx  *kv.Tx
	err error
}

func (w *writer) bucket(name string) *kv.Bucket {
	b, err := w.tx.Bucket(name)
	if err != nil && w.err == nil {
		w.err = err
	}
	return b
}

func (w *writer) put(bucket string, key, value []byte) {
	if b := w.bucket(bucket); w.err == nil {
		w.err = b.Put(key, append([]byte{}, value...))
	}
}

func (w *writer) delete(bucket string, key []byte) {
	if b := w.bucket(bucket); w.err == nil {
		w.err = b.Delete(key)
	}
}

// partial returns the first error as a partialWriteError.
func (w *writer) partial() error {
	if w.err == nil {
		return nil
	}
	return &partialWriteError{w.err}
}

// deleteTask deletes a task, its log and its index entries.
func (w *writer) deleteTask(id string) {
	st, err := load(w.tx, id)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.delete(active, []byte(id))
	w.delete(archive, []byte(id))
	if st != nil {
		w.delete(expire, timed(st.UpdatedAt.Add(stage.KeepActive), id))
		w.delete(recent, newest(st.StartedAt, id))
		w.delete(byUser, append(append([]byte(st.UserID), 0), newest(st.StartedAt, id)...))
	}
	b := w.bucket(logged)
	if w.err != nil {
		return
	}
	var keys [][]byte
	b.Prefix(append([]byte(id), 0), func(k, _ []byte) bool {
		keys = append(keys, bytes.Clone(k))
		return true
	})
	for _, k := range keys {
		w.delete(logged, k)
	}
}

// scanUntil calls fn with the keys of a bucket of times up to now.
func scanUntil(tx *kv.Tx, bucket string, now time.Time, limit int, fn func(key []byte)) error {
	b, err := tx.Bucket(bucket)
	if err != nil {
		return err
	}
	n := 0
	b.ForEach(func(k, _ []byte) bool {
		if n == limit || binary.BigEndian.Uint64(k) > uint64(now.UnixMilli()) {
			return false
		}
		n++
		fn(k)
		return true
	})
	return nil
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func timed(t time.Time, id string) []byte { return append(number(uint64(t.UnixMilli())), id...) }

func newest(t time.Time, id string) []byte { return append(number(^uint64(t.UnixMilli())), id...) }
