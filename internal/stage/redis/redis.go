// Package redis copies the active question tasks of another store to Redis, where other
// programs read them and follow their progress.
//
// # Keys
//
//	task:{id}               state as JSON
//	task:{id}:context       the outputs of the stages as JSON
//	task:{id}:vector_hits   list of ids
//	task:{id}:progress      stream of transitions
//	task:{id}:react_steps   list of the outputs of executor_reasoning, one per attempt
//	response:task:{id}      the response as JSON, set at the end
//	user:{uid}:tasks        sorted set of ids by creation; expires 1200 s after the last change
//
// The keys of a task expire 600 s after its end, or 600 s after its time is up.
// Transitions are published on the channel ai:progress:{id}. The end of a stage is also
// published on ai:{intent,embedding,execution,moderation,websearch}:complete or
// ai:response:ready.
//
// Times are milliseconds since 1970. The other store decides every transition, so tasks
// continue while Redis does not answer. Clean renews the copies that Redis then lacks.
package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"cairn/internal/stage"
)

// Store is a stage.Store with copies of the active tasks in Redis.
type Store struct {
	stage.Store
	pool   *redis.Pool
	server string // the address for errors, without the password
	log    *slog.Logger
	resume atomic.Int64 // the time in Unix nanoseconds until which transitions are not copied
}

const (
	// keepActive and keepUser are the times to live of the specification.
	keepActive = 600 * time.Second
	keepUser   = 1200 * time.Second
	// copyLimit bounds the time that a transition waits for Redis.
	copyLimit = 3 * time.Second
	// callLimit bounds the time of a call.
	callLimit = time.Second
	// pause is the time without copies after a failed one, because each copy to a server that
	// does not answer would delay a transition.
	pause = 5 * time.Second
	// maxListed is the number of the newest tasks whose copies Clean checks.
	maxListed = 1000
)

// Open connects to the Redis at redis://:PASSWORD@HOST:PORT/0, or rediss:// for TLS. Closing
// the Store closes of, whose tasks are copied. log receives warnings; nil discards them.
func Open(ctx context.Context, at string, of stage.Store, log *slog.Logger) (*Store, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Opaque != "" || strings.Count(u.Path, "/") > 1 { // err may quote the password
		return nil, errors.New("the address of Redis is not valid, want redis://:PASSWORD@HOST:PORT/0")
	}
	s := &Store{
		Store: of,
		pool: &redis.Pool{
			DialContext: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialURLContext(ctx, at, redis.DialConnectTimeout(callLimit), redis.DialReadTimeout(callLimit), redis.DialWriteTimeout(callLimit))
			},
			MaxIdle: 16, IdleTimeout: 5 * time.Minute,
			TestOnBorrow: func(c redis.Conn, since time.Time) (err error) {
				if time.Since(since) > time.Second { // the server may have restarted
					_, err = c.Do("PING")
				}
				return err
			},
		},
		log:    cmp.Or(log, slog.New(slog.DiscardHandler)),
		server: "Redis at " + net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), "6379")),
	}
	err = s.with(ctx, func(c redis.Conn) error {
		_, err := c.Do("PING")
		return err
	})
	if err != nil {
		return nil, errors.Join(stage.Unavailable(s.server, err), s.pool.Close())
	}
	return s, nil
}

// Close closes the connections and the other store.
func (s *Store) Close() error { return errors.Join(s.pool.Close(), s.Store.Close()) }

// with calls fn with a connection.
func (s *Store) with(ctx context.Context, fn func(redis.Conn) error) error {
	c, err := s.pool.GetContext(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

// Update implements stage.Store.
func (s *Store) Update(ctx context.Context, id string, fn stage.Change) (*stage.State, *stage.Effects, error) {
	next, fx, err := s.Store.Update(ctx, id, fn)
	if err == nil && time.Now().UnixNano() >= s.resume.Load() {
		s.copy(ctx, next, &fx.Entry)
	}
	return next, fx, err
}

// Clean implements stage.Store. It also renews missing and old copies.
func (s *Store) Clean(ctx context.Context, now time.Time, keep time.Duration) (int, error) {
	n, err := s.Store.Clean(ctx, now, keep)
	if err != nil {
		return n, err
	}
	list, err := s.List(ctx, stage.Query{Limit: maxListed})
	if err != nil || len(list) == 0 {
		return n, err
	}
	keys := make([]any, len(list))
	for i, st := range list {
		keys[i] = taskKey(st.ID)
	}
	var found [][]byte
	err = s.with(ctx, func(c redis.Conn) (err error) {
		found, err = redis.ByteSlices(c.Do("MGET", keys...))
		return err
	})
	if err != nil {
		s.log.Warn("looking for the copies of tasks", "error", fmt.Errorf("%s: %w", s.server, err))
		return n, nil
	}
	s.resume.Store(0)
	for i, st := range list {
		if newer(st, found[i]) && (!st.Status.Final() || now.Sub(st.UpdatedAt) < keepActive) {
			s.copy(ctx, st, nil)
		}
	}
	return n, nil
}

// newer reports whether a task is newer than its copy.
func newer(st *stage.State, text []byte) bool {
	var old stage.State
	return json.Unmarshal(text, &old) != nil || old.Machine.Version < st.Machine.Version
}

// copy copies a task, and publishes the transition e unless it is nil. The transition is valid
// also after an error.
func (s *Store) copy(ctx context.Context, st *stage.State, e *stage.Entry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), copyLimit)
	defer cancel()
	err := s.with(ctx, func(c redis.Conn) error {
		for {
			err := attempt(ctx, c, st, e)
			if !errors.Is(err, redis.ErrNil) { // another process has changed the copy
				return err
			}
		}
	})
	if err != nil {
		s.resume.Store(time.Now().Add(pause).UnixNano())
		s.log.Warn("copying a task", "task", st.ID, "error", fmt.Errorf("%s: %w", s.server, err))
	}
}

// attempt makes one attempt to copy. The error is redis.ErrNil if another client changes the
// copy meanwhile.
func attempt(ctx context.Context, c redis.Conn, st *stage.State, e *stage.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := c.Do("WATCH", taskKey(st.ID)); err != nil {
		return err
	}
	text, err := redis.Bytes(c.Do("GET", taskKey(st.ID)))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return err
	}
	b := &batch{c: c}
	b.add("MULTI")
	if newer(st, text) {
		b.state(st)
	}
	if e != nil {
		b.entry(st, e)
	}
	b.expire(st)
	if b.err != nil {
		return b.err
	}
	replies, err := redis.Values(c.Do("EXEC"))
	for _, r := range replies {
		if refused, ok := r.(redis.Error); ok {
			return refused
		}
	}
	return err
}

// batch sends commands and keeps the first error.
type batch struct {
	c   redis.Conn
	err error
}

func (b *batch) add(name string, args ...any) {
	if b.err == nil {
		b.err = b.c.Send(name, args...)
	}
}

// encode returns v as JSON.
func (b *batch) encode(v any) []byte {
	text, err := stage.Encode(v)
	b.err = cmp.Or(b.err, err)
	return text
}

func taskKey(id string) string { return "task:" + id }

// state writes the state of a task.
func (b *batch) state(st *stage.State) {
	key := taskKey(st.ID)
	b.add("SET", key, b.encode(st))
	b.add("SET", key+":context", b.encode(st.Context))
	b.add("DEL", key+":vector_hits")
	if len(st.VectorHits) > 0 {
		b.add("RPUSH", redis.Args{key + ":vector_hits"}.AddFlat(st.VectorHits)...)
	}
	if st.Response != nil {
		b.add("SET", "response:"+key, b.encode(st.Response))
	}
	user := "user:" + st.UserID + ":tasks"
	b.add("ZADD", user, st.StartedAt.UnixMilli(), st.ID)
	b.add("EXPIRE", user, seconds(keepUser))
}

// channels are the channels that receive the entry that completes a stage.
var channels = map[stage.Stage]string{
	stage.IntentAnalysis: "ai:intent:complete", stage.EmbeddingLookup: "ai:embedding:complete", stage.ExecutorReasoning: "ai:execution:complete",
	stage.Moderation: "ai:moderation:complete", stage.WebSearch: "ai:websearch:complete", stage.ResponsePackaging: "ai:response:ready",
}

// entry writes and publishes a transition.
func (b *batch) entry(st *stage.State, e *stage.Entry) {
	key, text := taskKey(st.ID), b.encode(e)
	b.add("XADD", key+":progress", "MAXLEN", "~", 200, "*", "stage", string(e.Stage), "action", string(e.Action), "status", string(e.Status), "percent", st.Progress, "entry", text)
	if e.Stage == stage.ExecutorReasoning && e.Action != stage.Started {
		b.add("RPUSH", key+":react_steps", text)
	}
	b.add("PUBLISH", "ai:progress:"+st.ID, text)
	if channel := channels[e.Stage]; channel != "" && e.Action == stage.Completed {
		b.add("PUBLISH", channel, text)
	}
}

// expire sets the time to live of the keys of a task.
func (b *batch) expire(st *stage.State) {
	live := keepActive
	if left := time.Until(st.StartedAt.Add(st.Machine.Rules.TaskTimeout)); !st.Status.Final() && left > 0 {
		live += left
	}
	key := taskKey(st.ID)
	for _, k := range []string{key, key + ":context", key + ":progress", key + ":vector_hits", key + ":react_steps", "response:" + key} {
		b.add("EXPIRE", k, seconds(live))
	}
}

// seconds converts a time to live for Redis.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }
