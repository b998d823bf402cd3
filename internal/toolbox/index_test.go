package toolbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/home"
	"cairn/internal/base/job"
	"cairn/internal/base/testutil"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
	"cairn/internal/toolbox/usage"
	"cairn/models"
)

// withModel opens a toolbox with an embedder, and counts how often that is opened.
func withModel(t *testing.T, root string, e *testutil.HashEmbedder) (*opened, *int) {
	t.Helper()
	opened := new(int)
	box := open(t, root, Options{Description: e.Description(), Model: func() (models.Embedder, error) { *opened++; return e, nil }})
	return box, opened
}

func searchTools(t *testing.T, box *opened, query string) *toolsearch.Answer {
	t.Helper()
	a, err := SearchOp.Call(t.Context(), box.Folder, toolsearch.Query{Text: query, Explain: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// prepare waits for all vectors.
func prepare(t *testing.T, box *opened) {
	t.Helper()
	if p, err := PrepareOp.Call(t.Context(), box.Folder, time.Hour, nil); err != nil || *p != (Prepared{}) {
		t.Fatalf("preparing: %+v, %v", p, err)
	}
}

// TestToolVectorsAreKept: what one process has embedded, no other embeds again,
// and without anything to embed the model is not even opened.
func TestToolVectorsAreKept(t *testing.T) {
	root := t.TempDir()
	lines := `{"server":"fs","name":"read_file","description":"Reads a file"}` + "\n" + `{"server":"fs","name":"delete_file","description":"Removes a file"}`
	e := &testutil.HashEmbedder{}
	first, _ := withModel(t, root, e)
	importTools(t, first, "s", lines)
	if searchTools(t, first, "read a file"); e.Embedded() > 4 {
		t.Errorf("%d texts embedded, want at most a name and a text of each tool", e.Embedded())
	}
	if prepare(t, first); e.Embedded() != 4 {
		t.Errorf("%d texts embedded, want 4", e.Embedded())
	}
	if a := searchTools(t, first, "reads"); len(a.Degraded) > 0 || a.Tools[0].ID != "fs:read_file" {
		t.Errorf("%+v, want the vectors in it", a)
	}
	closeBox(t, first)

	e2 := &testutil.HashEmbedder{}
	second, opened := withModel(t, root, e2)
	if prepare(t, second); *opened != 0 {
		t.Errorf("model opened %d times, want all vectors known", *opened)
	}
	importTools(t, second, "s", strings.Replace(lines, "Reads a file", "Shows a file", 1)+"\n"+`{"server":"fs","name":"copy","description":"Copies"}`)
	if prepare(t, second); e2.Embedded() != 3 {
		t.Errorf("%d texts embedded for a changed description and a new tool, want 3", e2.Embedded())
	}
	closeBox(t, second)

	// Vectors of another model are other vectors.
	e3 := &testutil.HashEmbedder{}
	d := e3.Description()
	d.ID = "hash@other"
	third := open(t, root, Options{Description: d, Model: func() (models.Embedder, error) { return e3, nil }})
	if prepare(t, third); e3.Embedded() != 6 {
		t.Errorf("%d texts embedded for another model, want 6", e3.Embedded())
	}
}

// TestToolsAnswerWhileVectorsAreMade: the search does not wait for the model, says
// what it is without, and Close does not wait for the rest.
func TestToolsAnswerWhileVectorsAreMade(t *testing.T) {
	held := make(chan struct{})
	e := &testutil.HashEmbedder{Before: func([]string) error { <-held; return nil }}
	box, _ := withModel(t, t.TempDir(), e)
	importTools(t, box, "s", `{"server":"fs","name":"read_file","description":"Reads a file"}`)
	if a := searchTools(t, box, "reads a file"); len(a.Tools) != 1 || !slices.Equal(a.Degraded, []string{"vectors"}) {
		t.Errorf("%+v, want the tool by keyword, and that vectors are missing", a)
	}
	if p, err := PrepareOp.Call(t.Context(), box.Folder, time.Millisecond, nil); err != nil || !p.TimedOut {
		t.Errorf("a short wait: %+v, %v", p, err)
	}
	var steps []job.Progress
	if _, err := PrepareOp.Call(t.Context(), box.Folder, time.Hour, func(p job.Progress) {
		if steps = append(steps, p); len(steps) == 1 {
			close(held)
		}
	}); err != nil || len(steps) == 0 {
		t.Errorf("%v, progress %v", err, steps)
	}
	if a := searchTools(t, box, "reads a file"); len(a.Degraded) != 0 {
		t.Errorf("degraded %v after the vectors were made", a.Degraded)
	}

	// A model that does not open leaves keywords.
	broken := open(t, t.TempDir(), Options{Description: e.Description(), Model: func() (models.Embedder, error) { return nil, errors.New("the weights are damaged") }})
	importTools(t, broken, "s", `{"server":"fs","name":"read_file","description":"Reads a file"}`)
	if a := searchTools(t, broken, "reads a file"); len(a.Tools) != 1 || len(a.Degraded) != 1 {
		t.Errorf("without a model: %+v", a)
	}
	if p, err := PrepareOp.Call(t.Context(), broken.Folder, time.Hour, nil); err != nil || !strings.Contains(p.Failure, "weights are damaged") {
		t.Errorf("preparing without a model: %+v, %v", p, err)
	}

	// Close ends a run that goes on, and what is asked afterwards fails.
	reached := make(chan struct{})
	var ended error
	var closing *opened
	slow := &testutil.HashEmbedder{}
	slow.Before = func([]string) error {
		close(reached)
		for !closing.local().index.told() {
			runtime.Gosched()
		}
		ended = errors.New("ended")
		return ended
	}
	closing, _ = withModel(t, t.TempDir(), slow)
	importTools(t, closing, "s", `{"server":"fs","name":"read_file","description":"Reads a file"}`)
	var warming sync.WaitGroup
	warming.Go(func() { _, _ = PrepareOp.Call(t.Context(), closing.Folder, time.Hour, nil) })
	defer warming.Wait()
	<-reached
	if err := closing.Close(); err != nil || ended == nil {
		t.Errorf("closing: %v, the run ended with %v", err, ended)
	}
	if _, err := StatsOp.Call(t.Context(), closing.Folder, struct{}{}, nil); err == nil {
		t.Error("a closed toolbox answers")
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
	e := &testutil.HashEmbedder{}
	searched := make(chan struct{})
	embed := sync.OnceFunc(func() { close(searched) })
	e.Before = func([]string) error { <-searched; return nil }
	box, _ := withModel(t, t.TempDir(), e)
	defer embed() // otherwise a failed test waits for the model when it closes the toolbox
	importTools(t, box, "s", `{"server":"fs","name":"read_file","description":"Reads a file"}`+"\n"+`{"server":"w","name":"forecast","description":"Weather of a city"}`)
	var traces []usage.Trace
	for i := range 40 {
		traces = append(traces, usage.Trace{Intent: fmt.Sprintf("umbrella number%d", i), Calls: []usage.Call{{Tool: "w:forecast"}}})
	}
	if _, err := LearnOp.Call(t.Context(), box.Folder, traces, nil); err != nil {
		t.Fatal(err)
	}
	searchTools(t, box, "warm up")
	if box.local().index.learnt.Missing() == 0 {
		t.Fatal("no intent waits for vectors")
	}
	if a := searchTools(t, box, "umbrella number7"); len(a.Tools) == 0 || a.Tools[0].ID != "w:forecast" || len(a.Remembered) == 0 {
		t.Errorf("by words alone: %+v", a)
	}
	embed()
	prepare(t, box)
	before := e.Embedded()
	if a := searchTools(t, box, "umbrella number7"); box.local().index.learnt.Missing() != 0 || a.Remembered[0].Intent != "umbrella number7" {
		t.Errorf("%d texts wait, %+v", box.local().index.learnt.Missing(), a.Remembered)
	}
	// One more intent costs one text.
	if _, err := LearnOp.Call(t.Context(), box.Folder, []usage.Trace{{Intent: "galoshes", Calls: []usage.Call{{Tool: "w:forecast"}}}}, nil); err != nil {
		t.Fatal(err)
	}
	if a := searchTools(t, box, "galoshes"); len(a.Tools) == 0 || a.Tools[0].ID != "w:forecast" || e.Embedded() != before+1 {
		t.Errorf("%d texts embedded for one intent, want 1; %+v", e.Embedded()-before, a)
	}
}

// TestToolVectorsWithoutAFile: where nothing can be written, vectors last as
// long as the process, and nothing fails.
func TestToolVectorsWithoutAFile(t *testing.T) {
	d := (&testutil.HashEmbedder{}).Description()
	s := New(Options{})
	s.openVectors(d)
	v := s.index.vectors
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

// TestUsageIsAddedTo checks that observations between two searches are added to the
// index, with the answers of an index built from scratch.
func TestUsageIsAddedTo(t *testing.T) {
	root := t.TempDir()
	box, _ := withModel(t, root, &testutil.HashEmbedder{})
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, `{"server":"s","name":"tool_%d","description":"Does thing %d and thing %d"}`+"\n", i, i%7, i%5)
	}
	importTools(t, box, "s", lines.String())
	prepare(t, box)
	random := rand.New(rand.NewPCG(1, 2))
	id := func() string { return fmt.Sprintf("s:tool_%d", random.IntN(30)) }
	same, anew := 0, 0
	for step := range 60 {
		before := box.local().index.learnt
		var err error
		switch k := random.IntN(12); {
		case k < 6:
			_, err = LearnOp.Call(t.Context(), box.Folder, []usage.Trace{{Intent: fmt.Sprintf("thing %d please", random.IntN(9)), Calls: []usage.Call{{Tool: id()}, {Tool: id()}}}}, nil)
		case k < 10:
			_, err = ObserveOp.Call(t.Context(), box.Folder, usage.Change{Observations: []usage.Observation{{From: id(), To: id(), Weak: k == 9}}}, nil)
		case k == 10:
			_, err = ForgetOp.Call(t.Context(), box.Folder, ForgetRequest{Name: id()}, nil)
		default: // another process
			other, _ := withModel(t, root, &testutil.HashEmbedder{})
			_, err = LearnOp.Call(t.Context(), other.Folder, []usage.Trace{{Intent: "thing of another", Calls: []usage.Call{{Tool: id()}, {Tool: id()}}}}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		fresh := newIndex(box.local())
		for _, query := range []string{"thing 3", "please do thing 4 and then thing 6", "something"} {
			got, err := json.MarshalIndent(searchTools(t, box, query), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			x, err := fresh.Index(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := x.Search(t.Context(), toolsearch.Query{Text: query, Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.MarshalIndent(answer, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Fatalf("step %d, %q: (- made anew, + added to)\n%s", step, query, diff)
			}
		}
		if box.local().index.learnt == before {
			same++
		} else {
			anew++
		}
	}
	if same < 40 || anew == 0 {
		t.Errorf("added to %d times and made anew %d times, want mostly the former", same, anew)
	}
}

// newIndex is a service with the records of another, whose index it has yet to make.
func newIndex(s *Toolbox) *Toolbox {
	o := s.o
	o.Place = home.Place{}
	next := New(o)
	next.catalog, next.usage, next.opened = s.catalog, s.usage, true
	next.index.vectors = s.index.vectors
	return next
}

// BenchmarkUsageChange is a search after one more trace was learnt, where 100,000
// relations and 5,000 intents are known.
func BenchmarkUsageChange(b *testing.B) {
	box, err := openBox(b.Context(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer box.Close()
	batch, err := catalog.Read(b.Context(), strings.NewReader(`{"server":"s","name":"tool_1","description":"Does something"}`), "")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := ImportOp.Call(b.Context(), box.Folder, ImportRequest{Source: "s", Tools: batch.Tools}, nil); err != nil {
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
	if _, err := LearnOp.Call(b.Context(), box.Folder, traces, nil); err != nil {
		b.Fatal(err)
	}
	search := func() {
		if _, err := SearchOp.Call(b.Context(), box.Folder, toolsearch.Query{Text: "something of an intent"}, nil); err != nil {
			b.Fatal(err)
		}
	}
	search()
	n := 5000
	for b.Loop() {
		n++
		if _, err := LearnOp.Call(b.Context(), box.Folder, []usage.Trace{trace(n)}, nil); err != nil {
			b.Fatal(err)
		}
		search()
	}
}
