package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/catalog"
	"cairn/internal/config"
	"cairn/internal/job"
	"cairn/internal/testutil"
	"cairn/internal/toolsearch"
	"cairn/internal/usage"
	"cairn/models"
)

// modelOf gives a toolbox an embedder, and counts how often it is opened.
func modelOf(box *Toolbox, e models.Embedder) *int {
	opened := new(int)
	box.UseModel(e.Description(), func() (models.Embedder, error) { *opened++; return e, nil })
	return opened
}

func searchTools(t *testing.T, box *Toolbox, query string) *toolsearch.Answer {
	t.Helper()
	x, err := box.Index(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := x.Search(t.Context(), toolsearch.Query{Text: query, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestToolVectorsAreKept: what one process has embedded, no other embeds again,
// and without anything to embed the model is not even opened.
func TestToolVectorsAreKept(t *testing.T) {
	root := t.TempDir()
	lines := `{"server":"fs","name":"read_file","description":"Reads a file"}` + "\n" + `{"server":"fs","name":"delete_file","description":"Removes a file"}`
	first, e := openToolbox(t, root), &testutil.HashEmbedder{}
	modelOf(first, e)
	importTools(t, first, "s", lines)
	if searchTools(t, first, "read a file"); e.Embedded() > 4 {
		t.Errorf("%d texts embedded, want at most a name and a text of each tool", e.Embedded())
	}
	if err := first.WaitVectors(t.Context(), nil); err != nil || e.Embedded() != 4 {
		t.Errorf("%d texts embedded, %v, want 4", e.Embedded(), err)
	}
	if a := searchTools(t, first, "reads"); len(a.Degraded) > 0 || a.Tools[0].ID != "fs:read_file" {
		t.Errorf("%+v, want the vectors in it", a)
	}

	second, e2 := openToolbox(t, root), &testutil.HashEmbedder{}
	opened := modelOf(second, e2)
	x, err := second.Index(t.Context(), nil)
	if err != nil || x.Missing() != 0 || *opened != 0 {
		t.Errorf("%d vectors missing, model opened %d times, %v, want all known", x.Missing(), *opened, err)
	}
	importTools(t, second, "s", strings.Replace(lines, "Reads a file", "Shows a file", 1)+"\n"+`{"server":"fs","name":"copy","description":"Copies"}`)
	if searchTools(t, second, "copies"); second.WaitVectors(t.Context(), nil) != nil || e2.Embedded() != 3 {
		t.Errorf("%d texts embedded for a changed description and a new tool, want 3", e2.Embedded())
	}

	// Vectors of another model are other vectors.
	third, e3 := openToolbox(t, root), &testutil.HashEmbedder{}
	d := e3.Description()
	d.ID = "hash@other"
	third.UseModel(d, func() (models.Embedder, error) { return e3, nil })
	if x, err := third.Index(t.Context(), nil); err != nil || x.Missing() != 3 {
		t.Errorf("%d vectors missing for another model, %v, want 3", x.Missing(), err)
	}
}

// TestToolsAnswerWhileVectorsAreMade: the search does not wait for the model, says
// what it is without, and Close does not wait for the rest.
func TestToolsAnswerWhileVectorsAreMade(t *testing.T) {
	root := t.TempDir()
	box, held := openToolbox(t, root), make(chan struct{})
	e := &testutil.HashEmbedder{Before: func([]string) error { <-held; return nil }}
	modelOf(box, e)
	importTools(t, box, "s", `{"server":"fs","name":"read_file","description":"Reads a file"}`)
	if a := searchTools(t, box, "reads a file"); len(a.Tools) != 1 || !slices.Equal(a.Degraded, []string{"vectors"}) {
		t.Errorf("%+v, want the tool by keyword, and that vectors are missing", a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := box.WaitVectors(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting without patience: %v", err)
	}
	close(held)
	var steps []job.Progress
	if err := box.WaitVectors(t.Context(), func(p job.Progress) { steps = append(steps, p) }); err != nil || len(steps) == 0 {
		t.Errorf("%v, progress %v", err, steps)
	}
	if a := searchTools(t, box, "reads a file"); len(a.Degraded) != 0 {
		t.Errorf("degraded %v after the vectors were made", a.Degraded)
	}

	// A model that does not open leaves keywords.
	broken := openToolbox(t, t.TempDir())
	broken.UseModel(e.Description(), func() (models.Embedder, error) { return nil, errors.New("the weights are damaged") })
	importTools(t, broken, "s", `{"server":"fs","name":"read_file","description":"Reads a file"}`)
	if a := searchTools(t, broken, "reads a file"); len(a.Tools) != 1 || len(a.Degraded) != 1 {
		t.Errorf("without a model: %+v", a)
	}
	if err := broken.WaitVectors(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "weights are damaged") {
		t.Errorf("waiting without a model: %v", err)
	}

	// Close ends a run that goes on, and what is asked afterwards fails.
	closing := openToolbox(t, t.TempDir())
	reached := make(chan struct{})
	var ended error
	slow := &testutil.HashEmbedder{}
	slow.Before = func([]string) error {
		close(reached)
		for !closing.index.told() {
			runtime.Gosched()
		}
		ended = errors.New("ended")
		return ended
	}
	modelOf(closing, slow)
	importTools(t, closing, "s", `{"server":"fs","name":"read_file","description":"Reads a file"}`)
	closing.Warm(slog.New(slog.DiscardHandler))
	<-reached
	if err := closing.Close(); err != nil || ended == nil {
		t.Errorf("closing: %v, the run ended with %v", err, ended)
	}
	if _, err := closing.Index(t.Context(), nil); err == nil {
		t.Error("a closed toolbox has an index")
	}
}

// told reports whether the toolbox is being closed.
func (x *toolIndex) told() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.closed
}

// TestManyIntentsDoNotDelay: intents learnt by the thousand are remembered by
// their words until their vectors are made behind.
func TestManyIntentsDoNotDelay(t *testing.T) {
	box, e := openToolbox(t, t.TempDir()), &testutil.HashEmbedder{}
	modelOf(box, e)
	importTools(t, box, "s", `{"server":"fs","name":"read_file","description":"Reads a file"}`+"\n"+`{"server":"w","name":"forecast","description":"Weather of a city"}`)
	var traces []usage.Trace
	for i := range soon + 1 {
		traces = append(traces, usage.Trace{Intent: fmt.Sprintf("umbrella number%d", i), Calls: []usage.Call{{Tool: "w:forecast"}}})
	}
	if _, err := box.Learn(t.Context(), traces...); err != nil {
		t.Fatal(err)
	}
	searchTools(t, box, "warm up")
	if len(box.index.intents) <= soon {
		t.Fatalf("%d intents wait for vectors, want more than %d", len(box.index.intents), soon)
	}
	if a := searchTools(t, box, "umbrella number7"); len(a.Tools) == 0 || a.Tools[0].ID != "w:forecast" || len(a.Remembered) == 0 {
		t.Errorf("by words alone: %+v", a)
	}
	if err := box.WaitVectors(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	before := e.Embedded()
	if a := searchTools(t, box, "umbrella number7"); len(box.index.intents) != 0 || a.Remembered[0].Intent != "umbrella number7" {
		t.Errorf("%d intents wait, %+v", len(box.index.intents), a.Remembered)
	}
	// One more intent costs one text.
	if _, err := box.Learn(t.Context(), usage.Trace{Intent: "galoshes", Calls: []usage.Call{{Tool: "w:forecast"}}}); err != nil {
		t.Fatal(err)
	}
	if a := searchTools(t, box, "galoshes"); len(a.Tools) == 0 || a.Tools[0].ID != "w:forecast" || e.Embedded() != before+1 {
		t.Errorf("%d texts embedded for one intent, want 1; %+v", e.Embedded()-before, a)
	}
}

// TestToolVectorsWithoutAFile: where nothing can be written, vectors last as
// long as the process, and nothing fails.
func TestToolVectorsWithoutAFile(t *testing.T) {
	e := &testutil.HashEmbedder{}
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v := newToolVectors(filepath.Join(blocked, toolVectorsFile), e.Description(), func() error { return errors.New("read-only") })
	key, vector := [32]byte{1}, make([]float32, testutil.HashDimension)
	vector[3] = 1
	if err := v.Put([][32]byte{key}, [][]float32{vector}); err != nil {
		t.Fatal(err)
	}
	got, err := v.Get([][32]byte{key, {2}})
	if err != nil || !slices.Equal(got[0], vector) || got[1] != nil {
		t.Errorf("%v, %v, want what was put and nothing else", got, err)
	}
}

// TestUsageIsAddedTo: what is learnt between two searches is added to what the
// index knows, and the answers are those of an index that is made anew.
func TestUsageIsAddedTo(t *testing.T) {
	root := t.TempDir()
	box, e := openToolbox(t, root), &testutil.HashEmbedder{}
	modelOf(box, e)
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, `{"server":"s","name":"tool_%d","description":"Does thing %d and thing %d"}`+"\n", i, i%7, i%5)
	}
	importTools(t, box, "s", lines.String())
	if searchTools(t, box, "warm up"); box.WaitVectors(t.Context(), nil) != nil {
		t.Fatal("no vectors")
	}
	random := rand.New(rand.NewPCG(1, 2))
	id := func() string { return fmt.Sprintf("s:tool_%d", random.IntN(30)) }
	same, anew := 0, 0
	for step := range 60 {
		before := box.index.learnt
		var err error
		switch k := random.IntN(12); {
		case k < 6:
			_, err = box.Learn(t.Context(), usage.Trace{Intent: fmt.Sprintf("thing %d please", random.IntN(9)), Calls: []usage.Call{{Tool: id()}, {Tool: id()}}})
		case k < 10:
			err = box.Usage.Observe(t.Context(), usage.Sight{From: id(), To: id(), Weak: k == 9})
		case k == 10:
			_, err = box.Usage.ForgetNode(id())
		default: // another process
			other := openToolbox(t, root)
			_, err = other.Learn(t.Context(), usage.Trace{Intent: "thing of another", Calls: []usage.Call{{Tool: id()}, {Tool: id()}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		fresh := openToolbox(t, root)
		modelOf(fresh, &testutil.HashEmbedder{})
		for _, query := range []string{"thing 3", "please do thing 4 and then thing 6", "something"} {
			got, err := json.MarshalIndent(searchTools(t, box, query), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.MarshalIndent(searchTools(t, fresh, query), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Fatalf("step %d, %q: (- made anew, + added to)\n%s", step, query, diff)
			}
		}
		if box.index.learnt == before {
			same++
		} else {
			anew++
		}
	}
	if same < 40 || anew == 0 {
		t.Errorf("added to %d times and made anew %d times, want mostly the former", same, anew)
	}
}

// BenchmarkUsageChange is a search after one more trace was learnt, where 100,000
// relations and 5,000 intents are known.
func BenchmarkUsageChange(b *testing.B) {
	box, err := Open(config.Selection{Root: b.TempDir()}, config.Usage{})
	if err != nil {
		b.Fatal(err)
	}
	defer box.Close()
	batch, err := catalog.Read(strings.NewReader(`{"server":"s","name":"tool_1","description":"Does something"}`), "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := box.Catalog.Import("s", batch.Tools); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	id := func() string { return fmt.Sprintf("s:tool_%d", random.IntN(10_000)) }
	trace := func(n int) usage.Trace {
		t := usage.Trace{Intent: fmt.Sprintf("the intent of %d and %d", n, random.IntN(100))}
		for range 21 {
			t.Calls = append(t.Calls, usage.Call{Tool: id()})
		}
		return t
	}
	var traces []usage.Trace
	for i := range 5000 {
		traces = append(traces, trace(i))
	}
	if err := box.Usage.Learn(b.Context(), traces...); err != nil {
		b.Fatal(err)
	}
	search := func() {
		x, err := box.Index(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := x.Search(b.Context(), toolsearch.Query{Text: "something of an intent"}); err != nil {
			b.Fatal(err)
		}
	}
	search()
	n := 5000
	for b.Loop() {
		n++
		if err := box.Usage.Learn(b.Context(), trace(n)); err != nil {
			b.Fatal(err)
		}
		search()
	}
}
