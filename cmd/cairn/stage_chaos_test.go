//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
	"cairn/internal/stage/postgres"
	"cairn/internal/stage/redis"
)

// TestStageChaos creates question tasks through cairn serve while its process and its
// workers are killed at random moments. CAIRN_CHAOS is their number, such as 200. It runs
// once on the folder's own file and once on Redis, Postgres and RabbitMQ. These servers are
// also stopped for 10 s and come back, one at a time, Redis also empty. Every task whose
// creation was answered ends within its time, no stage counts twice, and the copies in Redis
// agree with the tasks. The servers are started by .ci/services.sh, which needs their
// programs.
func TestStageChaos(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("CAIRN_CHAOS"))
	if err != nil {
		t.Skip("set CAIRN_CHAOS to how often to kill a process, such as 200")
	}
	t.Run("Embedded", func(t *testing.T) {
		c := newChaos(t)
		c.run("serve", "--addr", c.addr, "--no-rate-limit")
		c.run("serve", "--addr", "127.0.0.1:0") // works on what the other one leaves
		c.load()
		c.kill(kills)
		c.finish()
	})
	t.Run("Servers", func(t *testing.T) {
		c, _ := onServers(t)
		c.load()
		c.kill(kills)
		c.finish()
	})
	t.Run("Outages", func(t *testing.T) {
		c, s := onServers(t)
		c.load()
		for _, name := range []string{"redis", "postgres", "rabbitmq"} {
			c.pause(5 * time.Second)
			s.stop(t, name)
			before := c.created.Load()
			c.pause(10 * time.Second)
			s.start(t, name)
			t.Logf("%s was away for 10 s, %d tasks were created meanwhile", name, c.created.Load()-before)
		}
		c.pause(5 * time.Second)
		s.stop(t, "redis")
		if err := os.RemoveAll(filepath.Join(s.dir, "redis")); err != nil {
			t.Fatal(err)
		}
		s.start(t, "redis")
		t.Log("redis has come back empty")
		c.pause(10 * time.Second)
		c.finish()
		c.held.Range(func(_, p any) bool {
			if p := p.(*victim); p.ended() {
				t.Errorf("%v has ended by itself:\n%s", p.args, p.log.String())
			}
			return true
		})
	})
}

// onServers runs a server and three workers over Redis, Postgres and RabbitMQ.
func onServers(t *testing.T) (*chaos, *services) {
	c, s := newChaos(t), startServices(t)
	c.env = append(c.env, "CAIRN_REDIS="+s.redis, "CAIRN_POSTGRES="+s.postgres, "CAIRN_AMQP="+s.amqp)
	c.open = s.open
	c.run("serve", "--addr", c.addr, "--no-rate-limit", "--workers", "-1", "--remote-reasoning")
	for range 3 {
		c.run("worker")
	}
	return c, s
}

// chaos is a set of processes on one folder, and the tasks they were given.
type chaos struct {
	t    *testing.T
	root string
	addr string
	bin  string
	env  []string
	open func(t *testing.T) history // nil for the folder's file
	r    *rand.Rand

	held sync.Map // by number: *victim

	stopLoad chan struct{}
	loading  sync.WaitGroup
	created  atomic.Int64
	mu       sync.Mutex
	ids      []string
}

// victim is a process that may be killed and is started again.
type victim struct {
	args []string
	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan struct{}
}

func (v *victim) ended() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() < 1<<20 {
		l.b.WriteString(text + "\n")
	}
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{t: t, root: t.TempDir(), bin: binary(t), r: rand.New(rand.NewPCG(7, 8)), stopLoad: make(chan struct{})}
	doc := "# Teams\n\n## SRE\n\nThe SRE team members are Ann, Bob and Chen.\n\n## Night\n\nAt night Dora is on call.\n"
	if err := os.WriteFile(filepath.Join(c.root, "teams.md"), []byte(doc), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(c.bin, "index", "-C", c.root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.addr = l.Addr().String()
	l.Close()
	c.env = append(os.Environ(), "CAIRN_LLM_URL="+c.model()+"/v1", "CAIRN_LLM_MODEL=fake", "CAIRN_WORKSPACE=")
	t.Cleanup(func() {
		c.held.Range(func(_, p any) bool {
			p.(*victim).cmd.Process.Kill()
			<-p.(*victim).done
			return true
		})
	})
	return c
}

var passageID = regexp.MustCompile(`<passage id="([^"]+)">`)

// model is a language model that takes up to 50 ms, and now and then fails, talks
// nonsense, or cites what is not there.
func (c *chaos) model() string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct{ Messages []struct{ Content string } }
		_ = json.Unmarshal(body, &in)
		cite := "doc:nothing.md"
		for _, m := range in.Messages {
			if found := passageID.FindStringSubmatch(m.Content); found != nil {
				cite = found[1]
			}
		}
		time.Sleep(rand.N(50 * time.Millisecond))
		text := fmt.Sprintf(`{"answer":"Ann, Bob and Chen are the members of the SRE team.","citations":[%q]}`, cite)
		switch rand.N(40) {
		case 0:
			http.Error(w, "overloaded", http.StatusInternalServerError)
			return
		case 1:
			text = "certainly!"
		case 2:
			text = strings.Replace(text, cite, "doc:invented.md", 1)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": text}}}})
	}))
	c.t.Cleanup(srv.Close)
	return srv.URL
}

var numbered atomic.Int64

// run starts a process and returns when it is at work.
func (c *chaos) run(args ...string) {
	c.t.Helper()
	c.again(numbered.Add(1), args)
}

func (c *chaos) again(n int64, args []string) {
	c.t.Helper()
	v := &victim{args: args, log: &lockedBuffer{}, done: make(chan struct{})}
	v.cmd = exec.Command(c.bin, append(slices.Clone(args), "-C", c.root)...)
	v.cmd.Env = c.env
	stderr, err := v.cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.held.Store(n, v)
	ready := make(chan struct{})
	go func() {
		defer close(v.done)
		told := false
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			v.log.line(lines.Text())
			if !told && (strings.Contains(lines.Text(), "msg=listening") || strings.Contains(lines.Text(), "msg=working")) {
				told = true
				close(ready)
			}
		}
		_ = v.cmd.Wait()
	}()
	select {
	case <-ready:
	case <-v.done:
		c.t.Fatalf("cairn %v ended:\n%s", args, v.log)
	}
}

// load creates tasks, and aborts some, until finish.
func (c *chaos) load() {
	client := &http.Client{Timeout: 20 * time.Second}
	post := func(path, body string) (string, bool) {
		resp, err := client.Post("http://"+c.addr+path, "application/json", strings.NewReader(body))
		if err != nil {
			return "", false
		}
		defer resp.Body.Close()
		var out struct {
			ID string `json:"task_id"`
		}
		if json.NewDecoder(resp.Body).Decode(&out) != nil || resp.StatusCode >= 300 {
			return "", false
		}
		return out.ID, true
	}
	for n := range 4 {
		c.loading.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 3))
			for {
				template := []string{"standard_query", "simple_lookup", "quick_answer", "standard_query"}[r.IntN(4)]
				id, ok := post("/tasks/create", fmt.Sprintf(`{"user_id":"u%d","query":"Who are the SRE team members?","template":%q}`, n, template))
				if ok {
					c.mu.Lock()
					c.ids = append(c.ids, id)
					c.mu.Unlock()
					c.created.Add(1)
					if r.IntN(30) == 0 {
						post("/tasks/"+id+"/abort", `{"reason":"changed my mind"}`)
					}
				}
				select {
				case <-time.After(rand.N(200 * time.Millisecond)):
				case <-c.stopLoad:
					return
				}
			}
		})
	}
}

func (c *chaos) pause(d time.Duration) { time.Sleep(d) }

// kill ends one process after another at random moments, by SIGKILL.
func (c *chaos) kill(times int) {
	for i := range times {
		c.pause(rand.N(500 * time.Millisecond))
		var all []int64
		c.held.Range(func(n, _ any) bool { all = append(all, n.(int64)); return true })
		slices.Sort(all)
		n := all[c.r.IntN(len(all))]
		p, _ := c.held.Load(n)
		v := p.(*victim)
		if v.ended() {
			c.t.Fatalf("cairn %v has ended by itself:\n%s", v.args, v.log)
		}
		if err := v.cmd.Process.Kill(); err != nil {
			c.t.Fatal(err)
		}
		<-v.done
		c.again(n, v.args)
		if (i+1)%50 == 0 {
			c.t.Logf("%d kills, %d tasks created", i+1, c.created.Load())
		}
	}
}

// finish ends the load, waits for every task's end and checks it.
func (c *chaos) finish() {
	t := c.t
	close(c.stopLoad)
	c.loading.Wait()
	var store history
	if c.open != nil {
		store = c.open(t)
	} else {
		st, err := workspace.OpenStages(config.Selection{Root: c.root}, &workspace.StageOptions{Workers: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		store = engine{st.Engine}
	}
	began := time.Now()
	var longest time.Duration
	counts := map[stage.Status]int{}
	actions := map[stage.Action]int{}
	for _, id := range c.ids {
		var s *stage.State
		var err error
		testutil.Await(t, func() string {
			if s, err = store.Load(t.Context(), id); err != nil {
				t.Fatalf("task %s is lost: %v", id, err)
			}
			if !s.Status.Final() {
				return fmt.Sprintf("task %s is %s at %s for %v", id, s.Status, s.Current, time.Since(s.StartedAt))
			}
			return ""
		})
		counts[s.Status]++
		longest = max(longest, s.UpdatedAt.Sub(s.StartedAt))
		entries, err := store.Log(t.Context(), id)
		if err != nil {
			t.Errorf("the log of %s: %v", id, err)
		}
		checkLog(t, s, entries)
		for _, e := range entries {
			actions[e.Action]++
		}
	}
	t.Logf("%d tasks, %v after %v: all ended, the longest took %v, transitions %v", len(c.ids), counts, time.Since(began).Round(time.Second), longest, actions)
	if len(c.ids) < 20 || counts[stage.Complete] < len(c.ids)/2 {
		t.Errorf("of %d tasks %v", len(c.ids), counts)
	}
	if s, ok := store.(*pair); ok {
		s.compare(t, c.ids)
	}
}

// checkLog: a task's history has each transition once, each run of a stage ends
// at most once, and what counts is what the task says.
func checkLog(t *testing.T, s *stage.State, entries []stage.Entry) {
	t.Helper()
	ended := map[int]bool{}
	var completed []stage.Stage
	for i, e := range entries {
		if e.Version != int64(i+1) {
			t.Errorf("task %s: transition %d comes at %d", s.ID, e.Version, i+1)
		}
		switch e.Action {
		case stage.Completed, stage.Retried, stage.GaveUp, stage.Reinvoked, stage.Inserted:
			if ended[e.Run] {
				t.Errorf("task %s: run %d of %s ends twice", s.ID, e.Run, e.Stage)
			}
			ended[e.Run] = true
		}
		switch e.Action {
		case stage.Completed:
			completed = append(completed, e.Stage)
		case stage.Reinvoked:
			completed = slices.DeleteFunc(completed, func(c stage.Stage) bool { return c == stage.ExecutorReasoning || c == stage.Moderation })
		}
	}
	if len(entries) == 0 || int64(len(entries)) != s.Machine.Version || entries[len(entries)-1].Status != s.Status || !slices.Equal(completed, s.Completed) {
		t.Errorf("task %s is %s, version %d, after %v; its log of %d entries counts %v", s.ID, s.Status, s.Machine.Version, s.Completed, len(entries), completed)
	}
	if s.Status == stage.Complete && (!slices.Equal(completed, s.Plan) || s.Response == nil) {
		t.Errorf("task %s is complete after %v of %v", s.ID, completed, s.Plan)
	}
}

// history is what is looked at in the end.
type history interface {
	Load(ctx context.Context, id string) (*stage.State, error)
	Log(ctx context.Context, id string) ([]stage.Entry, error)
}

// engine is the folder's.
type engine struct{ *stage.Engine }

func (e engine) Load(ctx context.Context, id string) (*stage.State, error) { return e.Task(ctx, id) }

// services are private servers, started by .ci/services.sh.
type services struct {
	dir, redis, postgres, amqp string
}

func startServices(t *testing.T) *services {
	t.Helper()
	s := &services{dir: t.TempDir()}
	if err := os.Chmod(filepath.Dir(s.dir), 0o755); err != nil { // Postgres runs as somebody else
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("../../.ci/services.sh", "stop", s.dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	out, err := exec.Command("../../.ci/services.sh", "start", s.dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		at[name] = value
	}
	s.redis, s.postgres, s.amqp = at["CAIRN_TEST_REDIS"], at["CAIRN_TEST_POSTGRES"], at["CAIRN_TEST_AMQP"]
	if s.redis == "" || s.postgres == "" || s.amqp == "" {
		t.Skipf("want redis-server, postgres and rabbitmq-server; there is only %v", at)
	}
	return s
}

func (s *services) stop(t *testing.T, name string) {
	t.Helper()
	cmd := exec.Command("../../.ci/services.sh", "stop", s.dir)
	cmd.Env = append(os.Environ(), "SERVICES="+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

var portOf = regexp.MustCompile(`127\.0\.0\.1:(\d+)`)

func (s *services) start(t *testing.T, name string) {
	t.Helper()
	cmd := exec.Command("../../.ci/services.sh", "start", s.dir)
	cmd.Env = append(os.Environ(), "SERVICES="+name,
		"REDIS_PORT="+portOf.FindStringSubmatch(s.redis)[1], "POSTGRES_PORT="+portOf.FindStringSubmatch(s.postgres)[1], "RABBITMQ_PORT="+portOf.FindStringSubmatch(s.amqp)[1])
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "127.0.0.1") {
		t.Fatalf("%s does not come back: %v\n%s", name, err, out)
	}
}

// pair is the store that the processes share, with its copies in Redis.
type pair struct {
	*redis.Store
	copies net.Conn
}

func (s *services) open(t *testing.T) history {
	t.Helper()
	tasks, err := postgres.Open(t.Context(), s.postgres)
	if err != nil {
		t.Fatal(err)
	}
	store, err := redis.Open(t.Context(), s.redis, tasks, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	copies, err := net.Dial("tcp", portOf.FindString(s.redis))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { copies.Close() })
	return &pair{store, copies}
}

// compare compares the tasks with their copies, of which the oldest have expired.
func (p *pair) compare(t *testing.T, ids []string) {
	t.Helper()
	if _, err := p.Clean(t.Context(), time.Now(), stage.KeepArchive); err != nil {
		t.Fatal(err)
	}
	copies := bufio.NewReader(p.copies)
	compared := 0
	for _, id := range ids {
		want, err := p.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(p.copies, "GET task:%s\r\n", id)
		var n int
		if _, err := fmt.Fscanf(copies, "$%d\r\n", &n); err != nil {
			t.Fatal(err)
		}
		if n < 0 {
			continue
		}
		text := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(copies, text); err != nil {
			t.Fatal(err)
		}
		compared++
		if x, err := stage.Encode(want); err != nil || !bytes.Equal(x, text[:n]) {
			t.Errorf("the copy of %s differs: %v\n%s\n%s", id, err, x, text[:n])
		}
	}
	if left, err := p.Due(t.Context(), time.Now().AddDate(1, 0, 0), 1000); err != nil || len(left) > 0 || compared == 0 {
		t.Errorf("%d tasks have not ended, %d copies are compared, %v", len(left), compared, err)
	}
}
