package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"cairn/internal/stage"
)

const (
	lease = 30 * time.Second // lifetime of the lease to restore tasks
	page  = 500              // tasks restored or cleaned in one step
)

// ensure restores the unfinished tasks of the archive to a Redis that lacks stage:epoch: a
// new one, or one that has lost its data.
func (s *Store) ensure(ctx context.Context) error {
	filled, err := redis.Bool(s.do(ctx, "EXISTS", keyEpoch))
	if err != nil || filled {
		return s.fail(err)
	}
	return s.leased(ctx, func(token string) error {
		if filled, err := redis.Bool(s.do(ctx, "EXISTS", keyEpoch)); err != nil || filled {
			return s.fail(err) // another process has filled it
		}
		total := 0
		err := s.unfinished(ctx, func(ids []string) error {
			n, err := s.restore(ctx, token, ids)
			total += n
			return err
		})
		if err != nil {
			return err
		}
		if total > 0 {
			s.log.Info("filled Redis from the archive", "tasks", total)
		}
		return s.holding(ctx, token, nil, func(c redis.Conn) error {
			return exec(ctx, c, batch{{"SET", []any{keyEpoch, time.Now().UnixMilli()}}})
		})
	})
}

// unfinished calls fn with pages of the ids of the archive's unfinished tasks.
func (s *Store) unfinished(ctx context.Context, fn func(ids []string) error) error {
	for after := ""; ; {
		list, err := s.archive.Unfinished(ctx, after, page)
		if err != nil || len(list) == 0 {
			return err
		}
		ids := make([]string, len(list))
		for i, st := range list {
			ids[i] = st.ID
		}
		if err := fn(ids); err != nil || len(list) < page {
			return err
		}
		after = ids[len(ids)-1]
	}
}

// adopt restores single tasks that Redis lacks. A transition made directly before Redis lost
// its data may reach the archive after Redis was filled.
func (s *Store) adopt(ctx context.Context, ids ...string) error {
	return s.leased(ctx, func(token string) error {
		_, err := s.restore(ctx, token, ids)
		return err
	})
}

// reconcile restores the unfinished tasks of the archive that Redis lacks.
func (s *Store) reconcile(ctx context.Context) error {
	return s.unfinished(ctx, func(ids []string) error {
		found, err := redis.Values(s.do(ctx, "MGET", taskKeys(ids)...))
		if err != nil {
			return s.fail(err)
		}
		missing := absent(found, ids)
		if len(missing) == 0 {
			return nil
		}
		s.log.Info("restoring tasks from the archive", "tasks", len(missing))
		return s.adopt(ctx, missing...)
	})
}

// absent returns the ids without a value in found, the reply to MGET.
func absent(found []any, ids []string) (missing []string) {
	for i, text := range found {
		if text == nil {
			missing = append(missing, ids[i])
		}
	}
	return missing
}

func taskKeys(ids []string) []any {
	keys := make([]any, len(ids))
	for i, id := range ids {
		keys[i] = taskKey(id)
	}
	return keys
}

// leased takes the lease to restore tasks, calls fn and releases the lease. token identifies
// the holder of the lease.
func (s *Store) leased(ctx context.Context, fn func(token string) error) error {
	token := rand.Text()
	for {
		taken, err := s.do(ctx, "SET", keyLease, token, "NX", "EX", seconds(lease))
		if err != nil {
			return s.fail(err)
		}
		if taken != nil {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := fn(token)
	after := context.WithoutCancel(ctx)
	released := s.holding(after, token, nil, func(c redis.Conn) error { return exec(after, c, batch{{"DEL", []any{keyLease}}}) })
	if errors.Is(err, errLease) || errors.Is(err, errConflict) {
		return stage.Unavailable(s.server, err) // the caller tries again
	}
	if err == nil && released != nil {
		s.log.Warn("releasing the lease to restore tasks; it expires", "error", s.fail(released))
	}
	return err
}

var errLease = errors.New("restoring tasks took too long")

// holding calls fn with a connection on which exec fails if token no longer holds the lease
// or one of the tasks has changed.
func (s *Store) holding(ctx context.Context, token string, ids []string, fn func(redis.Conn) error) error {
	keys := []string{keyLease}
	for _, id := range ids {
		keys = append(keys, taskKey(id))
	}
	return s.watch(ctx, keys, func(c redis.Conn) error {
		if held, err := redis.String(c.Do("GET", keyLease)); err != nil && !errors.Is(err, redis.ErrNil) {
			return err
		} else if held != token {
			return errLease
		}
		return fn(c)
	})
}

// restore writes the unfinished tasks that Redis lacks, as a new generation. It makes their
// jobs due at once, because the workers may have dropped them.
func (s *Store) restore(ctx context.Context, token string, ids []string) (n int, err error) {
	err = s.holding(ctx, token, ids, func(c redis.Conn) error {
		found, err := redis.Values(c.Do("MGET", taskKeys(ids)...))
		if err != nil {
			return err
		}
		missing := absent(found, ids)
		if len(missing) == 0 {
			return nil
		}
		list, err := s.archive.Resume(ctx, time.Now(), missing...)
		if err != nil {
			return err
		}
		n = len(list)
		b := batch{{"EXPIRE", []any{keyLease, seconds(lease)}}}
		for _, st := range list {
			if err := b.putBack(st); err != nil {
				return err
			}
		}
		return exec(ctx, c, b)
	})
	if errors.Is(err, errLease) || errors.Is(err, errConflict) {
		return 0, err
	}
	return n, s.fail(err)
}

func (b *batch) putBack(st *stage.State) error {
	text, err := stage.Encode(st)
	if err != nil {
		return err
	}
	outputs, err := stage.Encode(st.Context)
	if err != nil {
		return err
	}
	key := taskKey(st.ID)
	b.add("SET", key, text)
	b.add("SET", key+":context", outputs)
	b.setHits(st)
	b.add("ZADD", keyDue, score(st.Deadline()), st.ID)
	b.addToUser(st)
	if j, ok := st.Job(); ok {
		b.add("ZADD", keyResend, score(st.StartedAt), member(j))
	}
	return nil
}
