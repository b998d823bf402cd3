package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"cairn/internal/base/testutil"
	"cairn/internal/stage"
)

func opened(t testing.TB, prefix string) *Queue {
	t.Helper()
	at := os.Getenv("CAIRN_TEST_AMQP")
	if at == "" {
		t.Skip("set CAIRN_TEST_AMQP to the address of a server where queues may be made")
	}
	q, err := open(t.Context(), at, prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
			t.Error(err)
		}
	})
	return q
}

// fresh returns an unused prefix; the test deletes its queues at the end.
func fresh(t testing.TB) string {
	prefix := fmt.Sprintf("test-%d.", time.Now().UnixNano())
	q := opened(t, prefix)
	t.Cleanup(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.connect(context.Background()) != nil {
			return
		}
		for _, name := range names {
			_, _ = q.channel.QueueDelete(prefix+name, false, false, false)
		}
		_, _ = q.channel.QueueDelete(prefix+deadQueue, false, false, false)
		_ = q.channel.ExchangeDelete(prefix+deadExchange, false, false)
	})
	return prefix
}

// consume runs a consumer until the test ends.
func consume(t *testing.T, q *Queue, n int, do func(context.Context, stage.Job) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = q.Consume(ctx, stage.Stages, n, do) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

func take[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	testutil.Await(t, func() string {
		select {
		case v = <-from:
			return ""
		default:
			return "nothing comes"
		}
	})
	return v
}

// TestJobs: each job of each stage reaches a worker; jobs of a worker that stops
// reach another.
func TestJobs(t *testing.T) {
	prefix := fresh(t)
	q := opened(t, prefix)
	var want []stage.Job
	for i := range 30 {
		want = append(want, stage.Job{TaskID: fmt.Sprint("t", i), Stage: stage.Stages[i%len(stage.Stages)], Run: i})
	}
	if err := q.Publish(t.Context(), want...); err != nil {
		t.Fatal(err)
	}
	begun := make(chan stage.Job, 100)
	stop := consume(t, opened(t, prefix), 3, func(ctx context.Context, j stage.Job) error {
		begun <- j
		<-ctx.Done()
		return ctx.Err()
	})
	for range 3 {
		take(t, begun)
	}
	stop()
	done := make(chan stage.Job, 100)
	consume(t, opened(t, prefix), 3, func(_ context.Context, j stage.Job) error { done <- j; return nil })
	seen := map[stage.Job]bool{}
	for len(seen) < len(want) {
		seen[take(t, done)] = true
	}
	for _, j := range want {
		if !seen[j] {
			t.Errorf("%+v did not come", j)
		}
	}
}

// TestPerConsumer: a server that limits prefetch per consumer delivers all jobs.
func TestPerConsumer(t *testing.T) {
	prefix := fresh(t)
	q := opened(t, prefix)
	q.perConsumer.Store(true)
	done := make(chan stage.Job, 100)
	consume(t, q, 2, func(_ context.Context, j stage.Job) error { done <- j; return nil })
	want := map[stage.Job]bool{}
	for i := range 30 {
		j := stage.Job{TaskID: fmt.Sprint("t", i), Stage: stage.Stages[i%len(stage.Stages)], Run: i}
		want[j] = true
		if err := q.Publish(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	for len(want) > 0 {
		delete(want, take(t, done))
	}
	if !q.perConsumer.Load() {
		t.Error("it has asked for deliveries together")
	}
}

// TestFailures: a failed job is delivered twice. Then it goes to deadQueue, like a message
// that is not a job.
func TestFailures(t *testing.T) {
	prefix := fresh(t)
	q := opened(t, prefix)
	if err := q.channel.Publish("", prefix+names[stage.Moderation], false, false, amqp.Publishing{Body: []byte("nonsense")}); err != nil {
		t.Fatal(err)
	}
	if err := q.Publish(t.Context(), stage.Job{TaskID: "bad", Stage: stage.Moderation, Run: 1}); err != nil {
		t.Fatal(err)
	}
	tries := make(chan int, 100)
	consume(t, q, 1, func(context.Context, stage.Job) error { tries <- 1; return errors.New("broken") })
	dead, err := q.channel.Consume(prefix+deadQueue, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	bodies := string(take(t, dead).Body) + " " + string(take(t, dead).Body)
	if !strings.Contains(bodies, "nonsense") || !strings.Contains(bodies, `"bad"`) || len(tries) != 2 {
		t.Errorf("%q is with the dead after %d tries, want both after 2", bodies, len(tries))
	}
}

// TestReconnects: publisher and consumer continue after the connection is cut.
func TestReconnects(t *testing.T) {
	prefix := fresh(t)
	publisher, worker := opened(t, prefix), opened(t, prefix)
	done := make(chan stage.Job, 100)
	consume(t, worker, 2, func(_ context.Context, j stage.Job) error { done <- j; return nil })
	for i := range 3 {
		j := stage.Job{TaskID: "a", Stage: stage.IntentAnalysis, Run: i + 1}
		if err := publisher.Publish(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		for take(t, done) != j { // one may come twice
		}
		for _, q := range []*Queue{publisher, worker} {
			q.mu.Lock()
			conn := q.conn
			q.mu.Unlock()
			if err := conn.Close(); err != nil && !errors.Is(err, amqp.ErrClosed) {
				t.Fatal(err)
			}
		}
	}
}

// TestUnreachable: the error names host and port, and no password.
func TestUnreachable(t *testing.T) {
	for _, at := range []string{"amqp://ann:geheim@127.0.0.1:1/", "nonsense://ann:geheim@x"} {
		_, err := Open(t.Context(), at, nil)
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", at, err)
		}
		if strings.HasPrefix(at, "amqp") && (!errors.Is(err, stage.Is(stage.CodeUnavailable)) || !strings.Contains(err.Error(), "127.0.0.1:1")) {
			t.Errorf("%s: %v, want it to name the server", at, err)
		}
	}
}
