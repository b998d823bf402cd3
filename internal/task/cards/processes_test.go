package cards

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

const (
	workerEnv = "CAIRN_CARDS_WORKER"
	workers   = 4
	rounds    = 15
)

// TestMain runs the test binary as one of the processes of TestManyProcesses if the
// environment requests it.
func TestMain(m *testing.M) {
	if dir := os.Getenv(workerEnv); dir != "" {
		if err := work(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work creates cards, and adds its own tag to the shared card.
func work(dir string) error {
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		return err
	}
	defer tree.Close()
	s := New(files.New(tree, &files.Options{LockWait: 1e11}), nil)
	for i := range rounds {
		a, err := s.Create(context.Background(), CreateRequest{Title: "same title"})
		if err != nil {
			return err
		}
		status, _ := json.Marshal([]string{"todo", "active"}[i%2])
		if _, err := s.Update(context.Background(), UpdateRequest{ID: "shared", Updates: map[string]json.RawMessage{"status": status}}); err != nil {
			return err
		}
		fmt.Println(a.ID)
	}
	return nil
}

// TestClaim: of many requests that make a card active, each for its assignee, one succeeds, and
// a card that is done stays done.
func TestClaim(t *testing.T) {
	s, dir := board(t, nil, map[string]string{"aaaaaa": card("A", "status: todo\n")})
	var claims sync.WaitGroup
	var claimed atomic.Int32
	claim := func(who string) error {
		_, err := s.Update(context.Background(), update("aaaaaa", `{"status":"active","assignee":"`+who+`"}`))
		return err
	}
	for i := range 10 {
		claims.Go(func() {
			if claim(fmt.Sprint("@a", i)) == nil {
				claimed.Add(1)
			}
		})
	}
	claims.Wait()
	if n := claimed.Load(); n != 1 {
		t.Errorf("%d claims succeeded, want 1", n)
	}
	_, c, err := s.named("aaaaaa")
	if err != nil {
		t.Fatal(err)
	}
	if err := claim(strings.ToUpper(c.Assignee)); err != nil {
		t.Errorf("its assignee claims it again: %v", err)
	}
	if err := claim("@b"); code(err) != 1010 || !strings.Contains(err.Error(), "is active for "+strings.ToUpper(c.Assignee)) {
		t.Errorf("another claim: %v, want 1010 with the assignee", err)
	}
	for _, u := range []string{`{"assignee":"@b"}`, `{"status":"done"}`} {
		if _, err := s.Update(context.Background(), update("aaaaaa", u)); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	if err := claim("@b"); code(err) != 1010 || !strings.HasSuffix(err.Error(), "is done") {
		t.Errorf("a claim of a card that is done: %v, want 1010", err)
	}
	if text := read(t, dir, "aaaaaa"); !strings.Contains(text, "status: done") {
		t.Errorf("the card is\n%s", text)
	}
}

// TestManyProcesses creates and updates cards in several processes at the same time. No card
// is lost or torn, and no ID is used twice.
func TestManyProcesses(t *testing.T) {
	s, dir := board(t, nil, map[string]string{"shared": card("Shared", "x-own: stays # so does this\n")})
	var mu sync.Mutex
	ids := map[string]bool{}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), workerEnv+"="+dir)
			out, err := cmd.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("worker: %v\n%s", err, out)
			}
			for _, id := range strings.Fields(string(out)) {
				if ids[id] {
					t.Errorf("id %s was given out twice", id)
				}
				ids[id] = true
			}
		})
	}
	for range 50 { // a reader meanwhile sees whole cards
		b, err := s.Board()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Unusable {
			t.Errorf("a reader sees a torn card: %+v", p)
		}
	}
	wg.Wait()
	if len(ids) != workers*rounds {
		t.Errorf("%d ids, want %d", len(ids), workers*rounds)
	}
	made, _ := os.ReadDir(filepath.Join(dir, ".cairn", "cards"))
	if len(made) != len(ids)+1 {
		t.Errorf("%d files for %d cards", len(made), len(ids)+1)
	}
	if text := read(t, dir, "shared"); strings.Count(text, "status:") != 1 || !strings.Contains(text, "x-own: stays # so does this\n") || !strings.HasSuffix(text, "---\n\nBody\n") {
		t.Errorf("the shared card is\n%s", text)
	}
}
