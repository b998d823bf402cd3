package indexer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/text/query"
)

// crashOptions make many small steps out of a small folder.
var crashOptions = Options{WindowChunks: 24, BatchTexts: 8}

// TestCrashChild is the process that the tests below kill. It indexes a folder,
// prints a line at every point it reaches, and kills itself at a given one.
func TestCrashChild(t *testing.T) {
	root, index := os.Getenv("CAIRN_CRASH_ROOT"), os.Getenv("CAIRN_CRASH_INDEX")
	if root == "" {
		t.Skip("run by the crash tests")
	}
	at, nth := os.Getenv("CAIRN_CRASH_AT"), 1
	if name, n, ok := strings.Cut(at, ":"); ok {
		at = name
		nth, _ = strconv.Atoi(n)
	}
	var mu sync.Mutex
	o := crashOptions
	o.Attempts = filepath.Join(index, "attempts")
	o.Reached = func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if point == at {
			if nth--; nth == 0 {
				self, err := os.FindProcess(os.Getpid())
				if err == nil {
					err = self.Kill()
				}
				if err != nil {
					panic(err)
				}
				select {} // the signal is on its way
			}
		}
		fmt.Println("reached", point)
	}
	e := &testutil.HashEmbedder{}
	s, closeAll, err := open(root, index, e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(s, e, &o).Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := closeAll(); err != nil {
		t.Fatal(err)
	}
}

// child runs TestCrashChild and kills it after steps lines, 0 for never.
// completed is whether it came to its end.
func child(t *testing.T, root, index, at string, steps int) (completed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), "CAIRN_CRASH_ROOT="+root, "CAIRN_CRASH_INDEX="+index, "CAIRN_CRASH_AT="+at)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "reached ") {
			said = append(said, lines.Text())
		} else if steps--; steps == 0 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if err == nil {
		return true
	}
	if cmd.ProcessState.Exited() {
		t.Fatalf("the child ended by itself with %v: %s", err, strings.Join(said, "\n"))
	}
	return false
}

// A file whose indexing ended the process twice is set aside until it changes; it took
// down each process that opened the folder. The others are indexed.
func TestFileThatEndsTheProcessIsSetAside(t *testing.T) {
	for _, point := range []string{"keywords read", ""} {
		root, index := t.TempDir(), t.TempDir()
		large := strings.Repeat("word ", minAttempted)
		write(t, root, "large.md", large)
		write(t, root, "small.md", "# small")
		for range 2 {
			if point == "keywords read" && child(t, root, index, point, 0) {
				t.Fatalf("the child came past %q", point)
			}
		}
		skipped := func() (reasons []string, files int) {
			if !child(t, root, index, "", 0) {
				t.Fatal("the child was killed")
			}
			s, closeAll, err := open(root, index, &testutil.HashEmbedder{})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll()
			list, err := s.Docs.Skipped()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				reasons = append(reasons, f.Path+": "+f.Reason)
			}
			counts, err := s.Docs.Counts()
			if err != nil {
				t.Fatal(err)
			}
			return reasons, counts.Files
		}
		want := []string{"large.md: " + setAside}
		if point != "keywords read" {
			want = nil
		}
		for range 2 { // the second run reads it from the list
			if got, files := skipped(); !slices.Equal(got, want) || files != 2-len(want) {
				t.Errorf("ended at %q: skipped %q with %d files, want %q", point, got, files, want)
			}
		}
		write(t, root, "large.md", large+"changed")
		if got, files := skipped(); len(got) > 0 || files != 2 {
			t.Errorf("after a change: skipped %q with %d files, want both indexed", got, files)
		}
	}
}

// checkInterrupted opens an index as a crash left it: whatever is not marked as
// pending has to be there, and a search finds nothing that is unaccounted for.
func checkInterrupted(t *testing.T, root, index string) {
	t.Helper()
	e := &testutil.HashEmbedder{}
	s, closeAll, err := open(root, index, e)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var pending [2]map[string]bool
	stale := [2]map[string]bool{{}, {}}
	for kind := range pending {
		pending[kind] = map[string]bool{}
		var marks []docs.PendingDoc
		check(s.Docs.View(func(r *docs.Reader) (err error) {
			marks, err = r.Pending(docs.Kind(kind), "", 0)
			return err
		}))
		for _, m := range marks {
			pending[kind][m.Path] = true
			for _, id := range m.Stale {
				stale[kind][id] = true
			}
		}
	}
	files, err := s.Docs.Files()
	check(err)
	known := map[string]bool{}
	for path, f := range files {
		d, err := s.Docs.Document(path)
		check(err)
		if body, _, err := s.Docs.Text(path); err != nil || int64(len(body)) != f.Size {
			t.Errorf("%s has %d bytes of text (%v), want %d", path, len(body), err, f.Size)
		}
		ids := d.ChunkIDs()
		for _, id := range ids {
			known[id] = true
		}
		has := haveVectors(t, s, ids)
		for i := range ids {
			if !has[i] && !pending[docs.Vectors][path] {
				t.Errorf("%s has no vector and is not pending", ids[i])
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		q := testutil.Sentence(r, 2)
		v, err := e.EmbedQuery(context.Background(), q)
		check(err)
		byVector, err := s.Vectors.Search(context.Background(), v, 50, store.Filter{})
		check(err)
		byWord, err := s.Keyword.Search(context.Background(), query.Parse(q), 50, store.Filter{})
		check(err)
		for kind, hits := range [][]store.Hit{docs.Keyword: byWord, docs.Vectors: byVector} {
			for _, h := range hits {
				if !known[h.Chunk] && !stale[kind][h.Chunk] {
					t.Errorf("%v: %q found %s, which is neither a chunk nor marked as stale", docs.Kind(kind), q, h.Chunk)
				}
			}
		}
	}
}

// finished completes a run and compares the index with a clean one.
func finished(t *testing.T, root, index string) {
	t.Helper()
	if !child(t, root, index, "", 0) {
		t.Fatal("a child was killed that nobody meant to kill")
	}
	e := &testutil.HashEmbedder{}
	s, closeAll, err := open(root, index, e)
	if err != nil {
		t.Fatal(err)
	}
	sameAsClean(t, root, s, e, nil)
	if err := closeAll(); err != nil {
		t.Error(err)
	}
}

// TestKilledAtNamedPoints kills a run that adds, changes, renames, removes
// and skips files right before or after every step that writes.
func TestKilledAtNamedPoints(t *testing.T) {
	for _, at := range []string{
		"files found", "documents read", "documents stored", "documents removed", "skips recorded",
		"keywords read", "keywords updated", "keywords done",
		"vectors read", "vectors embedded", "vectors embedded:2", "vectors cached", "vectors updated", "vectors done", "vectors done:2",
		"before the generation",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			root, index := generated(t, 8), t.TempDir()
			if !child(t, root, index, "", 0) {
				t.Fatal("the first run was killed")
			}
			r := rand.New(rand.NewPCG(3, 3))
			write(t, root, "new/a.md", testutil.Markdown(r, 20000))
			write(t, root, "new/b.md", testutil.Markdown(r, 3000))
			write(t, root, "part0/doc000.md", testutil.Markdown(r, 2000))
			write(t, root, "part1/doc001.md", "\x00")
			if err := os.Remove(filepath.Join(root, "part2/doc002.md")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(root, "part3/doc003.md"), filepath.Join(root, "renamed.md")); err != nil {
				t.Fatal(err)
			}
			if child(t, root, index, at, 0) {
				t.Fatalf("the run never came to %q", at)
			}
			checkInterrupted(t, root, index)
			finished(t, root, index)
		})
	}
}

// TestKilledAtRandomMoments kills 50 runs, or as many as CAIRN_KILLS says, wherever they are
// when the parent has read the line of a random step. An index that got completed is compared
// with a clean one and either edited or started again.
func TestKilledAtRandomMoments(t *testing.T) {
	kills := testutil.Kills(t, 50)
	r := rand.New(rand.NewPCG(50, 50))
	root, index := generated(t, 25), t.TempDir()
	for killed, round := 0, 0; killed < kills; {
		if !child(t, root, index, "", 1+r.IntN(25)) {
			killed++
			checkInterrupted(t, root, index)
			continue
		}
		finished(t, root, index)
		if round++; round%2 == 0 {
			index = t.TempDir()
		}
		for range 8 {
			edit(t, r, root)
		}
		if t.Failed() {
			t.Fatalf("after %d kills", killed)
		}
	}
	finished(t, root, index)
}
