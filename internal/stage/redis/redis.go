// Package redis keeps active stage tasks in Redis, and writes every transition
// down in an archive. It is the only importer of go-redis.
//
// # Keys
//
//	task:{id}               state as JSON; once ended it lives for KeepActive
//	task:{id}:context       what the stages put out, as JSON; companions live as long
//	task:{id}:vector_hits   list of ids
//	task:{id}:progress      stream of transitions
//	task:{id}:react_steps   list of what executor_reasoning put out, one an attempt
//	response:task:{id}      the response as JSON, with the end
//	user:{uid}:tasks        sorted set of ids by creation; lives 1200 s past the last change
//	stage:due               sorted set of ids by deadline
//	stage:resend            sorted set of "run|stage|id" by when the job is sent again
//	stage:ended             sorted set of ids by end
//	stage:outbox            hash "id|version" -> record the archive does not have yet
//	stage:epoch             set once this Redis holds what the archive has unfinished
//	stage:restoring         held by who brings tasks back from the archive
//
// Times are milliseconds since 1970. Transitions are published on the channels
// ai:progress:{id} and, with a stage's end, ai:{intent,embedding,execution,
// moderation,websearch}:complete and ai:response:ready.
//
// A transition is one transaction in Redis, which decides between workers; it
// holds its record in the outbox until the archive has it. A Redis that comes
// back empty lacks stage:epoch and is filled from the archive before anything
// else is done with it. What is restored begins a new generation in the archive,
// so that a record of the lost copy which comes late is not mixed with what
// follows. A Redis that comes back with an old copy is not noticed: keep its
// append-only file on.
package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"cairn/internal/stage"
)

// Options are the knobs of Open. Nil and the zero value mean the defaults.
type Options struct {
	// Logger receives what goes wrong in the background; nil is silent.
	Logger *slog.Logger
	// Flush is how often what the archive lacks is brought to it; 0 means 1 s.
	Flush time.Duration
}

// Store is a stage.Store.
type Store struct {
	client  *redis.Client
	archive stage.Archive
	server  string // for errors: without password
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

// Open connects to a Redis. The archive is closed with the store.
func Open(ctx context.Context, url string, archive stage.Archive, o *Options) (*Store, error) {
	config, err := redis.ParseURL(url)
	if err != nil { // which may quote the password
		return nil, errors.New("the address of Redis is not valid, want redis://:PASSWORD@HOST:PORT/0")
	}
	config.DialTimeout, config.ReadTimeout, config.WriteTimeout = 2*time.Second, 5*time.Second, 5*time.Second
	config.MaxRetries, config.DialerRetries = 1, 1 // the callers try again, and know how often
	config.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	quieten()
	host, port, err := net.SplitHostPort(config.Addr)
	if err != nil {
		host, port = config.Addr, "6379"
	}
	s := &Store{client: redis.NewClient(config), archive: archive, server: "Redis at " + net.JoinHostPort(host, port), log: slog.New(slog.DiscardHandler)}
	every := time.Second
	if o != nil {
		if o.Logger != nil {
			s.log = o.Logger
		}
		if o.Flush > 0 {
			every = o.Flush
		}
	}
	if err := s.client.Ping(ctx).Err(); err != nil {
		s.client.Close()
		return nil, s.fail(err)
	}
	flushing, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.flusher.Go(func() { s.keepFlushing(flushing, every) })
	return s, nil
}

// quieten keeps the client's own lines from standard error: what matters in
// them is in the errors that it returns. It has one logger for the process.
var quieten = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends what goes on in the background and closes the connections.
func (s *Store) Close() error {
	s.cancel()
	s.flusher.Wait()
	return errors.Join(s.client.Close(), s.archive.Close())
}

// fail names the server in errors of the connection.
func (s *Store) fail(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ours := errors.AsType[*stage.Error](err); ours {
		return err
	}
	var said redis.Error // an answer of the server's
	if errors.As(err, &said) && !strings.HasPrefix(said.Error(), "LOADING") && !strings.HasPrefix(said.Error(), "READONLY") && !strings.HasPrefix(said.Error(), "MASTERDOWN") {
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

func score(t time.Time) float64 { return float64(t.UnixMilli()) }

// Create implements stage.Store.
func (s *Store) Create(ctx context.Context, st *stage.State, fx *stage.Effects) error {
	// An ended task's id is taken as well, when the archive can be asked.
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
				err = fmt.Errorf("task %s has ended, and yet goes on", id) // unreachable: the machine refuses it
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

// transact runs fn on what is stored and stores what it returns, in a
// transaction that fails, and is tried again, when anybody comes in between.
func (s *Store) transact(ctx context.Context, id string, fn stage.Change) error {
	for n := 0; ; n++ {
		err := s.client.Watch(ctx, func(tx *redis.Tx) error { return s.attempt(ctx, tx, id, fn) }, taskKey(id), keyEpoch)
		if errors.Is(err, errEmpty) {
			if err = s.ensure(ctx); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, redis.TxFailedErr) {
			return s.fail(err)
		}
		select { // the more often it was lost, the longer others are given way
		case <-time.After(rand.N(time.Millisecond << min(n, 6))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errEmpty is found by a transaction on a Redis that is not filled yet.
var errEmpty = errors.New("it holds nothing")

func (s *Store) attempt(ctx context.Context, tx *redis.Tx, id string, fn stage.Change) error {
	values, err := tx.MGet(ctx, taskKey(id), keyEpoch).Result()
	if err != nil {
		return err
	}
	if values[1] == nil {
		return errEmpty
	}
	var old *stage.State
	if text, ok := values[0].(string); ok {
		if old, err = parse(text); err != nil {
			return err
		}
	}
	next, fx, err := fn(old)
	if err != nil {
		return err
	}
	_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return s.write(ctx, p, old, next, fx.Entry) })
	return err
}

func parse(text string) (*stage.State, error) {
	st := &stage.State{}
	if err := json.Unmarshal([]byte(text), st); err != nil {
		return nil, fmt.Errorf("reading a task: %w", err)
	}
	return st, nil
}

// write queues all that a transition changes.
func (s *Store) write(ctx context.Context, p redis.Pipeliner, old, st *stage.State, e stage.Entry) error {
	text, err := stage.Encode(st)
	if err != nil {
		return err
	}
	record, err := stage.Encode(stage.Record{State: st, Entry: e})
	if err != nil {
		return err
	}
	outputs, err := stage.Encode(st.Context)
	if err != nil {
		return err
	}
	entry, err := stage.Encode(e)
	if err != nil {
		return err
	}
	key := taskKey(st.ID)
	p.Set(ctx, key, text, 0)
	p.Set(ctx, key+":context", outputs, 0)
	p.XAdd(ctx, &redis.XAddArgs{Stream: key + ":progress", MaxLen: 200, Approx: true, Values: []any{"stage", string(e.Stage), "action", string(e.Action), "status", string(e.Status), "percent", st.Progress, "entry", entry}})
	if e.Stage == stage.EmbeddingLookup && e.Action == stage.Completed {
		p.Del(ctx, key+":vector_hits")
		if len(st.VectorHits) > 0 {
			p.RPush(ctx, key+":vector_hits", asAny(st.VectorHits)...)
		}
	}
	if e.Stage == stage.ExecutorReasoning && e.Action != stage.Started {
		p.RPush(ctx, key+":react_steps", entry)
	}
	p.ZAdd(ctx, "user:"+st.UserID+":tasks", redis.Z{Score: score(st.StartedAt), Member: st.ID})
	p.Expire(ctx, "user:"+st.UserID+":tasks", keepUser)
	p.HSet(ctx, keyOutbox, outboxField(e), record)
	if old != nil {
		if j, ok := old.Job(); ok {
			p.ZRem(ctx, keyResend, member(j))
		}
	}
	if st.Status.Final() {
		p.ZRem(ctx, keyDue, st.ID)
		p.ZAdd(ctx, keyEnded, redis.Z{Score: score(st.UpdatedAt), Member: st.ID})
		if st.Response != nil {
			response, err := stage.Encode(st.Response)
			if err != nil {
				return err
			}
			p.Set(ctx, "response:"+key, response, stage.KeepActive)
		}
		for _, companion := range []string{"", ":context", ":progress", ":vector_hits", ":react_steps"} {
			p.Expire(ctx, key+companion, stage.KeepActive)
		}
	} else {
		p.ZAdd(ctx, keyDue, redis.Z{Score: score(st.Deadline()), Member: st.ID})
		if j, ok := st.Job(); ok {
			p.ZAdd(ctx, keyResend, redis.Z{Score: score(st.UpdatedAt.Add(stage.ResendAfter)), Member: member(j)})
		}
	}
	p.Publish(ctx, "ai:progress:"+st.ID, entry)
	if channel := channels[e.Stage]; channel != "" && e.Action == stage.Completed {
		p.Publish(ctx, channel, entry)
	}
	return nil
}

// channels are told when a stage is complete.
var channels = map[stage.Stage]string{
	stage.IntentAnalysis: "ai:intent:complete", stage.EmbeddingLookup: "ai:embedding:complete", stage.ExecutorReasoning: "ai:execution:complete",
	stage.Moderation: "ai:moderation:complete", stage.WebSearch: "ai:websearch:complete", stage.ResponsePackaging: "ai:response:ready",
}

func asAny(list []string) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// Load implements stage.Store.
func (s *Store) Load(ctx context.Context, id string) (*stage.State, error) {
	text, err := s.client.Get(ctx, taskKey(id)).Result()
	switch {
	case err == nil:
		return parse(text)
	case errors.Is(err, redis.Nil):
		return s.archive.Load(ctx, id)
	}
	return nil, s.fail(err)
}

// List implements stage.Store: the archive knows all tasks.
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
	return s.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: key, ByScore: true, Start: "-inf", Stop: strconv.FormatInt(now.UnixMilli(), 10), Count: int64(limit)}).Result()
}

// Postpone implements stage.Store.
func (s *Store) Postpone(ctx context.Context, until time.Time, jobs ...stage.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	var z []redis.Z
	for _, j := range jobs {
		z = append(z, redis.Z{Score: score(until), Member: member(j)})
	}
	return s.fail(s.client.ZAddXX(ctx, keyResend, z...).Err())
}

// Log implements stage.Store: the archive's, with what has not reached it yet.
func (s *Store) Log(ctx context.Context, id string) ([]stage.Entry, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	return s.archive.Log(ctx, id)
}

// Clean implements stage.Store. Redis expires active copies itself; this is for
// what is counted beside them.
func (s *Store) Clean(ctx context.Context, now time.Time) (int, error) {
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
		_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, keys...)
			p.ZRem(ctx, keyEnded, asAny(ids)...)
			return nil
		})
		if err != nil {
			return 0, s.fail(err)
		}
	}
	if err := s.Flush(ctx); err != nil {
		return 0, err
	}
	if err := s.reconcile(ctx); err != nil {
		return 0, err
	}
	return s.archive.Clean(ctx, now)
}
