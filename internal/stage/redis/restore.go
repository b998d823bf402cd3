package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"cairn/internal/stage"
)

// The bounds of filling an empty Redis.
const (
	lease = 30 * time.Second
	page  = 500
)

// ensure fills a Redis that does not hold what the archive has unfinished: a
// new one, or one that has lost its memory.
func (s *Store) ensure(ctx context.Context) error {
	n, err := s.client.Exists(ctx, keyEpoch).Result()
	if err != nil || n == 1 {
		return s.fail(err)
	}
	return s.leased(ctx, func(token string) error {
		if n, err := s.client.Exists(ctx, keyEpoch).Result(); err != nil || n == 1 {
			return s.fail(err) // somebody else has filled it
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
		return s.holding(ctx, token, nil, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, keyEpoch, strconv.FormatInt(time.Now().UnixMilli(), 10), 0)
				return nil
			})
			return err
		})
	})
}

// unfinished calls fn with pages of the ids of what the archive has unfinished.
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

// adopt brings back single tasks that Redis lacks: a transition that was made
// just before Redis was emptied, and came to the archive after it was filled.
func (s *Store) adopt(ctx context.Context, ids ...string) error {
	return s.leased(ctx, func(token string) error {
		_, err := s.restore(ctx, token, ids)
		return err
	})
}

// reconcile adopts what the archive has unfinished and Redis lacks.
func (s *Store) reconcile(ctx context.Context) error {
	return s.unfinished(ctx, func(ids []string) error {
		missing, err := s.missing(ctx, s.client, ids)
		if err != nil || len(missing) == 0 {
			return err
		}
		s.log.Info("bringing tasks back from the archive", "tasks", len(missing))
		return s.adopt(ctx, missing...)
	})
}

// missing returns those of ids that Redis does not have.
func (s *Store) missing(ctx context.Context, c redis.Cmdable, ids []string) ([]string, error) {
	found, err := c.MGet(ctx, taskKeys(ids)...).Result()
	if err != nil {
		return nil, s.fail(err)
	}
	var missing []string
	for i, text := range found {
		if text == nil {
			missing = append(missing, ids[i])
		}
	}
	return missing, nil
}

func taskKeys(ids []string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = taskKey(id)
	}
	return keys
}

// leased calls fn while nobody else restores; its token proves that.
func (s *Store) leased(ctx context.Context, fn func(token string) error) error {
	token := rand.Text()
	for {
		mine, err := s.client.SetNX(ctx, keyLease, token, lease).Result()
		if err != nil {
			return s.fail(err)
		}
		if mine {
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
	released := s.holding(after, token, nil, func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(after, func(p redis.Pipeliner) error { p.Del(after, keyLease); return nil })
		return err
	})
	if errors.Is(err, errLease) || errors.Is(err, redis.TxFailedErr) {
		return stage.Unavailable(s.server, err) // the caller comes again
	}
	if err == nil && released != nil {
		s.log.Warn("ending the restoration of tasks, which ends by itself", "error", s.fail(released))
	}
	return err
}

var errLease = errors.New("restoring tasks took too long")

// holding calls fn in a transaction that fails when the lease is not the
// token's any more, or one of the keys has changed.
func (s *Store) holding(ctx context.Context, token string, keys []string, fn func(tx *redis.Tx) error) error {
	return s.client.Watch(ctx, func(tx *redis.Tx) error {
		if held, err := tx.Get(ctx, keyLease).Result(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		} else if held != token {
			return errLease
		}
		return fn(tx)
	}, append([]string{keyLease}, keys...)...)
}

// restore puts unfinished tasks back that are not there, as a new generation.
// Their jobs are sent again at once: who had one may have been told that it is over.
func (s *Store) restore(ctx context.Context, token string, ids []string) (n int, err error) {
	err = s.holding(ctx, token, taskKeys(ids), func(tx *redis.Tx) error {
		missing, err := s.missing(ctx, tx, ids)
		if err != nil || len(missing) == 0 {
			return err
		}
		list, err := s.archive.Resume(ctx, time.Now(), missing...)
		if err != nil {
			return err
		}
		n = len(list)
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Expire(ctx, keyLease, lease)
			for _, st := range list {
				if err := putBack(ctx, p, st); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
	if errors.Is(err, errLease) || errors.Is(err, redis.TxFailedErr) {
		return 0, err
	}
	return n, s.fail(err)
}

func putBack(ctx context.Context, p redis.Pipeliner, st *stage.State) error {
	text, err := stage.Encode(st)
	if err != nil {
		return err
	}
	outputs, err := stage.Encode(st.Context)
	if err != nil {
		return err
	}
	key := taskKey(st.ID)
	p.Set(ctx, key, text, 0)
	p.Set(ctx, key+":context", outputs, 0)
	p.Del(ctx, key+":vector_hits")
	if len(st.VectorHits) > 0 {
		p.RPush(ctx, key+":vector_hits", asAny(st.VectorHits)...)
	}
	p.ZAdd(ctx, keyDue, redis.Z{Score: score(st.Deadline()), Member: st.ID})
	p.ZAdd(ctx, "user:"+st.UserID+":tasks", redis.Z{Score: score(st.StartedAt), Member: st.ID})
	p.Expire(ctx, "user:"+st.UserID+":tasks", keepUser)
	if j, ok := st.Job(); ok {
		p.ZAdd(ctx, keyResend, redis.Z{Score: score(st.StartedAt), Member: member(j)})
	}
	return nil
}
