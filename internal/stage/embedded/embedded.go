// Package embedded stores question tasks in a local file, without a server.
//
// # Buckets
//
//	stage.tasks   id -> state as JSON
//	stage.log     id 0 version:8 -> entry as JSON
//	stage.recent  ^created:8 id -> empty; all tasks, newest first
//	stage.open    id -> deadline:8 resend:8 run:8 stage; the unfinished tasks, few
//	              enough to scan. resend is the maximum if the task has no job.
//	stage.retire  time:8 id -> empty; KeepArchive after the end of a finished task
//
// Numbers are big-endian, times are milliseconds since 1970, ^ is the bitwise complement.
// Ids contain no zero byte.
package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"cairn/internal/stage"
	"cairn/internal/store/kv"
)

// Store is a stage.Store in a file.
type Store struct {
	file *kv.File

	committing sync.Mutex // held during a commit

	mu      sync.Mutex
	pending []*write // writes that wait for the end of the current commit
}

// Open returns the Store in a file. Store.Close closes the file.
func Open(file *kv.File) *Store { return &Store{file: file} }

var _ stage.Store = (*Store)(nil)

// Close closes the file.
func (s *Store) Close() error { return s.file.Close() }

const (
	tasks   = "stage.tasks"
	logged  = "stage.log"
	recent  = "stage.recent"
	waiting = "stage.open"
	retire  = "stage.retire"
)

// Buckets are the buckets of a Store.
func Buckets() []string { return []string{tasks, logged, recent, waiting, retire} }

// write is one change to commit.
type write struct {
	fn   func(*writer) error
	err  error
	done bool // it is committed, or has failed
}

// update commits fn together with all pending writes, because a commit of many changes takes
// as long as a commit of one. fn must return its errors before its first write, because the
// batch commits that write with the other changes.
func (s *Store) update(ctx context.Context, fn func(*writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{fn: fn}
	s.mu.Lock()
	s.pending = append(s.pending, w)
	s.mu.Unlock()
	s.committing.Lock() // a commit cannot be cancelled
	defer s.committing.Unlock()
	if !w.done {
		s.commit()
	}
	return w.err
}

// commit commits the pending writes. The caller holds s.committing.
func (s *Store) commit() {
	s.mu.Lock()
	batch := s.pending
	s.pending = nil
	s.mu.Unlock()
	err := s.file.Update(func(tx *kv.Tx) error {
		to := &writer{tx: tx}
		for _, w := range batch {
			if w.err = w.fn(to); to.err != nil {
				return to.err
			}
		}
		return nil
	})
	for _, w := range batch {
		w.err, w.done = cmp.Or(w.err, err), true
	}
}

// Update implements stage.Store.
func (s *Store) Update(ctx context.Context, id string, fn stage.Change) (next *stage.State, fx *stage.Effects, err error) {
	err = s.update(ctx, func(w *writer) error {
		old, err := load(w.tx, id)
		if err != nil {
			return err
		}
		if next, fx, err = fn(old); err != nil {
			return err
		}
		return w.transition(old, next, fx)
	})
	if err != nil {
		return nil, nil, err
	}
	return next, fx, nil
}

// Load implements stage.Store.
func (s *Store) Load(_ context.Context, id string) (*stage.State, error) {
	var st *stage.State
	err := s.file.View(func(tx *kv.Tx) (err error) {
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
	err := s.each(recent, nil, func(tx *kv.Tx, k, _ []byte) (bool, error) {
		st, err := load(tx, string(k[8:]))
		if st != nil && q.Matches(st) {
			list = append(list, st)
		}
		return len(list) < q.Bound(), err
	})
	return list, err
}

// each calls fn with the entries of a bucket whose keys have a prefix, until fn returns
// false or an error.
func (s *Store) each(bucket string, prefix []byte, fn func(tx *kv.Tx, k, v []byte) (more bool, err error)) error {
	return s.file.View(func(tx *kv.Tx) error {
		b, err := tx.Bucket(bucket)
		if err == nil {
			b.Prefix(prefix, func(k, v []byte) (more bool) {
				more, err = fn(tx, k, v)
				return more && err == nil
			})
		}
		return err
	})
}

// timer is an entry of the bucket of open tasks. Times are milliseconds since 1970.
type timer struct {
	job              stage.Job
	deadline, resend uint64
}

// noJob is the value of resend for a task without a job.
const noJob = math.MaxUint64

func (t *timer) encode() []byte {
	return slices.Concat(number(t.deadline), number(t.resend), number(uint64(t.job.Run)), []byte(t.job.Stage))
}

func decodeTimer(id, b []byte) timer {
	return timer{
		job:      stage.Job{TaskID: string(id), Stage: stage.Stage(b[24:]), Run: int(binary.BigEndian.Uint64(b[16:]))},
		deadline: binary.BigEndian.Uint64(b), resend: binary.BigEndian.Uint64(b[8:]),
	}
}

// until returns the timers whose time, according to of, is not after now, the earliest first.
func (s *Store) until(now time.Time, limit int, of func(timer) uint64) (list []timer, err error) {
	err = s.each(waiting, nil, func(_ *kv.Tx, k, v []byte) (bool, error) {
		if t := decodeTimer(k, v); of(t) <= uint64(now.UnixMilli()) {
			list = append(list, t)
		}
		return true, nil
	})
	slices.SortStableFunc(list, func(a, b timer) int { return cmp.Compare(of(a), of(b)) })
	return list[:min(limit, len(list))], err
}

// Due implements stage.Store.
func (s *Store) Due(_ context.Context, now time.Time, limit int) (ids []string, err error) {
	list, err := s.until(now, limit, func(t timer) uint64 { return t.deadline })
	for _, t := range list {
		ids = append(ids, t.job.TaskID)
	}
	return ids, err
}

// Unsent implements stage.Store.
func (s *Store) Unsent(_ context.Context, now time.Time, limit int) (jobs []stage.Job, err error) {
	list, err := s.until(now, limit, func(t timer) uint64 { return t.resend })
	for _, t := range list {
		jobs = append(jobs, t.job)
	}
	return jobs, err
}

// Postpone implements stage.Store.
func (s *Store) Postpone(ctx context.Context, at time.Time, jobs ...stage.Job) error {
	return s.update(ctx, func(w *writer) error {
		b := w.bucket(waiting)
		for _, j := range jobs {
			if w.err != nil {
				return w.err
			}
			v := b.Get([]byte(j.TaskID))
			if v == nil {
				continue
			}
			if t := decodeTimer([]byte(j.TaskID), v); t.job == j && t.resend != noJob {
				t.resend = uint64(at.UnixMilli())
				w.put(waiting, []byte(j.TaskID), t.encode())
			}
		}
		return w.err
	})
}

// Log implements stage.Store.
func (s *Store) Log(_ context.Context, id string) (entries []stage.Entry, err error) {
	err = s.each(logged, append([]byte(id), 0), func(_ *kv.Tx, _, v []byte) (bool, error) {
		entries = append(entries, stage.Entry{})
		return true, json.Unmarshal(v, &entries[len(entries)-1])
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the log of task %s: %w", id, err)
	case len(entries) == 0:
		return nil, stage.NotFound(id)
	}
	return entries, nil
}

// maxCleaned is the maximum number of tasks that one commit of Clean deletes.
const maxCleaned = 500

// Clean implements stage.Store.
func (s *Store) Clean(ctx context.Context, now time.Time, keep time.Duration) (int, error) {
	total, due := 0, now.Add(stage.KeepArchive-keep).UnixMilli()
	for {
		var retired [][]byte
		err := s.each(retire, nil, func(_ *kv.Tx, k, _ []byte) (bool, error) {
			if int64(binary.BigEndian.Uint64(k)) > due {
				return false, nil
			}
			retired = append(retired, bytes.Clone(k))
			return len(retired) < maxCleaned, nil
		})
		if err != nil || len(retired) == 0 {
			return total, err
		}
		err = s.update(ctx, func(w *writer) error {
			for _, k := range retired {
				w.delete(retire, k)
				w.deleteTask(string(k[8:]))
			}
			return w.err
		})
		if err != nil {
			return total, err
		}
		total += len(retired)
	}
}

// load returns a task, nil if there is none.
func load(tx *kv.Tx, id string) (*stage.State, error) {
	b, err := tx.Bucket(tasks)
	if err != nil || id == "" {
		return nil, err
	}
	text := b.Get([]byte(id))
	if text == nil {
		return nil, nil
	}
	st := &stage.State{}
	if err := json.Unmarshal(text, st); err != nil {
		return nil, fmt.Errorf("reading task %s: %w", id, err)
	}
	return st, nil
}

// writer writes in a transaction and keeps the first error.
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

// transition stores a state, its log entry and its index entries. old is nil for a new
// task.
func (w *writer) transition(old, st *stage.State, fx *stage.Effects) error {
	text, err := stage.Encode(st)
	if err != nil {
		return err
	}
	entry, err := stage.Encode(fx.Entry)
	if err != nil {
		return err
	}
	w.put(logged, append(append([]byte(fx.Entry.TaskID), 0), number(uint64(fx.Entry.Version))...), entry)
	w.put(tasks, []byte(st.ID), text)
	if old == nil {
		w.put(recent, newest(st), nil)
	}
	if st.Status.Final() {
		w.delete(waiting, []byte(st.ID))
		w.put(retire, append(number(uint64(st.UpdatedAt.Add(stage.KeepArchive).UnixMilli())), st.ID...), nil)
	} else {
		t := timer{deadline: uint64(st.Deadline().UnixMilli()), resend: noJob}
		if j, ok := st.Job(); ok {
			t.job, t.resend = j, uint64(st.UpdatedAt.Add(stage.ResendAfter).UnixMilli())
		}
		w.put(waiting, []byte(st.ID), t.encode())
	}
	return w.err
}

// deleteTask deletes a finished task with its log and its index entries.
func (w *writer) deleteTask(id string) {
	st, err := load(w.tx, id)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.delete(tasks, []byte(id))
	if st != nil {
		w.delete(recent, newest(st))
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

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// newest returns the key of a task in the bucket stage.recent.
func newest(st *stage.State) []byte {
	return append(number(^uint64(st.StartedAt.UnixMilli())), st.ID...)
}
