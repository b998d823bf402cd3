package toolbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"cairn/graphrank"
	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/base/testutil"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
)

// opened is a toolbox that this process owns or uses through its owner.
type opened struct {
	*owner.Folder
	newest *Toolbox // of this process
}

func (o *opened) local() *Toolbox { return o.newest }

func openBox(ctx context.Context, root string, o Options) (*opened, error) {
	place, err := home.Of(root)
	if err != nil {
		return nil, err
	}
	o.Place = place
	box := &opened{}
	box.Folder, err = owner.Open(ctx, owner.Options{
		Dir: place.Index, Make: place.Make, Errors: ErrorKinds,
		Serve: func(s *owner.Server) (owner.Service, error) {
			box.newest = New(o)
			box.newest.Serve(s)
			return box.newest, nil
		},
	})
	return box, err
}

func open(t *testing.T, root string, o Options) *opened {
	t.Helper()
	o.HalfLife = -1
	box, err := openBox(t.Context(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

func openToolbox(t *testing.T, root string) *opened {
	t.Helper()
	return open(t, root, Options{})
}

func closeBox(t *testing.T, box *opened) {
	t.Helper()
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
}

func importTools(t *testing.T, box *opened, source, lines string) {
	t.Helper()
	batch, err := catalog.Read(t.Context(), strings.NewReader(lines), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ImportOp.Call(t.Context(), box.Folder, ImportRequest{Source: source, Tools: batch.Tools}, nil); err != nil {
		t.Fatal(err)
	}
}

func statsOf(t *testing.T, box *opened) Stats {
	t.Helper()
	s, err := StatsOp.Call(t.Context(), box.Folder, struct{}{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

func TestToolboxLeavesTheFolderAlone(t *testing.T) {
	root := t.TempDir()
	box := openToolbox(t, root)
	if s := statsOf(t, box); s.Tools+s.Usage.Intents > 0 {
		t.Errorf("%+v, want nothing", s)
	}
	other := openToolbox(t, root)
	importTools(t, other, "s", `{"server":"fs","name":"read"}`)
	if s := statsOf(t, box); s.Tools != 1 {
		t.Errorf("%+v, want what the other has imported", s)
	}
	if entries, _ := os.ReadDir(root); len(entries) > 0 {
		t.Errorf("the folder has %v, want nothing", entries)
	}
}

func TestLearnResolvesNames(t *testing.T) {
	box := openToolbox(t, t.TempDir())
	importTools(t, box, "s", `{"server":"fs","name":"read"}`+"\n"+`{"server":"fs","name":"copy"}`+"\n"+`{"server":"net","name":"copy"}`)
	var calls []usage.Call
	for _, name := range []string{"read", "nobody", "fs:copy", "copy", "doc:a.md", "nobody"} {
		calls = append(calls, usage.Call{Tool: name})
	}
	unknown, err := LearnOp.Call(t.Context(), box.Folder, []usage.Trace{{Intent: "i", Calls: calls}}, nil)
	if err != nil || !slices.Equal(unknown, []string{"nobody", "copy"}) {
		t.Errorf("unknown %v, %v, want nobody and copy", unknown, err)
	}
	intents, err := box.local().usage.Intents()
	if want := []string{"fs:read", "nobody", "fs:copy", "copy", "doc:a.md", "nobody"}; err != nil || len(intents) != 1 || !slices.Equal(intents[0].Tools, want) {
		t.Errorf("%+v, %v, want the tools %v", intents, err, want)
	}
	if calls[0].Tool != "read" {
		t.Error("the caller's trace is changed")
	}
}

// TestToolboxOfManyProcesses has processes and goroutines learn in one folder at
// once while this one reads: nothing is lost.
func TestToolboxOfManyProcesses(t *testing.T) {
	const learned = 15
	learn := func(t *testing.T, root, who string) {
		box := openToolbox(t, root)
		for i := range learned {
			if _, err := LearnOp.Call(t.Context(), box.Folder, []usage.Trace{{Intent: fmt.Sprint(who, i), Calls: []usage.Call{{Tool: "a"}, {Tool: "b"}}}}, nil); err != nil {
				t.Error(err)
			}
		}
	}
	if root := os.Getenv("TOOLBOX_ROOT"); root != "" {
		learn(t, root, fmt.Sprint(os.Getpid(), "."))
		return
	}
	root := t.TempDir()
	box := openToolbox(t, root)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if i%2 == 0 {
				learn(t, root, fmt.Sprint("goroutine", i, "."))
				return
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestToolboxOfManyProcesses$")
			cmd.Env = append(os.Environ(), "TOOLBOX_ROOT="+root)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	last := 0.0
	var graph Graph
	for finished := false; !finished; {
		select {
		case <-done:
			finished = true
		default:
		}
		if err := graph.Read(t.Context(), box.Folder, func(g *graphrank.Graph) {
			e, _ := g.Edge("a", "b")
			if e.Count < last {
				t.Errorf("the count went from %v to %v", last, e.Count)
			}
			last = e.Count
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := statsOf(t, box).Usage.Intents; n != 4*learned || last != 4*learned {
		t.Errorf("%d intents, count %v, want %d of each", n, last, 4*learned)
	}
}

// TestDamagedFilesAreRecovered flips single bits of the files of the tools: a process
// opens them, with nothing lost.
func TestDamagedFilesAreRecovered(t *testing.T) {
	if testutil.Race {
		t.Skip("the race detector ends the process where bbolt reads a damaged page")
	}
	root := t.TempDir()
	box := openToolbox(t, root)
	importTools(t, box, "list", `{"server":"fs","name":"read"}`+"\n"+`{"server":"fs","name":"write"}`)
	if _, err := LearnOp.Call(t.Context(), box.Folder, []usage.Trace{{Intent: "copy a file", Calls: []usage.Call{{Tool: "read"}, {Tool: "write"}}}}, nil); err != nil {
		t.Fatal(err)
	}
	want := statsOf(t, box)
	if want.Tools != 2 || want.Usage.Edges != 1 || want.Usage.Intents != 1 {
		t.Fatalf("Stats: %+v", want)
	}
	box.Close()
	for _, name := range []string{catalogFile, usageFile} {
		path := filepath.Join(testutil.Place(t, root).Records, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		used := len(bytes.TrimRight(content, "\x00"))
		for _, damaged := range [][]byte{{}, []byte("x"), content[:used/2]} {
			recovers(t, root, path, damaged, want)
		}
		for at := 5; at < used; at += used / 40 {
			flipped := bytes.Clone(content)
			flipped[at] ^= 0x10
			recovers(t, root, path, flipped, want)
		}
	}
}

func recovers(t *testing.T, root, path string, damaged []byte, want Stats) {
	t.Helper()
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	box := openToolbox(t, root)
	defer box.Close()
	if got, err := StatsOp.Call(t.Context(), box.Folder, struct{}{}, nil); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%s with %d bytes: %+v, %v, want %+v", filepath.Base(path), len(damaged), got, err, want)
	}
}
