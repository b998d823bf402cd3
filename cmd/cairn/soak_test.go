//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/base/testutil"
)

// TestSoak lets eight clients search, read, edit and ask through one server for the time
// that CAIRN_SOAK says, such as 10m. No request fails, no card is lost, and neither the
// memory nor the descriptors nor the goroutines of the server grow after the first fifth.
// Half of the clients speak MCP, and leave every 300 steps for new ones with a session of
// their own; the others use the JSON API. Edits are of files on disk, which the server
// watches, and of task cards, by MCP. Twenty times the folder is moved away and a copy put
// in its place. CAIRN_SOAK_RATE bounds the steps a second of all clients.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("CAIRN_SOAK"))
	if err != nil {
		t.Skip("set CAIRN_SOAK to how long it shall run, such as 10m")
	}
	root := filepath.Join(t.TempDir(), "soaked")
	if err := testutil.WriteFolder(root, 300, 7); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "-C", root, "--no-rate-limit", "--pprof", "127.0.0.1:0")
	s.awaitReady(t)
	proc := fmt.Sprintf("/proc/%d", s.cmd.Process.Pid)
	deadline := time.Now().Add(length)
	clients := &soakClients{t: t, s: s, root: root, deadline: deadline}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() { clients.run(n) })
	}
	profiles := regexp.MustCompile(`http://[^ ]+/debug/pprof/`).FindString(s.log.String())
	if profiles == "" {
		t.Fatalf("no address of profiles:\n%s", s.log)
	}
	type sample struct{ anon, file, heap, descriptors, goroutines int }
	var samples []sample
	tick := time.NewTicker(length / 20)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		<-tick.C
		samples = append(samples, sample{residentKiB(t, proc, "RssAnon"), residentKiB(t, proc, "RssFile"), liveKiB(t, profiles), descriptors(t, proc), goroutines(t, profiles)})
		clients.replaceFolder()
	}
	wg.Wait()
	// A sample includes what the requests of that moment hold, so the least of four
	// is compared.
	least := func(samples []sample) sample {
		low := samples[0]
		for _, s := range samples {
			low = sample{min(low.anon, s.anon), min(low.file, s.file), min(low.heap, s.heap), min(low.descriptors, s.descriptors), min(low.goroutines, s.goroutines)}
		}
		return low
	}
	n := len(samples)
	first, last := least(samples[n/5:2*n/5]), least(samples[n-n/5:])
	c := &clients.counts
	t.Logf("%v: %d searches, %d reads, %d edits, %d questions, %d sessions, %d times another folder; %d failed; least of the second fifth %+v, of the last %+v (KiB); all samples %v",
		length, c[0].Load(), c[1].Load(), c[2].Load(), c[3].Load(), clients.sessions.Load(), clients.replaced, clients.failed.Load(), first, last, samples)
	if last.heap > first.heap*9/8+8<<10 {
		t.Errorf("the live heap grew from %d to %d KiB", first.heap, last.heap)
	}
	if last.anon > first.anon*5/4+32<<10 {
		t.Errorf("memory grew from %d to %d KiB", first.anon, last.anon)
	}
	if last.descriptors > first.descriptors+12 {
		t.Errorf("descriptors grew from %d to %d", first.descriptors, last.descriptors)
	}
	if last.goroutines > first.goroutines+24 {
		t.Errorf("goroutines grew from %d to %d", first.goroutines, last.goroutines)
	}
	if err := s.stop(t); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, s.log)
	}
}

// soakClients are the clients of one server.
type soakClients struct {
	t        *testing.T
	s        *serving
	root     string
	deadline time.Time
	counts   [4]atomic.Int64 // searches, reads, edits, questions
	sessions atomic.Int64
	failed   atomic.Int64

	folder   sync.RWMutex // held for reading during a step
	replaced int
	cards    sync.Map // ids
}

func (s *soakClients) fail(format string, args ...any) {
	if s.failed.Add(1) <= 10 {
		s.t.Errorf(format, args...)
	}
}

// run is one client after the other until the deadline.
func (s *soakClients) run(n int) {
	rate, _ := strconv.ParseFloat(os.Getenv("CAIRN_SOAK_RATE"), 64)
	c := &soakClient{url: s.s.url, http: &http.Client{Timeout: time.Minute}, r: rand.New(rand.NewPCG(uint64(n), 1))}
	defer c.http.CloseIdleConnections()
	own := filepath.Join(s.root, fmt.Sprintf("own-%d.md", n))
	for i := 0; time.Now().Before(s.deadline); i++ {
		if rate > 0 {
			time.Sleep(time.Duration(8 / rate * float64(time.Second)))
		}
		s.folder.RLock()
		err := s.step(c, n, i, own)
		s.folder.RUnlock()
		if err != nil {
			s.fail("client %d, step %d: %v", n, i, err)
		}
	}
}

func (s *soakClients) step(c *soakClient, n, i int, own string) error {
	if n%2 == 0 && i%300 == 0 {
		if err := c.leave(); err != nil {
			return err
		}
		s.sessions.Add(1)
		return c.initialize()
	}
	switch k := c.r.IntN(100); {
	case k < 60:
		s.counts[0].Add(1)
		_, err := c.call("read_context", "search", map[string]any{"query": testutil.Sentence(c.r, 4), "limit": 1 + c.r.IntN(10), "format": "json"})
		return err
	case k < 88:
		s.counts[1].Add(1)
		return c.readSomething()
	case k < 90:
		s.counts[3].Add(1)
		return c.question()
	}
	s.counts[2].Add(1)
	err := os.WriteFile(own, fmt.Appendf(nil, "# Own %d\n\n%s\n\n## Part %d\n\n%s\n", n, testutil.Sentence(c.r, 30), i%7, testutil.Sentence(c.r, 30)), 0o644)
	if err == nil && c.session != "" && i%10 == 0 {
		if err = c.card(n); err == nil {
			s.cards.Store(c.last.card, true)
		}
	}
	return err
}

// replaceFolder moves the folder away, puts a copy in its place, and waits until the
// server has all cards and documents of the copy.
func (s *soakClients) replaceFolder() {
	s.folder.Lock()
	defer s.folder.Unlock()
	away := s.root + ".away"
	if err := os.Rename(s.root, away); err != nil {
		s.fail("%v", err)
		return
	}
	if err := os.CopyFS(s.root, os.DirFS(away)); err != nil {
		s.fail("%v", err)
	}
	if err := os.RemoveAll(away); err != nil {
		s.fail("%v", err)
	}
	s.replaced++
	c := &soakClient{url: s.s.url, http: &http.Client{Timeout: time.Minute}}
	defer c.http.CloseIdleConnections()
	if err := c.initialize(); err != nil {
		s.fail("after the folder was replaced: %v", err)
		return
	}
	s.cards.Range(func(id, _ any) bool {
		if _, err := c.call("update_task", "", map[string]any{"id": id, "updates": map[string]any{"priority": "low"}}); err != nil {
			s.fail("after the folder was replaced, card %v: %v", id, err)
		}
		if _, err := os.Stat(filepath.Join(s.root, ".cairn", "cards", fmt.Sprint(id)+".md")); err != nil {
			s.fail("after the folder was replaced: %v", err)
		}
		return true
	})
	s.s.awaitReady(s.t)
	if err := c.leave(); err != nil {
		s.fail("%v", err)
	}
}

// awaitReady waits until the index has all documents.
func (s *serving) awaitReady(t *testing.T) {
	for ready := ""; !strings.Contains(ready, `"state":"ready"`); {
		_, ready = get(t, s.url+"/api/status")
	}
}

// soakClient asks with a session of MCP when it has one, else the API.
type soakClient struct {
	url, session string
	http         *http.Client
	r            *rand.Rand
	id           int
	last         struct{ path, anchor, card string }
}

func (c *soakClient) post(path string, body any) (*http.Response, []byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequest(http.MethodPost, c.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	r, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode >= 300 {
		err = fmt.Errorf("%s: %.300s", r.Status, answer)
	}
	if _, data, ok := bytes.Cut(answer, []byte("data: ")); ok {
		answer = data
	}
	return r, answer, err
}

func (c *soakClient) initialize() error {
	r, _, err := c.post("/mcp", map[string]any{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "soak", "version": "0"}}})
	if err != nil {
		return err
	}
	c.session = r.Header.Get("Mcp-Session-Id")
	_, _, err = c.post("/mcp", map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return err
}

// leave ends the session, if there is one, and the connection.
func (c *soakClient) leave() error {
	defer c.http.CloseIdleConnections()
	if c.session == "" {
		return nil
	}
	req, err := http.NewRequest(http.MethodDelete, c.url+"/mcp", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Mcp-Session-Id", c.session)
	c.session = ""
	r, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return r.Body.Close()
}

// question creates a question task and aborts it.
func (c *soakClient) question() error {
	_, answer, err := c.post("/tasks/create", map[string]any{"user_id": "soak", "query": testutil.Sentence(c.r, 6)})
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"task_id"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return err
	}
	_, _, err = c.post("/tasks/"+made.ID+"/abort", map[string]any{})
	return err
}

// call uses a tool and remembers the first place it answers with.
func (c *soakClient) call(tool, api string, args map[string]any) ([]byte, error) {
	var answer []byte
	var err error
	if c.session == "" {
		_, answer, err = c.post("/api/"+api, args)
	} else {
		c.id++
		_, answer, err = c.post("/mcp", map[string]any{"jsonrpc": "2.0", "id": c.id, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
		var m struct {
			Result struct {
				StructuredContent json.RawMessage
				IsError           bool
			}
			Error json.RawMessage
		}
		if err == nil {
			err = json.Unmarshal(answer, &m)
		}
		if err == nil && (m.Result.IsError || m.Error != nil) {
			err = fmt.Errorf("%s: %.300s", tool, answer)
		}
		answer = m.Result.StructuredContent
	}
	if err != nil {
		return nil, err
	}
	var found struct {
		Results []struct{ Path, Anchor string }
	}
	if json.Unmarshal(answer, &found) == nil && len(found.Results) > 0 {
		c.last.path, c.last.anchor = found.Results[0].Path, found.Results[0].Anchor
	}
	return answer, nil
}

// readSomething reads the last hit. A section that an edit took away in the
// meantime is no failure of the server.
func (c *soakClient) readSomething() error {
	if c.last.path == "" {
		return nil
	}
	_, err := c.call("read_doc", "read", map[string]any{"path": c.last.path, "anchor": c.last.anchor})
	if err != nil && strings.HasPrefix(c.last.path, "own-") && strings.Contains(err.Error(), "Not Found") {
		return nil
	}
	return err
}

// card makes a task card once, and changes it from then on.
func (c *soakClient) card(n int) error {
	if c.last.card == "" {
		answer, err := c.call("create_task", "", map[string]any{"title": fmt.Sprintf("Soak %d", n)})
		if err != nil {
			return err
		}
		var made struct {
			ID   string `json:"id"`
			Task struct {
				ID string `json:"id"`
			} `json:"task"`
		}
		if err := json.Unmarshal(answer, &made); err != nil {
			return err
		}
		if c.last.card = made.ID; c.last.card == "" {
			c.last.card = made.Task.ID
		}
		return nil
	}
	_, err := c.call("update_task", "", map[string]any{"id": c.last.card, "updates": map[string]any{"priority": []string{"low", "medium", "high"}[c.r.IntN(3)]}})
	return err
}

// liveKiB is what the heap of a process holds after its garbage is collected.
// With CAIRN_SOAK_PROFILES the profile is kept in that folder.
func liveKiB(t *testing.T, profiles string) int {
	t.Helper()
	code, text := get(t, profiles+"heap?gc=1&debug=1")
	if folder := os.Getenv("CAIRN_SOAK_PROFILES"); folder != "" {
		_, profile := get(t, profiles+"heap")
		if err := os.WriteFile(filepath.Join(folder, time.Now().Format("150405")+".heap"), []byte(profile), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := regexp.MustCompile(`# HeapAlloc = (\d+)`).FindStringSubmatch(text)
	if code != http.StatusOK || m == nil {
		t.Fatalf("%s: %d %.200s", profiles, code, text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n >> 10
}

// goroutines is how many a process has.
func goroutines(t *testing.T, profiles string) int {
	t.Helper()
	_, text := get(t, profiles+"goroutine?debug=1")
	var n int
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &n); err != nil {
		t.Fatalf("%v: %.100s", err, text)
	}
	return n
}

// residentKiB is the memory of one kind that a process has in use.
func residentKiB(t *testing.T, proc, kind string) int {
	t.Helper()
	text, err := os.ReadFile(proc + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, kind+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("%s/status names no %s", proc, kind)
	return 0
}

// descriptors is how many files and sockets a process holds open.
func descriptors(t *testing.T, proc string) int {
	t.Helper()
	list, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
