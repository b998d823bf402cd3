package workspace

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/graphrank"
	"cairn/internal/base/health"
	"cairn/internal/base/home"
	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/stage"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

var (
	faultCount = flag.Int("faults", 60, "how many random faults TestFaults makes")
	faultSeed  = flag.Uint64("seed", 1, "the seed of the random faults")
)

// faultKinds damage the bytes of a file, or replace the file.
var faultKinds = []struct {
	name    string
	make    func(r *rand.Rand, b []byte) []byte
	replace func(path string) error
}{
	{"1 bit", func(r *rand.Rand, b []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b }, nil},
	{"16 bytes", func(r *rand.Rand, b []byte) []byte {
		at := r.IntN(max(1, len(b)-16))
		for i := range min(16, len(b)-at) {
			b[at+i] = byte(r.Uint32())
		}
		return b
	}, nil},
	{"zeroed page", func(r *rand.Rand, b []byte) []byte {
		at := r.IntN((len(b)+4095)/4096) * 4096
		clear(b[at:min(len(b), at+4096)])
		return b
	}, nil},
	{"cut", func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] }, nil},
	{"garbage behind", func(*rand.Rand, []byte) []byte { return []byte(strings.Repeat("garbage ", 600)) }, nil},
	{"emptied", func(*rand.Rand, []byte) []byte { return []byte{} }, nil},
	{"removed", nil, os.Remove},
	{"a directory instead", nil, func(path string) error {
		return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
	}},
	{"an older copy", nil, nil}, // as before the last change
	{"a dangling link instead", nil, func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) }},
}

// faulty is a folder with an index, tools, usage and question tasks, and its answers.
type faulty struct {
	sel     config.Selection
	place   home.Place
	files   []string          // of both directories, absolute
	older   map[string][]byte // their content before the last change
	answers map[string]string
	records map[string]string
}

var faultQueries = []string{"rotate a token", "backup", "who may edit", "incident severity", "search mode", "secret in the index", "glossary chunk", "limits"}

func newFaulty(t *testing.T) *faulty {
	f := &faulty{sel: handbookFolder(t)}
	f.place = testutil.Place(t, f.sel.Root)
	f.change(t, 60)
	f.older = map[string][]byte{}
	for _, dir := range []string{f.place.Index, f.place.Records} {
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				path := filepath.Join(dir, name)
				f.older[path], err = os.ReadFile(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"access/roles.md", "index.md"} { // as many chunks as before
		path := filepath.Join(f.sel.Root, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.ReplaceAll(string(text), "the ", "the backup "))
	}
	f.change(t, 1)
	w := open(t, f.sel, Owning, hashed())
	var problems []string
	if f.answers, problems = f.ask(t, w); len(problems) > 0 {
		t.Fatal(problems)
	}
	if f.records, problems = f.list(t, w); len(problems) > 0 || len(f.records) != 61+60+60+61 {
		t.Fatalf("%d records, %q", len(f.records), problems)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f.shrink(t)
	return f
}

// change imports n tools, learns that each was used, creates as many questions and indexes the
// folder.
func (f *faulty) change(t *testing.T, n int) {
	w := open(t, f.sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	box := toolsOf(t, w)
	var tools strings.Builder
	var change usage.Change
	for i := range n {
		fmt.Fprintf(&tools, `{"server":"s%d","name":"tool%d","description":"Does the thing %d of %d."}`+"\n", i%5, i, i, n)
		ids := []string{fmt.Sprintf("s%d:tool%d", i%5, i), graphrank.DocumentID("access/roles.md")}
		change.Observations = append(change.Observations, usage.Observation{From: ids[0], To: ids[1], Type: graphrank.Dependency})
		change.Intents = append(change.Intents, usage.Intent{Text: fmt.Sprint("intent ", i), Tools: ids})
	}
	batch, err := catalog.Read(t.Context(), strings.NewReader(tools.String()), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toolbox.ImportOp.Call(t.Context(), box, toolbox.ImportRequest{Source: fmt.Sprint("list ", n), Tools: batch.Tools}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := toolbox.ObserveOp.Call(t.Context(), box, change, nil); err != nil {
		t.Fatal(err)
	}
	stages, err := w.Stages(&StageOptions{Workers: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := stages.Create(t.Context(), stage.Request{Query: fmt.Sprint("question ", i), UserID: "u"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(stages.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// shrink lists the files, and cuts off what bbolt has reserved and does not use.
func (f *faulty) shrink(t *testing.T) {
	for _, dir := range []string{f.place.Index, f.place.Records} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, "lock") || strings.HasSuffix(path, ".turn") {
				return err
			}
			content, err := os.ReadFile(path)
			if err == nil && strings.HasSuffix(path, ".db") {
				used := (len(strings.TrimRight(string(content), "\x00")) + 4095) / 4096 * 4096
				content = content[:used]
				err = os.Truncate(path, int64(used))
			}
			if len(content) > 0 {
				f.files = append(f.files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ask returns the answers of a workspace, by query. A problem is an answer that says what
// it lacks, or an error.
func (f *faulty) ask(t *testing.T, w *Workspace) (answers map[string]string, problems []string) {
	answers = map[string]string{}
	for _, text := range faultQueries {
		for _, mode := range []retriever.Mode{retriever.Hybrid, retriever.Keyword} {
			a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: text, Mode: mode, Limit: 5, MaxTokens: 500}, nil)
			switch {
			case err != nil:
				problems = append(problems, err.Error())
			case len(a.Degraded) > 0 || a.Index.State != "ready":
				a.Degraded = slices.DeleteFunc(a.Degraded, func(part string) bool { return part == "stale" }) // the files are copies
				problems = append(problems, fmt.Sprint(a.Index.State, a.Degraded))
			default:
				out, _ := json.Marshal(a.Results)
				answers[text+string(mode)] = string(out)
			}
		}
	}
	return answers, problems
}

// list returns the records that cannot be built again.
func (f *faulty) list(t *testing.T, w *Workspace) (records map[string]string, problems []string) {
	records = map[string]string{}
	box, err := w.Tools(t.Context())
	if err == nil {
		_, err = toolbox.ExportOp.Call(t.Context(), box, struct{}{}, func(x toolbox.Exported) { out, _ := json.Marshal(x); records[string(out)] = "" })
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	stages, err := w.Stages(&StageOptions{Workers: -1})
	if err != nil {
		return records, append(problems, err.Error())
	}
	defer stages.Close()
	tasks, err := stages.List(t.Context(), stage.Query{UserID: "u", Limit: 100})
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, task := range tasks {
		records["task "+task.ID] = task.Query
	}
	return records, problems
}

// outcome is what one fault has led to.
type outcome struct {
	noticed    bool // an error, or a degraded answer
	wrong      int  // answers and records that differ, without a word
	lost       int  // records that are missing in the end
	unrepaired string
	panicked   string
}

// try opens a copy of the folder with one damaged file.
func (f *faulty) try(t *testing.T, damaged string, damage func(path string) error) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			o.panicked = fmt.Sprint(v)
		}
	}()
	sel := f.sel
	sel.Root = t.TempDir()
	place := testutil.Place(t, sel.Root)
	for from, to := range map[string]string{f.sel.Root: sel.Root, f.place.Index: place.Index, f.place.Records: place.Records} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		if label := filepath.Join(from, "folder"); damaged != label {
			os.Remove(filepath.Join(to, "folder"))
		}
		if name, err := filepath.Rel(from, damaged); err == nil && filepath.IsLocal(name) {
			if err := damage(filepath.Join(to, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer os.RemoveAll(place.Index)
	defer os.RemoveAll(place.Records)
	with := hashed()
	with.Background = true
	w, err := Open(t.Context(), sel, config.Default(), Owning, with)
	if err != nil {
		o.unrepaired = "does not start: " + err.Error()
		return o
	}
	defer w.Close()
	for ; ; time.Sleep(20 * time.Millisecond) {
		answers, problems := f.ask(t, w)
		for query, answer := range answers {
			if answer != f.answers[query] {
				o.wrong++
			}
		}
		records, more := f.list(t, w)
		if len(more) == 0 && !maps.Equal(records, f.records) {
			o.wrong++
		}
		problems = append(problems, more...)
		o.lost = 0
		for r, value := range f.records {
			if have, ok := records[r]; !ok || have != value {
				o.lost++
			}
		}
		if len(problems) == 0 {
			return o
		}
		o.noticed = o.noticed || slices.ContainsFunc(problems, func(p string) bool { return p != "building[]" })
		if deadline, ok := t.Deadline(); ok && time.Until(deadline) < 20*time.Second {
			o.unrepaired = problems[0]
			return o
		}
	}
}

// TestFaults damages every kind of file in every way, at random. No answer and no record
// is wrong without a word, nothing panics, and all is repaired without a command. With
// -v it prints the table of benchmarks/reliability.md.
func TestFaults(t *testing.T) {
	f := newFaulty(t)
	type row struct{ faults, noticed, wrong, lost, unrepaired, panics int }
	rows := map[string]*row{}
	r := rand.New(rand.NewPCG(*faultSeed, 0))
	var mu sync.Mutex
	var running sync.WaitGroup
	turns := make(chan struct{}, 2)
	for n := range *faultCount {
		kind, path := faultKinds[n%len(faultKinds)], f.files[n%len(f.files)]
		if n >= len(f.files)*len(faultKinds) {
			kind, path = faultKinds[r.IntN(len(faultKinds))], f.files[r.IntN(len(f.files))]
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damage := kind.replace
		if content, ok := f.older[path]; kind.name == "an older copy" && ok {
			damage = func(path string) error { return os.WriteFile(path, content, 0o600) }
		} else if kind.name == "an older copy" {
			damage = os.Remove
		}
		if kind.make != nil {
			if kind.name == "garbage behind" {
				content = append(content, kind.make(r, nil)...)
			} else {
				content = kind.make(r, content)
			}
			damage = func(path string) error { return os.WriteFile(path, content, 0o600) }
		}
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			o := f.try(t, path, damage)
			name := filepath.Base(path)
			if dir := filepath.Base(filepath.Dir(path)); dir == keywordFolder {
				if name = dir + "/*" + filepath.Ext(path); filepath.Ext(path) == "" {
					name = dir + "/" + filepath.Base(path)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if rows[name] == nil {
				rows[name] = &row{}
			}
			at := rows[name]
			at.faults++
			at.wrong += min(1, o.wrong)
			at.lost += o.lost
			if o.noticed {
				at.noticed++
			}
			if o.unrepaired != "" {
				at.unrepaired++
			}
			if o.panicked != "" {
				at.panics++
			}
			if o.wrong > 0 || o.lost > 0 || o.unrepaired != "" || o.panicked != "" {
				t.Errorf("fault %d, %s in %s: %+v", n, kind.name, name, o)
			}
		})
	}
	running.Wait()
	t.Logf("| file | faults | noticed in an answer | silently wrong | records lost | not repaired | panics |\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		at := rows[name]
		t.Logf("| %s | %d | %d | %d | %d | %d | %d |", name, at.faults, at.noticed, at.wrong, at.lost, at.unrepaired, at.panics)
	}
}

// TestVerifyFindsDirectories: a directory in the place of a file is a finding of verify, which
// repairs it.
func TestVerifyFindsDirectories(t *testing.T) {
	sel := handbookFolder(t)
	place := testutil.Place(t, sel.Root)
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	tool := catalog.Tool{Server: "s", Name: "n", Description: "Does it."}
	if _, err := toolbox.ImportOp.Call(t.Context(), toolsOf(t, w), toolbox.ImportRequest{Source: "list", Tools: []catalog.Tool{tool}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		filepath.Join(place.Index, "vectors", "vectors.cairn"), filepath.Join(place.Index, "keywords", "root.bolt"),
		filepath.Join(place.Index, "keywords", "state"), filepath.Join(place.Index, "documents.db"),
		filepath.Join(place.Records, "catalog.db"), filepath.Join(place.Records, "catalog.db.snapshot"),
	} {
		if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700)); err != nil {
			t.Fatal(err)
		}
		for _, repair := range []bool{false, true, false} {
			w := open(t, sel, Reading, hashed())
			found, err := w.Verify(t.Context(), repair)
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatalf("%s, repair %t: %v", path, repair, err)
			}
			reported := slices.ContainsFunc(found.Files, func(f health.File) bool { return len(f.Problems) > 0 })
			if info, err := os.Stat(path); repair && (found.Damaged() || err != nil || info.IsDir()) || !reported && err == nil && info.IsDir() {
				t.Errorf("%s, repair %t: %+v", path, repair, found)
			}
		}
	}
}
