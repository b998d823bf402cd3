// Package rabbitmq delivers the jobs of question tasks to workers over RabbitMQ.
//
// Each stage has a durable queue. Jobs are persistent messages, published with confirms and
// acknowledged explicitly, so they are delivered at least once. A job that fails again after a
// second delivery, or cannot be decoded, goes to the queue "dead.task"; the store later lists
// it as unsent. After a lost connection the Queue reconnects with growing waits.
package rabbitmq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/semaphore"

	"cairn/internal/stage"
)

// names are the names of the queues by stage. Five of them are from the specification;
// response_packaging uses its mcp.responses.
var names = map[stage.Stage]string{
	stage.IntentAnalysis: "intent.task", stage.EmbeddingLookup: "embedding.task", stage.ExecutorReasoning: "executor.task",
	stage.Moderation: "moderator.task", stage.WebSearch: "websearch.task", stage.ResponsePackaging: "mcp.responses",
}

const (
	deadExchange = "cairn.dead"
	deadQueue    = "dead.task"
	maxDead      = 10_000 // messages in deadQueue; it keeps the newest
)

// The waits between attempts to connect.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
)

// Queue is a stage.Queue.
type Queue struct {
	url, server string
	prefix      string // of the names of the queues, for tests
	log         *slog.Logger

	mu      sync.Mutex // held while publishing
	conn    *amqp.Connection
	channel *amqp.Channel // for publishing, with confirms
	closed  bool

	perConsumer atomic.Bool // the server limits prefetch only per consumer
}

var _ stage.Queue = (*Queue)(nil)

// Open connects and declares the queues. log receives warnings; nil discards them.
func Open(ctx context.Context, url string, log *slog.Logger) (*Queue, error) {
	return open(ctx, url, "", log)
}

func open(ctx context.Context, url, prefix string, log *slog.Logger) (*Queue, error) {
	at, err := amqp.ParseURI(url)
	if err != nil { // err may quote the password
		return nil, errors.New("the address of RabbitMQ is not valid, want amqp://USER:PASSWORD@HOST:PORT/")
	}
	q := &Queue{url: url, server: "RabbitMQ at " + net.JoinHostPort(at.Host, strconv.Itoa(at.Port)), prefix: prefix, log: cmp.Or(log, slog.New(slog.DiscardHandler))}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.connect(ctx); err != nil {
		return nil, err
	}
	return q, nil
}

// connect opens the connection and the channel for publishing unless they are open. The
// caller must hold q.mu.
func (q *Queue) connect(ctx context.Context) error {
	if q.closed {
		return errors.New("the queue is closed")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if q.conn == nil || q.conn.IsClosed() {
		conn, err := amqp.DialConfig(q.url, amqp.Config{Heartbeat: 10 * time.Second, Dial: amqp.DefaultDial(5 * time.Second)})
		if err != nil {
			return stage.Unavailable(q.server, err)
		}
		q.conn, q.channel = conn, nil
	}
	if q.channel != nil && !q.channel.IsClosed() {
		return nil
	}
	ch, err := q.conn.Channel()
	if err == nil {
		err = q.declare(ch)
	}
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return stage.Unavailable(q.server, err)
	}
	q.channel = ch
	return nil
}

func (q *Queue) declare(ch *amqp.Channel) error {
	if err := ch.ExchangeDeclare(q.prefix+deadExchange, "fanout", true, false, false, false, nil); err != nil {
		return err
	}
	bounds := amqp.Table{"x-message-ttl": stage.KeepArchive.Milliseconds(), "x-max-length": maxDead}
	if _, err := ch.QueueDeclare(q.prefix+deadQueue, true, false, false, false, bounds); err != nil {
		return err
	}
	if err := ch.QueueBind(q.prefix+deadQueue, "", q.prefix+deadExchange, false, nil); err != nil {
		return err
	}
	for _, s := range stage.Stages {
		if _, err := ch.QueueDeclare(q.prefix+names[s], true, false, false, false, amqp.Table{"x-dead-letter-exchange": q.prefix + deadExchange}); err != nil {
			return err
		}
	}
	return nil
}

// Publish implements stage.Queue. It returns after the server has confirmed the jobs.
func (q *Queue) Publish(ctx context.Context, jobs ...stage.Job) error {
	waiting, err := q.send(ctx, jobs)
	if err != nil {
		return err
	}
	for _, c := range waiting { // if the channel closes, they are not confirmed
		ok, err := c.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return stage.Unavailable(q.server, errors.New("a job was not confirmed"))
		}
	}
	return nil
}

// send sends jobs and returns their confirmations, which are still to arrive.
func (q *Queue) send(ctx context.Context, jobs []stage.Job) (waiting []*amqp.DeferredConfirmation, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.connect(ctx); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		body, _ := json.Marshal(j) // never fails: the fields are plain
		c, err := q.channel.PublishWithDeferredConfirmWithContext(ctx, "", q.prefix+names[j.Stage], false, false, amqp.Publishing{
			ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: body,
			MessageId: fmt.Sprintf("%s/%d", j.TaskID, j.Run),
		})
		if err != nil {
			return nil, stage.Unavailable(q.server, err)
		}
		waiting = append(waiting, c)
	}
	return waiting, nil
}

// Consume implements stage.Queue. It reconnects after a lost connection.
func (q *Queue) Consume(ctx context.Context, stages []stage.Stage, n int, do func(context.Context, stage.Job) error) error {
	for wait := firstWait; ctx.Err() == nil; {
		began := time.Now()
		err := q.consume(ctx, stages, max(n, 1), do)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > lastWait {
			wait = firstWait // it was connected for a while
		}
		q.log.Warn("lost the connection for jobs, reconnecting", "error", err, "after", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, lastWait)
	}
	return ctx.Err()
}

// consume runs jobs until the channel or ctx ends, and waits for running jobs.
func (q *Queue) consume(ctx context.Context, stages []stage.Stage, n int, do func(context.Context, stage.Job) error) error {
	q.mu.Lock()
	err := q.connect(ctx)
	conn := q.conn
	q.mu.Unlock()
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return stage.Unavailable(q.server, err)
	}
	defer ch.Close() // the server redelivers unacknowledged jobs
	// Prefetch one job per worker over all consumers of the channel. RabbitMQ has
	// deprecated this and may reject it. In that case prefetch one job per consumer.
	if perChannel := !q.perConsumer.Load(); perChannel {
		err = ch.Qos(n, 0, true)
		q.perConsumer.Store(err != nil && !errors.Is(err, amqp.ErrClosed))
	} else {
		err = ch.Qos(1, 0, false)
	}
	if err != nil {
		return stage.Unavailable(q.server, err)
	}
	lost := ch.NotifyClose(make(chan *amqp.Error, 1))
	stopping, stop := context.WithCancel(ctx)
	workers := semaphore.NewWeighted(int64(n))
	defer func() {
		stop()
		_ = workers.Acquire(context.WithoutCancel(ctx), int64(n)) // waits for running jobs
	}()
	for _, s := range stages {
		// ConsumeWithContext would cancel each consumer in a goroutine of its own, and
		// a call of the driver may take the reply to another. Close then waits forever.
		from, err := ch.Consume(q.prefix+names[s], "", false, false, false, false, nil)
		if err != nil {
			return stage.Unavailable(q.server, err)
		}
		go func() { // ends when ch closes
			for d := range from {
				if workers.Acquire(stopping, 1) != nil {
					return
				}
				go func() {
					defer workers.Release(1)
					q.handle(stopping, d, do)
				}()
			}
		}()
	}
	select {
	case e := <-lost:
		if e != nil {
			return stage.Unavailable(q.server, e)
		}
		return stage.Unavailable(q.server, errors.New("the channel is closed"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handle runs a job and acknowledges it. If the acknowledgement does not reach the server, the
// server delivers the job again, and the engine ignores it.
func (q *Queue) handle(ctx context.Context, d amqp.Delivery, do func(context.Context, stage.Job) error) {
	var j stage.Job
	var err error
	if json.Unmarshal(d.Body, &j) != nil || j.TaskID == "" {
		err = d.Reject(false) // to deadQueue
	} else if failed := do(ctx, j); failed == nil {
		err = d.Ack(false)
	} else {
		q.log.Warn("a job failed", "task", j.TaskID, "stage", j.Stage, "again", d.Redelivered, "error", failed)
		err = d.Nack(false, ctx.Err() != nil || !d.Redelivered) // for another worker or attempt, or to deadQueue
	}
	if err != nil {
		q.log.Warn("acknowledging a job, which will be redelivered", "error", err)
	}
}

// Durable implements stage.Queue.
func (q *Queue) Durable() bool { return true }

// Close closes the connection.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.conn == nil || q.conn.IsClosed() {
		return nil
	}
	return q.conn.Close()
}
