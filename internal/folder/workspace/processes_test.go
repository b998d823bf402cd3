package workspace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/base/owner"
	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/models"
	"cairn/retriever"
)

// roleVariable makes the test binary act as another process on the folder in
// its argument.
const roleVariable = "CAIRN_TEST_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func(config.Selection, *bufio.Scanner) error{"own": own, "hold": hold, "serve": serve, "search": searchMany, "index": indexOnce}
	role, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		testutil.Main(m)
	}
	sel := config.Selection{Root: os.Getenv("CAIRN_TEST_ROOT"), Rule: config.RuleFlag}
	if err := role(sel, bufio.NewScanner(os.Stdin)); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// own owns the folder and indexes it again and again until its input ends, with a
// slow embedder.
func own(sel config.Selection, in *bufio.Scanner) error {
	o := hashed()
	o.Command = "cairn index"
	o.Model = func() (models.Embedder, error) {
		return &testutil.HashEmbedder{Before: func(texts []string) error { time.Sleep(20 * time.Millisecond); return nil }}, nil
	}
	w, err := Open(context.Background(), sel, config.Default(), Owning, o)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			if _, err := index.IndexOp.Call(context.Background(), w.Folder, index.IndexRequest{Join: true}, nil); err != nil && !errors.Is(err, context.Canceled) {
				ended <- err
				return
			}
			select {
			case <-stop:
				return
			default:
			}
			// Something to do for the next run.
			name := filepath.Join(sel.Root, fmt.Sprintf("new%d.md", n%20))
			if err := os.WriteFile(name, fmt.Appendf(nil, "# New %d\n\n%s\n", n, strings.Repeat("More text about the login flow. ", 1+n%7)), 0o644); err != nil {
				ended <- err
				return
			}
		}
	}()
	fmt.Println("owning")
	in.Scan()
	close(stop)
	return errors.Join(<-ended, w.Close())
}

// hold owns the indexed folder and answers for it until its input ends.
func hold(sel config.Selection, in *bufio.Scanner) error {
	o := hashed()
	o.Command = "cairn mcp"
	w, err := Open(context.Background(), sel, config.Default(), Owning, o)
	if err != nil {
		return err
	}
	fmt.Println("owning")
	in.Scan()
	return w.Close()
}

// serve owns the folder, indexes and watches it until its input ends.
func serve(sel config.Selection, in *bufio.Scanner) error {
	o := hashed()
	o.Command, o.Watch, o.Background = "cairn serve", true, true
	w, err := Open(context.Background(), sel, config.Default(), Owning, o)
	if err != nil {
		return err
	}
	fmt.Println("owning")
	in.Scan()
	return w.Close()
}

// searchMany opens the folder, searches and closes it again, as `cairn search`
// does, until its input ends. It prints the times in milliseconds.
func searchMany(sel config.Selection, in *bufio.Scanner) error {
	done := make(chan struct{})
	go func() { in.Scan(); close(done) }()
	for {
		select {
		case <-done:
			return nil
		default:
		}
		start := time.Now()
		w, err := Open(context.Background(), sel, config.Default(), Reading, hashed())
		if err != nil {
			return err
		}
		a, err := index.SearchOp.Call(context.Background(), w.Folder, retriever.Query{Text: "login flow token"}, nil)
		if err != nil {
			return err
		}
		if len(a.Results) == 0 {
			return fmt.Errorf("nothing found: %+v", a)
		}
		if err := w.Close(); err != nil {
			return err
		}
		fmt.Println(time.Since(start).Milliseconds())
	}
}

// indexOnce indexes the folder and prints what came of it.
func indexOnce(sel config.Selection, _ *bufio.Scanner) error {
	start := time.Now()
	o := hashed()
	o.Command = "cairn index"
	w, err := Open(context.Background(), sel, config.Default(), Owning, o)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = index.IndexOp.Call(context.Background(), w.Folder, index.IndexRequest{}, nil)
	lock, refused := errors.AsType[*owner.LockError](err)
	if err != nil && !refused {
		return err
	}
	if refused {
		fmt.Println("refused by", lock.Holder.PID)
	}
	fmt.Println("took", time.Since(start).Milliseconds())
	return nil
}

// process is another process in a role.
type process struct {
	cmd  *exec.Cmd
	stop func()
	out  *bufio.Scanner
}

func start(t *testing.T, role string, sel config.Selection) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "CAIRN_TEST_ROOT="+sel.Root)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, out: bufio.NewScanner(out), stop: sync.OnceFunc(func() { in.Close() })}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return p
}

// line is the next line the process prints.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the process ended: %v", p.out.Err())
	}
	return p.out.Text()
}

// TestSearchersBesideAnIndexer runs five processes that search while one
// indexes and other processes come to own the folder and go.
func TestSearchersBesideAnIndexer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts seven processes for some seconds")
	}
	sel := folder(t)
	if err := testutil.WriteFolder(sel.Root, 120, 1); err != nil {
		t.Fatal(err)
	}
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	w.Close()

	var searchers []*process
	for range 5 {
		searchers = append(searchers, start(t, "search", sel))
	}
	times := make([][]int, len(searchers))
	searched := make([]chan struct{}, len(searchers))
	var reading sync.WaitGroup
	for i, p := range searchers {
		searched[i] = make(chan struct{}, 1<<16)
		reading.Go(func() {
			defer close(searched[i])
			for p.out.Scan() {
				ms, err := strconv.Atoi(p.out.Text())
				if err != nil {
					t.Errorf("searcher %d: %s", i, p.out.Text())
					return
				}
				times[i] = append(times[i], ms)
				searched[i] <- struct{}{}
			}
		})
	}
	for range 3 {
		child := start(t, "own", sel)
		if got := child.line(t); got != "owning" {
			t.Fatalf("owner: %s", got)
		}
		// An indexer is served or refused while the owner is there.
		indexer := start(t, "index", sel)
		var last string
		for indexer.out.Scan() {
			last = indexer.out.Text()
		}
		if !strings.HasPrefix(last, "took ") {
			t.Errorf("cairn index during another run printed %q, want the time that it took", last)
		}
		// So is every searcher, again and again.
		for i, searches := range searched {
			for len(searches) > 0 {
				<-searches
			}
			for range 12 {
				if _, ok := <-searches; !ok {
					t.Fatalf("searcher %d has ended", i)
				}
			}
		}
		child.stop()
		if err := child.cmd.Wait(); err != nil {
			t.Errorf("owner: %v", err)
		}
	}
	for _, p := range searchers {
		p.stop()
	}
	reading.Wait()
	for i, p := range searchers {
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("searcher %d: %v", i, err)
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(times...)))
	if len(all) < 20 {
		t.Fatalf("%d searches in all, want more", len(all))
	}
	t.Logf("%d searches: p50 %d ms, p95 %d ms, max %d ms", len(all), all[len(all)/2], all[len(all)*95/100], all[len(all)-1])
}

// TestKilledOwnerIsSucceeded makes sure that a process that dies leaves nothing
// behind that keeps others out.
func TestKilledOwnerIsSucceeded(t *testing.T) {
	sel := folder(t)
	child := start(t, "own", sel)
	child.line(t)
	w := open(t, sel, Owning, hashed())
	s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
	if err != nil || s.Owner == nil || s.Owner.PID != child.cmd.Process.Pid {
		t.Fatalf("Status = %+v, %v, want process %d as the owner", s, err, child.cmd.Process.Pid)
	}
	// What the lock says is for people who look at the file.
	var h owner.Holder
	if text, err := os.ReadFile(filepath.Join(w.place.Index, "lock")); err != nil || json.Unmarshal(text, &h) != nil || h.PID != child.cmd.Process.Pid {
		t.Errorf("the lock says %s, %v, want process %d", text, err, child.cmd.Process.Pid)
	}
	child.cmd.Process.Kill()
	child.cmd.Wait()
	s, err = index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
	if err != nil || s.Owner == nil || s.Owner.PID != os.Getpid() {
		t.Errorf("Status = %+v, %v, want this process as the owner", s, err)
	}
	if report := fill(t, w, index.IndexRequest{}); report.Pending != 0 || report.Files < 3 {
		t.Errorf("the run after = %+v, want it complete", report)
	}
}
