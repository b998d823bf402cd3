//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cairn/internal/base/testutil"
)

// TestLoad lets 8, 64, 256 and again 8 HTTP clients on kept connections, and eight `cairn
// mcp`, search one folder for the time that CAIRN_LOAD says each, such as 60s, while files
// are added. In each phase the owner of the folder is stopped for two seconds, and another
// time killed and started again. No answer fails or lacks a file that was found before,
// except for refusals by the documented limits.
func TestLoad(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("CAIRN_LOAD"))
	if err != nil {
		t.Skip("set CAIRN_LOAD to the length of each phase, such as 60s")
	}
	l := &load{t: t, root: filepath.Join(t.TempDir(), "loaded"), cairn: binary(t), ended: make(chan struct{})}
	if err := testutil.WriteFolder(l.root, 200, 7); err != nil {
		t.Fatal(err)
	}
	l.serve("127.0.0.1:0")
	l.serving.Load().awaitReady(t)
	var others, edits sync.WaitGroup
	for n := range l.stdio {
		l.startStdio(n)
		others.Go(func() { l.searchStdio(n) })
	}
	edits.Go(l.edit)
	for _, clients := range []int{8, 64, 256, 8} {
		l.phase(clients, length)
	}
	close(l.ended)
	edits.Wait()
	others.Wait()
	slices.Sort(l.found)
	t.Logf("stdio: %s", &l.others)
	t.Logf("%d of %d added files found, median %v, longest %v; victims %v", len(l.found), l.added, l.found[len(l.found)/2], l.found[len(l.found)-1], l.victims)
	if len(l.found) < l.added {
		t.Errorf("%d of %d added files were found", len(l.found), l.added)
	}
}

// load is the state of TestLoad.
type load struct {
	t           *testing.T
	root, cairn string
	ended       chan struct{}

	serving atomic.Pointer[serving] // nil while it is down
	stdio   [8]atomic.Pointer[stdioSession]
	kills   atomic.Int64 // twice the kills of all processes, odd until the process runs again
	known   atomic.Int64 // files below this number were found
	others  tally
	victims []string
	added   int
	found   []time.Duration
}

// tally counts answers.
type tally struct {
	answers, degraded, refused, cut, failed atomic.Int64

	mu    sync.Mutex
	times []time.Duration
}

func (c *tally) String() string {
	slices.Sort(c.times)
	at := func(share float64) time.Duration {
		if len(c.times) == 0 {
			return 0
		}
		return c.times[int(share*float64(len(c.times)-1))].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d answers, %d of them without the owner, %d refused, %d cut by a kill, %d failed; p50 %v, p95 %v, p99 %v, longest %v",
		c.answers.Load(), c.degraded.Load(), c.refused.Load(), c.cut.Load(), c.failed.Load(), at(.5), at(.95), at(.99), at(1))
}

func (l *load) fail(c *tally, format string, args ...any) {
	if c.failed.Add(1) <= 10 {
		l.t.Errorf(format, args...)
	}
}

func (l *load) serve(addr string) {
	l.serving.Store(startServe(l.t, "-C", l.root, "--no-rate-limit", "--addr", addr))
}

func (l *load) startStdio(n int) {
	s := startStdio(l.t, l.cairn, l.root)
	s.initialize(l.t)
	l.stdio[n].Store(s)
}

// query returns a query for a file that was found before, or for any.
func (l *load) query(n int) (text, want string) {
	if known := l.known.Load(); n%2 == 0 && known > 0 {
		name := added(n % int(known))
		return name, name + ".md"
	}
	return fmt.Sprintf("section number %d", n), ""
}

func added(n int) string { return fmt.Sprintf("kestrel%05dq", n) }

// take counts an answer that began after the given number of kills.
func (l *load) take(c *tally, began time.Time, kills int64, want, body string, status int, err error) {
	switch {
	case err != nil && (l.kills.Load() > kills || kills%2 == 1):
		c.cut.Add(1)
	case err == nil && (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests):
		c.refused.Add(1)
	case err != nil || status != http.StatusOK || !strings.Contains(body, want):
		l.fail(c, "after %v: status %d, %v, want %q: %.600s", time.Since(began), status, err, want, body)
	default:
		c.answers.Add(1)
		if strings.Contains(body, `"owner"`) {
			c.degraded.Add(1)
		}
		c.mu.Lock()
		c.times = append(c.times, time.Since(began))
		c.mu.Unlock()
	}
}

// phase runs HTTP clients for a time. It stops the owner after a third of it, and kills the
// owner after two thirds.
func (l *load) phase(clients int, length time.Duration) {
	c := &tally{}
	end := make(chan struct{})
	var running sync.WaitGroup
	for n := range clients {
		running.Go(func() { l.searchHTTP(c, n, end) })
	}
	time.Sleep(length / 3)
	pid, role := l.owner()
	l.victims = append(l.victims, "stopped "+role)
	syscall.Kill(pid, syscall.SIGSTOP)
	time.Sleep(2 * time.Second)
	syscall.Kill(pid, syscall.SIGCONT)
	time.Sleep(length / 3)
	pid, role = l.owner()
	l.victims = append(l.victims, "killed "+role)
	l.kill(pid)
	time.Sleep(length / 3)
	proc := fmt.Sprintf("/proc/%d", l.serving.Load().cmd.Process.Pid)
	memory, open := residentKiB(l.t, proc, "VmRSS")>>10, descriptors(l.t, proc)
	close(end)
	running.Wait()
	l.t.Logf("%d clients: %s; %d MiB, %d descriptors", clients, c, memory, open)
}

// owner returns the process that owns the folder.
func (l *load) owner() (pid int, role string) {
	for {
		out, err := exec.Command(l.cairn, "status", "--json", "-C", l.root).Output()
		var status struct{ Owner struct{ Pid int } }
		if err == nil {
			err = json.Unmarshal(out, &status)
		}
		if err != nil {
			l.t.Errorf("cairn status: %v", err)
		}
		if pid = status.Owner.Pid; pid == l.serving.Load().cmd.Process.Pid {
			return pid, "serve"
		}
		for n := range l.stdio {
			if pid == l.stdio[n].Load().cmd.Process.Pid {
				return pid, "mcp"
			}
		}
		time.Sleep(100 * time.Millisecond) // a command owns the folder
	}
}

// kill kills a process and starts another in its place.
func (l *load) kill(pid int) {
	l.kills.Add(1)
	if s := l.serving.Load(); s.cmd.Process.Pid == pid {
		u, _ := url.Parse(s.url)
		s.cmd.Process.Kill()
		<-s.end
		s.cmd.Wait()
		l.serve(u.Host)
	}
	for n := range l.stdio {
		if s := l.stdio[n].Load(); s.cmd.Process.Pid == pid {
			s.cmd.Process.Kill()
			s.cmd.Wait()
			l.startStdio(n)
		}
	}
	l.kills.Add(1)
}

func (l *load) searchHTTP(c *tally, n int, end chan struct{}) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for ; ; n += 256 {
		select {
		case <-end:
			return
		default:
		}
		text, want := l.query(n)
		began, kills := time.Now(), l.kills.Load()
		status, body, err := loadSearch(client, l.serving.Load().url, text)
		l.take(c, began, kills, want, body, status, err)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func loadSearch(client *http.Client, base, text string) (status int, body string, err error) {
	r, err := client.Get(base + "/api/search?mode=keyword&q=" + url.QueryEscape(text))
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	return r.StatusCode, string(all), err
}

func (l *load) searchStdio(n int) {
	for i := n; ; i += len(l.stdio) {
		select {
		case <-l.ended:
			return
		default:
		}
		s := l.stdio[n].Load()
		text, want := l.query(i)
		began, kills := time.Now(), l.kills.Load()
		fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_context","arguments":{"query":%q,"mode":"keyword"}}}`+"\n", text)
		body, err := s.out.ReadString('\n')
		for strings.Contains(body, `"method":"notifications/`) {
			body, err = s.out.ReadString('\n')
		}
		status := http.StatusOK
		if err != nil {
			time.Sleep(50 * time.Millisecond)
		} else if strings.Contains(body, `"error":`) || strings.Contains(body, `"isError":true`) {
			status = http.StatusInternalServerError
		}
		if err != nil && l.stdio[n].Load() != s {
			kills-- // it was killed before the call
		}
		l.take(&l.others, began, kills, want, body, status, err)
	}
}

// edit adds one file after the other, and waits until it is found.
func (l *load) edit() {
	client := &http.Client{Timeout: time.Minute}
	for {
		select {
		case <-l.ended:
			return
		case <-time.After(time.Second):
		}
		name := added(l.added)
		if err := os.WriteFile(filepath.Join(l.root, name+".md"), []byte("# Page\n\nAbout "+name+".\n"), 0o644); err != nil {
			l.t.Error(err)
			return
		}
		l.added++
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			_, body, err := loadSearch(client, l.serving.Load().url, name)
			if err == nil && strings.Contains(body, name+".md") {
				l.found = append(l.found, time.Since(began))
				l.known.Store(int64(l.added))
				break
			}
			if time.Since(began) > 2*time.Minute {
				return // TestLoad counts it
			}
		}
	}
}
