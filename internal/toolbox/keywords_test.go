package toolbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/job"
	"cairn/internal/base/testutil"
	"cairn/internal/toolbox/toolsearch"
)

// openStored opens a toolbox that stores the keyword index of any catalogue.
func openStored(t *testing.T, root string) *opened {
	t.Helper()
	return open(t, root, Options{minStored: 1})
}

// manyTools are n lines of tools.
func manyTools(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"server":"s","name":"tool_%d","description":"Does thing %d and thing %d of kind%d"}`+"\n", i, i%7, i%5, i%97)
	}
	return b.String()
}

// answers are those to a few queries, as bytes, of a stored index and of one in memory.
func answers(t *testing.T, box *opened) (stored, memory string) {
	t.Helper()
	add := func(text *string, a *toolsearch.Answer, err error) {
		b, marshalErr := json.Marshal(a)
		if err != nil || marshalErr != nil {
			t.Fatal(err, marshalErr)
		}
		*text += string(b) + "\n"
	}
	for _, query := range []string{"thing 3", "kind42 and thing 4", "tool 17"} {
		add(&stored, searchTools(t, box, query), nil)
		x, err := newIndex(box.local()).Index(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := x.Search(t.Context(), toolsearch.Query{Text: query, Explain: true})
		add(&memory, a, err)
	}
	return stored, memory
}

// check compares the answers of a stored index with those of one in memory.
func check(t *testing.T, what string, box *opened) {
	t.Helper()
	if stored, memory := answers(t, box); stored != memory {
		t.Errorf("%s: the answers are\n%s\nwant\n%s", what, stored, memory)
	}
}

// stored returns the tools in the stored index.
func stored(t *testing.T, box *opened) int {
	t.Helper()
	x := &box.local().index
	if !x.stored {
		t.Error("the index is not stored")
	}
	n, err := x.words.Count()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestToolKeywordsAreStored: the next process reads what the last one built, answers
// the same bytes as an index in memory, and follows the catalogue.
func TestToolKeywordsAreStored(t *testing.T) {
	root := t.TempDir()
	plain := openToolbox(t, root)
	importTools(t, plain, "s", manyTools(300))
	check(t, "a small catalogue", plain)
	if _, err := os.Stat(KeywordsDir(testutil.Place(t, root).Index)); err == nil {
		t.Error("a small catalogue is stored on disk")
	}
	closeBox(t, plain)
	first := openStored(t, root)
	check(t, "built", first)
	if n := stored(t, first); n == 0 {
		t.Errorf("%d tools are stored", n)
	}
	closeBox(t, first)
	second := openStored(t, root)
	indexed := 0
	if _, err := SearchOp.Call(t.Context(), second.Folder, toolsearch.Query{Text: "thing"}, func(job.Progress) { indexed++ }); err != nil || indexed > 0 {
		t.Errorf("the second process built the index again, %v", err)
	}
	check(t, "read", second)
	importTools(t, second, "s", manyTools(280)+`{"server":"s","name":"galoshes","description":"Keeps thing 3 dry"}`)
	check(t, "after an import", second)
	importTools(t, second, "s", manyTools(3))
	if check(t, "a catalogue that shrank", second); stored(t, second) != 3 {
		t.Errorf("%d tools are stored, want 3", stored(t, second))
	}
	// Many tools go from memory to the folder.
	closeBox(t, second)
	third := open(t, root, Options{minStored: 10})
	importTools(t, third, "s", manyTools(8))
	check(t, "in memory", third)
	if third.local().index.stored {
		t.Error("a small catalogue is stored on disk")
	}
	importTools(t, third, "s", manyTools(50))
	if check(t, "a catalogue that grew", third); stored(t, third) != 50 {
		t.Errorf("%d tools are stored, want 50", stored(t, third))
	}
}

// TestToolKeywordsThatFail: a damaged index is built again, one that cannot be written
// is in memory, and an update that was cut short is repeated.
func TestToolKeywordsThatFail(t *testing.T) {
	root := t.TempDir()
	box := openStored(t, root)
	importTools(t, box, "s", manyTools(300))
	check(t, "built", box)
	dir := KeywordsDir(testutil.Place(t, root).Index)
	files, err := filepath.Glob(filepath.Join(dir, "store", "*"))
	more, err2 := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || err2 != nil || len(files)+len(more) == 0 {
		t.Fatalf("no files in %s: %v, %v", dir, err, err2)
	}
	closeBox(t, box)
	for _, name := range append(files, more...) {
		if err := os.WriteFile(name, []byte("damage"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	box = openStored(t, root)
	check(t, "over a damaged index", box)
	if !box.local().index.stored {
		t.Error("a damaged index is not replaced")
	}
	// A caller that gives up leaves an index that is not complete.
	importTools(t, box, "s", manyTools(301))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := box.local().Index(ctx, nil); err == nil {
		t.Error("an index is built without a caller")
	}
	check(t, "after an update that was cut short", box)
	// A file has the name of the folder.
	closeBox(t, box)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	box = openStored(t, root)
	if check(t, "without a folder", box); box.local().index.stored {
		t.Error("a file is used as a folder")
	}
	importTools(t, box, "s", manyTools(302))
	check(t, "without a folder, after an import", box)
}

// buildForever builds the keyword index of the folder's catalogue and removes it,
// until it is killed.
func buildForever(root string) error {
	for {
		box, err := openBox(context.Background(), root, Options{minStored: 1})
		if err != nil {
			return err
		}
		fmt.Println("begins")
		if _, err := SearchOp.Call(context.Background(), box.Folder, toolsearch.Query{Text: "thing"}, func(job.Progress) { fmt.Println("enters") }); err != nil {
			return err
		}
		fmt.Println("built")
		if err := os.RemoveAll(KeywordsDir(box.local().o.Place.Index)); err != nil {
			return err
		}
		fmt.Println("removed")
		if err := box.Close(); err != nil {
			return err
		}
	}
}

// TestToolKeywordsSurviveKilling kills processes while they build: the next one
// answers as if nothing had happened.
func TestToolKeywordsSurviveKilling(t *testing.T) {
	root := t.TempDir()
	plain := openToolbox(t, root)
	importTools(t, plain, "s", manyTools(1000))
	closeBox(t, plain)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), buildVariable+"="+root)
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
		box := openStored(t, root)
		check(t, fmt.Sprintf("round %d", round), box)
		closeBox(t, box)
	}
}

// buildVariable makes the test binary run buildForever on the folder it names.
const buildVariable = "CAIRN_TEST_BUILD"

func TestMain(m *testing.M) {
	root := os.Getenv(buildVariable)
	if root == "" {
		testutil.Main(m)
	}
	fmt.Println("error:", buildForever(root))
	os.Exit(1)
}
