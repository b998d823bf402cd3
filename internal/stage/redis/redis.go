// Package redis stores active question tasks in Redis and records every transition in an
// archive, which survives the loss of the data in Redis.
//
// # Keys
//
//	task:{id}               state as JSON; expires KeepActive after the end, like all task:{id}:*
//	task:{id}:context       the outputs of the stages as JSON
//	task:{id}:vector_hits   list of ids
//	task:{id}:progress      stream of transitions
//	task:{id}:react_steps   list of the outputs of executor_reasoning, one per attempt
//	response:task:{id}      the response as JSON, set at the end
//	user:{uid}:tasks        sorted set of ids by creation; expires 1200 s after the last change
//	stage:due               sorted set of ids by deadline
//	stage:resend            sorted set of "run|stage|id" by the time to send the job again
//	stage:ended             sorted set of ids by end
//	stage:outbox            hash "id|version" -> record that is not yet in the archive
//	stage:epoch             set when Redis contains all unfinished tasks of the archive
//	stage:restoring         lease of the process that restores tasks from the archive
//
// Times are milliseconds since 1970. Transitions are published on the channel
// ai:progress:{id}. The end of a stage is also published on ai:{intent,embedding,execution,
// moderation,websearch}:complete or ai:response:ready.
//
// A transition is one transaction in Redis, which resolves conflicts between workers. Its
// record stays in the outbox until the archive has stored it. A Redis that restarts without
// data lacks stage:epoch, and the Store fills it from the archive before the next use.
// Restored tasks begin a new generation in the archive, so that late records of the lost
// copy do not mix with new ones. The Store does not detect a Redis that restarts with old
// data, so its append-only file must be enabled.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"cairn/internal/stage"
)

// Options configures Open. Nil and the zero value mean the defaults.
type Options struct {
	// Logger receives warnings about background work. Nil discards them.
	Logger *slog.Logger
	// Flush is the interval at which the outbox is sent to the archive; 0 means 1 s.
	Flush time.Duration
}

// Store is a stage.Store.
type Store struct {
	pool    *redis.Pool
	archive stage.Archive
	server  string // the address for errors, without the password
	log     *slog.Logger

	cancel  context.CancelFunc
	flusher sync.WaitGroup
}

var _ stage.Store = (*Store)(nil)

const (
	keyDue    = "stage:due"
	keyResend = "stage:resend"
	keyEnded  = "stage:ended"
	keyOutbox = "stage:outbox"
	keyEpoch  = "stage:epoch"
	keyLease  = "stage:restoring"

	keepUser = 1200 * time.Second
)

// Open connects to the Redis at redis://:PASSWORD@HOST:PORT/0, or rediss:// for TLS. Closing
// the Store closes the archive.
func Open(ctx context.Context, at string, archive stage.Archive, o *Options) (*Store, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Opaque != "" || strings.Count(u.Path, "/") > 1 { // err may quote the password
		return nil, errors.New("the address of Redis is not valid, want redis://:PASSWORD@HOST:PORT/0")
	}
	s := &Store{
		pool: &redis.Pool{
			DialContext: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialURLContext(ctx, at, redis.DialConnectTimeout(2*time.Second), redis.DialReadTimeout(5*time.Second), redis.DialWriteTimeout(5*time.Second))
			},
			MaxIdle: 16, IdleTimeout: 5 * time.Minute,
			TestOnBorrow: func(c redis.Conn, since time.Time) (err error) {
				if time.Since(since) > time.Second { // the server may have restarted
					_, err = c.Do("PING")
				}
				return err
			},
		},
		archive: archive, log: slog.New(slog.DiscardHandler),
		server: "Redis at " + net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), "6379")),
	}
	every := time.Second
	if o != nil {
		if o.Logger != nil {
			s.log = o.Logger
		}
		if o.Flush > 0 {
			every = o.Flush
		}
	}
	if _, err := s.do(ctx, "PING"); err != nil {
		return nil, errors.Join(s.fail(err), s.pool.Close())
	}
	flushing, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.flusher.Go(func() { s.keepFlushing(flushing, every) })
	return s, nil
}

// Close stops the background work and closes the connections.
func (s *Store) Close() error {
	s.cancel()
	s.flusher.Wait()
	return errors.Join(s.pool.Close(), s.archive.Close())
}

// do runs one command.
func (s *Store) do(ctx context.Context, name string, args ...any) (any, error) {
	c, err := s.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(name, args...)
}

// watch calls fn with a connection that watches keys. On this connection exec fails with
// errConflict if another client has changed one of them.
func (s *Store) watch(ctx context.Context, keys []string, fn func(redis.Conn) error) error {
	c, err := s.pool.GetContext(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if len(keys) > 0 {
		if _, err := c.Do("WATCH", redis.Args{}.AddFlat(keys)...); err != nil {
			return err
		}
	}
	return fn(c)
}

// batch is a list of commands to execute in one transaction.
type batch []command

type command struct {
	name string
	args []any
}

func (b *batch) add(name string, args ...any) { *b = append(*b, command{name, args}) }

var errConflict = errors.New("another client changed the keys")

// exec executes a batch, unless ctx has ended.
func exec(ctx context.Context, c redis.Conn, b batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Send("MULTI"); err != nil {
		return err
	}
	for _, cmd := range b {
		if err := c.Send(cmd.name, cmd.args...); err != nil {
			return err
		}
	}
	replies, err := redis.Values(c.Do("EXEC"))
	if errors.Is(err, redis.ErrNil) {
		return errConflict
	}
	for _, r := range replies {
		if refused, ok := r.(redis.Error); ok {
			return refused
		}
	}
	return err
}

// fail adds the address of the server to an error, unless it is a *stage.Error.
func (s *Store) fail(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ours := errors.AsType[*stage.Error](err); ours {
		return err
	}
	var refused redis.Error // a reply of the server
	if errors.As(err, &refused) && !strings.HasPrefix(refused.Error(), "LOADING") && !strings.HasPrefix(refused.Error(), "READONLY") && !strings.HasPrefix(refused.Error(), "MASTERDOWN") {
		return fmt.Errorf("%s: %w", s.server, err)
	}
	return stage.Unavailable(s.server, err)
}

func taskKey(id string) string { return "task:" + id }

func member(j stage.Job) string { return strconv.Itoa(j.Run) + "|" + string(j.Stage) + "|" + j.TaskID }

func parseMember(m string) (stage.Job, bool) {
	parts := strings.SplitN(m, "|", 3)
	if len(parts) != 3 {
		return stage.Job{}, false
	}
	run, err := strconv.Atoi(parts[0])
	return stage.Job{TaskID: parts[2], Stage: stage.Stage(parts[1]), Run: run}, err == nil
}

func score(t time.Time) int64 { return t.UnixMilli() }

// seconds converts a time to live for Redis.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// Create implements stage.Store.
func (s *Store) Create(ctx context.Context, st *stage.State, fx *stage.Effects) error {
	// The id of an ended task is also in use, if the archive is reachable.
	if _, err := s.archive.Load(ctx, st.ID); err == nil {
		return stage.Exists(st.ID)
	} else if !errors.Is(err, stage.Is(stage.CodeNotFound)) && !errors.Is(err, stage.Is(stage.CodeUnavailable)) {
		return err
	}
	err := s.transact(ctx, st.ID, func(old *stage.State) (*stage.State, *stage.Effects, error) {
		if old != nil {
			return nil, nil, stage.Exists(st.ID)
		}
		return st, fx, nil
	})
	if err != nil {
		return err
	}
	s.record(ctx, stage.Record{State: st, Entry: fx.Entry})
	return nil
}

// Update implements stage.Store.
func (s *Store) Update(ctx context.Context, id string, fn stage.Change) (next *stage.State, fx *stage.Effects, err error) {
	missing := false
	change := func(old *stage.State) (_ *stage.State, _ *stage.Effects, err error) {
		if missing = old == nil; missing {
			return nil, nil, stage.NotFound(id)
		}
		next, fx, err = fn(old)
		return next, fx, err
	}
	err = s.transact(ctx, id, change)
	if missing {
		old, failed := s.archive.Load(ctx, id)
		if failed != nil {
			return nil, nil, failed
		}
		if old.Status.Final() {
			if _, _, err = fn(old); err == nil {
				err = fmt.Errorf("task %s has ended but accepts an event", id) // unreachable: the machine rejects it
			}
			return nil, nil, err
		}
		if err = s.adopt(ctx, id); err == nil {
			err = s.transact(ctx, id, change)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	s.record(ctx, stage.Record{State: next, Entry: fx.Entry})
	return next, fx, nil
}

// transact runs fn on the stored state and stores the state that fn returns. It tries again
// if another client changes the task in between.
func (s *Store) transact(ctx context.Context, id string, fn stage.Change) error {
	for n := 0; ; n++ {
		err := s.watch(ctx, []string{taskKey(id), keyEpoch}, func(c redis.Conn) error { return attempt(ctx, c, id, fn) })
		if errors.Is(err, errEmpty) {
			if err = s.ensure(ctx); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, errConflict) {
			return s.fail(err)
		}
		select { // back off
		case <-time.After(rand.N(time.Millisecond << min(n, 6))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errEmpty reports a transaction on a Redis that is not filled yet.
var errEmpty = errors.New("it is empty")

func attempt(ctx context.Context, c redis.Conn, id string, fn stage.Change) error {
	values, err := redis.ByteSlices(c.Do("MGET", taskKey(id), keyEpoch))
	if err != nil {
		return err
	}
	if values[1] == nil {
		return errEmpty
	}
	var old *stage.State
	if values[0] != nil {
		if old, err = stage.Decode(values[0]); err != nil {
			return err
		}
	}
	next, fx, err := fn(old)
	if err != nil {
		return err
	}
	b, err := transition(old, next, fx.Entry)
	if err != nil {
		return err
	}
	return exec(ctx, c, b)
}

// transition returns the commands that store and publish a transition from old to st. old is
// nil for a new task.
func transition(old, st *stage.State, e stage.Entry) (b batch, err error) {
	var text, record, outputs, entry, response []byte
	for _, part := range []struct {
		to *[]byte
		v  any
	}{{&text, st}, {&record, stage.Record{State: st, Entry: e}}, {&outputs, st.Context}, {&entry, e}, {&response, st.Response}} {
		if *part.to, err = stage.Encode(part.v); err != nil {
			return nil, err
		}
	}
	key := taskKey(st.ID)
	b.add("SET", key, text)
	b.add("SET", key+":context", outputs)
	b.add("XADD", key+":progress", "MAXLEN", "~", 200, "*", "stage", string(e.Stage), "action", string(e.Action), "status", string(e.Status), "percent", st.Progress, "entry", entry)
	if e.Stage == stage.EmbeddingLookup && e.Action == stage.Completed {
		b.setHits(st)
	}
	if e.Stage == stage.ExecutorReasoning && e.Action != stage.Started {
		b.add("RPUSH", key+":react_steps", entry)
	}
	b.addToUser(st)
	b.add("HSET", keyOutbox, outboxField(e), record)
	if old != nil {
		if j, ok := old.Job(); ok {
			b.add("ZREM", keyResend, member(j))
		}
	}
	if st.Status.Final() {
		b.add("ZREM", keyDue, st.ID)
		b.add("ZADD", keyEnded, score(st.UpdatedAt), st.ID)
		if st.Response != nil {
			b.add("SET", "response:"+key, response, "EX", seconds(stage.KeepActive))
		}
		for _, companion := range []string{"", ":context", ":progress", ":vector_hits", ":react_steps"} {
			b.add("EXPIRE", key+companion, seconds(stage.KeepActive))
		}
	} else {
		b.add("ZADD", keyDue, score(st.Deadline()), st.ID)
		if j, ok := st.Job(); ok {
			b.add("ZADD", keyResend, score(st.UpdatedAt.Add(stage.ResendAfter)), member(j))
		}
	}
	b.add("PUBLISH", "ai:progress:"+st.ID, entry)
	if channel := channels[e.Stage]; channel != "" && e.Action == stage.Completed {
		b.add("PUBLISH", channel, entry)
	}
	return b, nil
}

func (b *batch) setHits(st *stage.State) {
	key := taskKey(st.ID) + ":vector_hits"
	b.add("DEL", key)
	if len(st.VectorHits) > 0 {
		b.add("RPUSH", redis.Args{key}.AddFlat(st.VectorHits)...)
	}
}

func (b *batch) addToUser(st *stage.State) {
	key := "user:" + st.UserID + ":tasks"
	b.add("ZADD", key, score(st.StartedAt), st.ID)
	b.add("EXPIRE", key, seconds(keepUser))
}

// channels are the channels that receive the entry that completes a stage.
var channels = map[stage.Stage]string{
	stage.IntentAnalysis: "ai:intent:complete", stage.EmbeddingLookup: "ai:embedding:complete", stage.ExecutorReasoning: "ai:execution:complete",
	stage.Moderation: "ai:moderation:complete", stage.WebSearch: "ai:websearch:complete", stage.ResponsePackaging: "ai:response:ready",
}

// Load implements stage.Store.
func (s *Store) Load(ctx context.Context, id string) (*stage.State, error) {
	text, err := redis.Bytes(s.do(ctx, "GET", taskKey(id)))
	switch {
	case err == nil:
		return stage.Decode(text)
	case errors.Is(err, redis.ErrNil):
		return s.archive.Load(ctx, id)
	}
	return nil, s.fail(err)
}

// List implements stage.Store. It lists the tasks of the archive.
func (s *Store) List(ctx context.Context, q stage.Query) ([]*stage.State, error) {
	return s.archive.List(ctx, q)
}

// Due implements stage.Store.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]string, error) {
	if err := s.ensure(ctx); err != nil {
		return nil, err
	}
	ids, err := s.upTo(ctx, keyDue, now, limit)
	return ids, s.fail(err)
}

// Unsent implements stage.Store.
func (s *Store) Unsent(ctx context.Context, now time.Time, limit int) ([]stage.Job, error) {
	members, err := s.upTo(ctx, keyResend, now, limit)
	if err != nil {
		return nil, s.fail(err)
	}
	var jobs []stage.Job
	for _, m := range members {
		if j, ok := parseMember(m); ok {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

func (s *Store) upTo(ctx context.Context, key string, now time.Time, limit int) ([]string, error) {
	return redis.Strings(s.do(ctx, "ZRANGE", key, "-inf", score(now), "BYSCORE", "LIMIT", 0, limit))
}

// Postpone implements stage.Store.
func (s *Store) Postpone(ctx context.Context, until time.Time, jobs ...stage.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	args := []any{keyResend, "XX"}
	for _, j := range jobs {
		args = append(args, score(until), member(j))
	}
	_, err := s.do(ctx, "ZADD", args...)
	return s.fail(err)
}

// Log implements stage.Store. It flushes the outbox and reads the log of the archive.
func (s *Store) Log(ctx context.Context, id string) ([]stage.Entry, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	return s.archive.Log(ctx, id)
}

// Clean implements stage.Store. Redis expires active copies itself; Clean also removes their
// entries in sets.
func (s *Store) Clean(ctx context.Context, now time.Time, keep time.Duration) (int, error) {
	for {
		ids, err := s.upTo(ctx, keyEnded, now.Add(-stage.KeepActive), page)
		if err != nil {
			return 0, s.fail(err)
		}
		if len(ids) == 0 {
			break
		}
		var keys []string
		for _, id := range ids {
			key := taskKey(id)
			keys = append(keys, key, key+":context", key+":progress", key+":vector_hits", key+":react_steps", "response:"+key)
		}
		var b batch
		b.add("DEL", redis.Args{}.AddFlat(keys)...)
		b.add("ZREM", redis.Args{keyEnded}.AddFlat(ids)...)
		if err := s.watch(ctx, nil, func(c redis.Conn) error { return exec(ctx, c, b) }); err != nil {
			return 0, s.fail(err)
		}
	}
	if err := s.Flush(ctx); err != nil {
		return 0, err
	}
	if err := s.reconcile(ctx); err != nil {
		return 0, err
	}
	return s.archive.Clean(ctx, now, keep)
}
