package toolbox

import (
	"bufio"
	"cairn/internal/config"
	"cairn/internal/job"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keeping makes a toolbox keep the words of however small a catalogue.
func keeping(box *Toolbox) *toolKeywords {
	k := newToolKeywords(box.keywordsDir, box.prepare)
	k.least = 1
	box.index.keywords = k
	return k
}

// manyTools are n lines of tools.
func manyTools(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"server":"s","name":"tool_%d","description":"Does thing %d and thing %d of kind%d"}`+"\n", i, i%7, i%5, i%97)
	}
	return b.String()
}

// asked are the answers to a few queries, as bytes.
func asked(t *testing.T, box *Toolbox) string {
	t.Helper()
	var all []byte
	for _, query := range []string{"thing 3", "kind42 and thing 4", "tool 17"} {
		text, err := json.Marshal(searchTools(t, box, query))
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, text...), '\n')
	}
	return string(all)
}

// kept are the folders of indexes.
func kept(t *testing.T, k *toolKeywords) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(k.dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestToolKeywordsAreKept: the next process reads what the last one made, answers
// the same bytes as an index in memory, and follows the catalogue.
func TestToolKeywordsAreKept(t *testing.T) {
	root := t.TempDir()
	plain := openToolbox(t, root)
	importTools(t, plain, "s", manyTools(300))
	want := asked(t, plain)
	if _, err := os.Stat(filepath.Join(root, ".cairn", "index", toolKeywordsFolder)); err == nil {
		t.Error("a small catalogue is kept on disk")
	}
	first := openToolbox(t, root)
	k := keeping(first)
	if got := asked(t, first); got != want {
		t.Errorf("answers from disk are\n%s\nwant\n%s", got, want)
	}
	names := kept(t, k)
	if len(names) != 1 || k.kept == "" {
		t.Fatalf("folders %v, want one", names)
	}
	before, err := os.Stat(filepath.Join(k.dir, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	second := openToolbox(t, root)
	keeping(second)
	if got := asked(t, second); got != want {
		t.Errorf("the second process answers\n%s\nwant\n%s", got, want)
	}
	if after, err := os.Stat(filepath.Join(k.dir, names[0])); err != nil || !os.SameFile(before, after) {
		t.Errorf("the second process made the index anew, %v", err)
	}
	// The catalogue changes while both have the old one open.
	importTools(t, plain, "s", manyTools(280)+`{"server":"s","name":"galoshes","description":"Keeps thing 3 dry"}`)
	want = asked(t, plain)
	for _, box := range []*Toolbox{second, first} {
		if got := asked(t, box); got != want {
			t.Errorf("after an import the answers are\n%s\nwant\n%s", got, want)
		}
	}
	if now := kept(t, k); len(now) != 1 || now[0] == names[0] {
		t.Errorf("folders %v, want the new one alone", now)
	}
	// Few tools go to memory, many come back.
	importTools(t, plain, "s", manyTools(3))
	k.least = 10
	if got, want := asked(t, first), asked(t, plain); got != want || k.kept != "" {
		t.Errorf("a catalogue that shrank answers\n%s\nwant\n%s", got, want)
	}
	importTools(t, plain, "s", manyTools(8))
	if got, want := asked(t, first), asked(t, plain); got != want {
		t.Errorf("in memory the answers are\n%s\nwant\n%s", got, want)
	}
	importTools(t, plain, "s", manyTools(50))
	if got, want := asked(t, first), asked(t, plain); got != want || k.kept == "" {
		t.Errorf("a catalogue that grew answers\n%s\nwant\n%s", got, want)
	}
}

// TestToolKeywordsThatFail: what is damaged is made anew, what cannot be written
// is held in memory, and an update that was cut short is made up for.
func TestToolKeywordsThatFail(t *testing.T) {
	root := t.TempDir()
	plain := openToolbox(t, root)
	importTools(t, plain, "s", manyTools(300))
	want := asked(t, plain)
	box := openToolbox(t, root)
	k := keeping(box)
	asked(t, box)
	files, err := filepath.Glob(filepath.Join(k.kept, "store", "*"))
	more, err2 := filepath.Glob(filepath.Join(k.kept, "*"))
	if err != nil || err2 != nil || len(files)+len(more) == 0 {
		t.Fatalf("no files in %s: %v, %v", k.kept, err, err2)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, more...) {
		if err := os.WriteFile(name, []byte("damage"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	box = openToolbox(t, root)
	k = keeping(box)
	if got := asked(t, box); got != want || k.kept == "" {
		t.Errorf("over a damaged index the answers are\n%s\nwant\n%s", got, want)
	}
	// Old leftovers go, young ones may be another process's.
	importTools(t, plain, "s", manyTools(301))
	want = asked(t, plain)
	for name, age := range map[string]time.Duration{makingPrefix + "young": 0, makingPrefix + "aged": 2 * leftoverAge} {
		path := filepath.Join(k.dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	// A caller that gives up leaves nothing half done.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := box.Index(ctx, nil); err == nil {
		t.Error("an index is made without a caller")
	}
	if got := asked(t, box); got != want {
		t.Errorf("after an update that was cut short the answers are\n%s\nwant\n%s", got, want)
	}
	if names := kept(t, k); len(names) != 2 {
		t.Errorf("folders %v, want the index and the young one", names)
	}
	// A file stands where the folder should.
	blocked := openToolbox(t, root)
	b := keeping(blocked)
	b.dir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(b.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := asked(t, blocked); got != want || !b.failed {
		t.Errorf("without a folder the answers are\n%s\nwant\n%s", got, want)
	}
	importTools(t, plain, "s", manyTools(302))
	if got, want := asked(t, blocked), asked(t, plain); got != want {
		t.Errorf("without a folder, after an import, the answers are\n%s\nwant\n%s", got, want)
	}
}

// keepKeywords keeps the words of the folder's catalogue and removes them, again
// and again until it is killed, and says so.
func keepKeywords(sel config.Selection) error {
	for {
		box, err := Open(sel, config.Usage{})
		if err != nil {
			return err
		}
		k := keeping(box)
		fmt.Println("begins")
		if _, err := box.Index(context.Background(), func(job.Progress) { fmt.Println("enters") }); err != nil {
			return err
		}
		fmt.Println("kept")
		k.remove(k.kept)
		fmt.Println("removed")
		if err := box.Close(); err != nil {
			return err
		}
	}
}

// TestToolKeywordsSurviveKilling kills processes in the midst of keeping: whoever
// comes next answers as if nothing had been.
func TestToolKeywordsSurviveKilling(t *testing.T) {
	root := t.TempDir()
	plain := openToolbox(t, root)
	importTools(t, plain, "s", manyTools(1000))
	want := asked(t, plain)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), keepVariable+"="+root)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + random.IntN(7) {
			if !lines.Scan() || strings.HasPrefix(lines.Text(), "error") {
				t.Fatalf("the process says %q, %v", lines.Text(), lines.Err())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		box := openToolbox(t, root)
		keeping(box)
		if got := asked(t, box); got != want {
			t.Fatalf("round %d: the answers are\n%s\nwant\n%s", round, got, want)
		}
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// keepVariable makes the test binary run keepKeywords on the folder it names.
const keepVariable = "CAIRN_TEST_KEEP"

func TestMain(m *testing.M) {
	root := os.Getenv(keepVariable)
	if root == "" {
		os.Exit(m.Run())
	}
	fmt.Println("error:", keepKeywords(config.Selection{Root: root}))
	os.Exit(1)
}
