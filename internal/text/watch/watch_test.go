package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil"
	"cairn/internal/text/walk"
)

// view is a copy of a folder that only follows the reported paths: it has to become
// the same as the folder.
type view struct {
	t    *testing.T
	root string
	tree *walk.Tree
	o    Options
	w    *Watcher

	mu    sync.Mutex
	files map[string]string // path: content
	told  map[string]int
	fail  int // batches still to be refused
}

// documents are the options for files that are usually indexed.
var documents = &walk.Options{Extensions: []string{".md", ".txt"}}

func watched(t *testing.T, root string, o Options) *view {
	t.Helper()
	v := &view{t: t, root: root, o: o, files: map[string]string{}, told: map[string]int{}}
	var err error
	if v.tree, err = walk.Open(walk.Root{Dir: root}); err != nil {
		t.Fatal(err)
	}
	v.o.Walk, v.o.Quiet, v.o.PollEvery, v.o.Held = documents, 5*time.Millisecond, 5*time.Millisecond, v.held
	if v.w, err = Open(t.Context(), v.tree, &v.o); err != nil {
		t.Fatal(err)
	}
	v.w.retry = time.Millisecond
	v.look(Batch{All: true})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- v.w.Run(ctx, false, func(_ context.Context, b Batch) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.fail > 0 {
				v.fail--
				return errors.New("not now")
			}
			v.look(b)
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		if err := errors.Join(v.w.Close(), v.tree.Close()); err != nil {
			t.Error(err)
		}
	})
	return v
}

// held returns the paths of the files of the view.
func (v *view) held() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.files))
}

// look takes a batch in.
func (v *view) look(b Batch) {
	seen := map[string]bool{}
	visit := func(e walk.Entry) error {
		if e.Reason == walk.None {
			text, err := os.ReadFile(filepath.Join(v.root, e.Path))
			if errors.Is(err, fs.ErrNotExist) {
				return nil // told of later
			}
			v.files[e.Path], seen[e.Path] = string(text), true
			return err
		}
		return nil
	}
	var err error
	if b.All {
		v.told["*"]++
		err = v.tree.Walk(context.Background(), v.o.Walk, visit)
	} else {
		for _, p := range b.Paths {
			v.told[p]++
		}
		err = v.tree.WalkPaths(context.Background(), v.o.Walk, b.Paths, visit)
	}
	if err != nil {
		v.t.Error(err)
	}
	for p := range v.files {
		if !seen[p] && (b.All || slices.ContainsFunc(b.Paths, func(at string) bool { return p == at || strings.HasPrefix(p, at+"/") })) {
			delete(v.files, p)
		}
	}
}

// disk is what is in the folder.
func (v *view) disk() map[string]string {
	files := map[string]string{}
	if err := v.tree.Walk(context.Background(), v.o.Walk, func(e walk.Entry) error {
		if e.Reason == walk.None {
			text, err := os.ReadFile(filepath.Join(v.root, e.Path))
			files[e.Path] = string(text)
			return err
		}
		return nil
	}); err != nil {
		v.t.Fatal(err)
	}
	return files
}

// same waits until the view is the folder.
func (v *view) same(what string) {
	v.t.Helper()
	want := v.disk()
	testutil.Await(v.t, func() string {
		v.mu.Lock()
		got := maps.Clone(v.files)
		v.mu.Unlock()
		if maps.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("after %s, what was told does not lead to what is there (-there +told):\n%s", what, cmp.Diff(want, got))
	})
}

func (v *view) write(name, text string) {
	v.t.Helper()
	name = filepath.Join(v.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		v.t.Fatal(err)
	}
}

func (v *view) do(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// each runs a test with events and with polling.
func each(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("events", func(t *testing.T) { test(t, Options{}) })
	t.Run("polling", func(t *testing.T) { test(t, Options{Poll: true}) })
}

func TestChanges(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		v := watched(t, t.TempDir(), o)
		at := func(name string) string { return filepath.Join(v.root, name) }
		if (v.w.Polling() == "") == o.Poll {
			t.Fatalf("Polling() = %q with Poll %v", v.w.Polling(), o.Poll)
		}
		for _, step := range []struct {
			what string
			do   func()
		}{
			{"a new file", func() { v.write("a.md", "one") }},
			{"an edit", func() { v.write("a.md", "two words") }},
			{"a new folder with folders", func() { v.write("d/e/f/g.md", "deep"); v.write("d/h.md", "flat") }},
			{"an edit in the new folders", func() { v.write("d/e/f/g.md", "deeper") }},
			{"a save by renaming", func() { v.write(".a.md.tmp", "three words now"); v.do(os.Rename(at(".a.md.tmp"), at("a.md"))) }},
			{"a save by setting the old one aside", func() {
				v.do(os.Rename(at("a.md"), at("a.md~")))
				v.write("a.md", "four words are here")
				v.do(os.Remove(at("a.md~")))
			}},
			{"another name", func() { v.do(os.Rename(at("a.md"), at("b.md"))) }},
			{"a move", func() { v.do(os.Rename(at("b.md"), at("d/e/b.md"))) }},
			{"another name for a folder", func() { v.do(os.Rename(at("d"), at("dd"))) }},
			{"edits below another name", func() { v.write("dd/e/f/g.md", "deepest of all"); v.write("dd/e/f/new.md", "n") }},
			{"a folder by the old name", func() { v.write("d/e/x.md", "again") }},
			{"an edit by the old name", func() { v.write("d/e/x.md", "and again") }},
			{"a folder moved out of the workspace", func() { v.do(os.Rename(at("dd/e"), filepath.Join(t.TempDir(), "e"))) }},
			{"a removed folder", func() { v.do(os.RemoveAll(at("d"))) }},
			{"a folder that becomes a file", func() { v.do(os.RemoveAll(at("dd"))); v.write("dd", "file") }},
			{"a file that becomes a folder", func() { v.do(os.Remove(at("dd"))); v.write("dd/z.md", "z") }},
		} {
			step.do()
			v.same(step.what)
		}
	})
}

// TestRandomChanges makes changes faster than they are reported, with folders moved
// into each other.
func TestRandomChanges(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		v := watched(t, t.TempDir(), o)
		r := rand.New(rand.NewPCG(1, 2))
		name := func() string {
			parts := make([]string, 1+r.IntN(3))
			for i := range parts {
				parts[i] = string(rune('a' + r.IntN(3)))
			}
			return strings.Join(parts, "/")
		}
		for round := range 25 {
			for n := range 20 {
				from, to := filepath.Join(v.root, name()), filepath.Join(v.root, name())
				// Most of these fail now and then, for want of what they work on.
				switch r.IntN(6) {
				case 0:
					_ = os.RemoveAll(from)
				case 1:
					_ = os.MkdirAll(from, 0o755)
				case 2:
					_ = os.Rename(from, to)
				default:
					_ = os.MkdirAll(filepath.Dir(from), 0o755)
					_ = os.WriteFile(from+".md", fmt.Appendf(nil, "%d %d%s", round, n, strings.Repeat("x", r.IntN(9))), 0o644)
				}
			}
			v.same(fmt.Sprintf("round %d", round))
		}
	})
}

// TestBranchSwitch changes 1,000 files at once, and back.
func TestBranchSwitch(t *testing.T) {
	root := t.TempDir()
	put := func(branch string) {
		for i := range 1000 {
			dir := filepath.Join(root, fmt.Sprintf("part%d", i%20))
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.md", i)), []byte(branch), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("main")
	each(t, func(t *testing.T, o Options) {
		v := watched(t, root, o)
		put("feature" + t.Name())
		v.same("a switch of 1,000 files")
		put("main")
		v.same("the switch back")
	})
}

func TestIgnored(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{".gitignore": "build/\n", "build/x.md": "x", "node_modules/a/b.md": "b", ".git/HEAD": "h", ".cairn/index/i.md": "i", ".cairn/cards/c.md": "c", "a.md": "a"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	v := watched(t, root, Options{})
	folders := slices.Sorted(maps.Keys(v.w.source.(*events).watched))
	if want := []string{"", ".cairn", ".cairn/cards"}; !slices.Equal(folders, want) {
		t.Errorf("watched are %q, want %q", folders, want)
	}
	for _, name := range []string{"build/x.md", "build/new/y.md", "node_modules/a/b.md", ".git/HEAD", ".git/index.md", ".cairn/index/i.md", "program.o", "a.log"} {
		v.write(name, "other")
	}
	v.write("dist/new.md", "left out by its name")
	v.write("a.md", "changed")
	v.same("an edit")
	v.mu.Lock()
	told := slices.Sorted(maps.Keys(v.told))
	v.mu.Unlock()
	if want := []string{"*", "a.md"}; !slices.Equal(told, want) { // * is the first look
		t.Errorf("told of %q, want %q", told, want)
	}
	v.write(".cairn/cards/c.md", "card")
	v.same("an edit of a card")
	v.write(".gitignore", "a.md\n")
	v.same("other rules")
	v.write("build/new/y.md", "now watched")
	v.same("an edit in a folder that was ignored before")
}

func TestRefusedBatchComesAgain(t *testing.T) {
	v := watched(t, t.TempDir(), Options{})
	v.mu.Lock()
	v.fail = 3
	v.mu.Unlock()
	v.write("a.md", "a")
	v.write("b.md", "b")
	v.same("three refusals")
}

func TestSeveralRoots(t *testing.T) {
	main, other := t.TempDir(), t.TempDir()
	tree, err := walk.Open(walk.Root{Dir: main}, walk.Root{Name: "wiki", Dir: other})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	w, err := Open(t.Context(), tree, &Options{Walk: documents})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := errors.Join(os.Mkdir(filepath.Join(other, "d"), 0o755), os.WriteFile(filepath.Join(other, "d", "a.md"), nil, 0o644), os.WriteFile(filepath.Join(main, "b.md"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	told := map[string]bool{}
	err = w.Run(ctx, false, func(_ context.Context, b Batch) error {
		for _, p := range b.Paths {
			told[p] = true
		}
		if told["wiki/d"] && told["b.md"] {
			stop()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || !told["wiki/d"] {
		t.Errorf("Run = %v, told of %v", err, told)
	}
}

// TestTooManyFolders begins by walking, and goes over to it when there become
// too many folders.
func TestTooManyFolders(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a/b/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if v := watched(t, root, Options{MaxFolders: 3}); !strings.Contains(v.w.Polling(), "more folders than can be watched") {
		t.Errorf("Polling() = %q", v.w.Polling())
	}
	v := watched(t, root, Options{MaxFolders: 4})
	if v.w.Polling() != "" {
		t.Fatalf("Polling() = %q with as many folders as may be", v.w.Polling())
	}
	v.write("d/e.md", "one folder too many")
	v.same("going over to walking")
	v.write("d/e.md", "an edit")
	v.write("f/g.md", "and another")
	v.same("edits while walking")
}

func TestLostEventsLookAtEverything(t *testing.T) {
	v := watched(t, t.TempDir(), Options{})
	v.w.source.(*events).notify.Errors <- fsnotify.ErrEventOverflow
	testutil.Await(t, func() string {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.told["*"] < 2 {
			return "lost events were not made up for"
		}
		return ""
	})
}

// TestClosedFolder: what cannot be looked at is not gone, and comes back.
func TestClosedFolder(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("permissions do not bind this user")
	}
	each(t, func(t *testing.T, o Options) {
		v := watched(t, t.TempDir(), o)
		v.write("d/a.md", "a")
		v.write("b.md", "b")
		v.same("new files")
		v.do(os.Chmod(filepath.Join(v.root, "d"), 0))
		defer os.Chmod(filepath.Join(v.root, "d"), 0o755)
		v.write("b.md", "later")
		want := map[string]string{"b.md": "later"}
		testutil.Await(t, func() string {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.files["b.md"] != "later" {
				return fmt.Sprintf("nothing was told of %v", want)
			}
			return ""
		})
		if p, ok := v.w.source.(*poller); ok {
			v.mu.Lock()
			if n := v.told["d/a.md"]; n != 1 {
				t.Errorf("polling told %d times of a file in a closed folder, %v", n, p.seen)
			}
			v.mu.Unlock()
		}
		v.do(os.Chmod(filepath.Join(v.root, "d"), 0o755))
		v.write("d/a.md", "changed")
		v.same("opening the folder again")
	})
}

// scripted is a source that a test speaks through.
type scripted struct{ say chan change }

func (s scripted) run(ctx context.Context, tell func(change)) error {
	for {
		select {
		case c := <-s.say:
			tell(c)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
func (scripted) close() error { return nil }

// TestWaits: changes are handed over when it has been quiet, or at the bound.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripted{make(chan change)}
		w := &Watcher{source: s, retry: firstRetry, options: Options{Quiet: 100 * time.Millisecond, Most: 500 * time.Millisecond}}
		ctx, stop := context.WithCancel(t.Context())
		type handed struct {
			Batch
			at time.Time
		}
		batches := make(chan handed, 1)
		ended := make(chan error)
		go func() {
			ended <- w.Run(ctx, false, func(_ context.Context, b Batch) error { batches <- handed{b, time.Now()}; return nil })
		}()
		begin := time.Now()
		s.say <- change{path: "a.md"}
		if b := <-batches; b.at.Sub(begin) != 100*time.Millisecond || !slices.Equal(b.Paths, []string{"a.md"}) || !b.First.Equal(begin) {
			t.Errorf("one change: %+v after %v, want 100 ms", b, b.at.Sub(begin))
		}
		begin = time.Now()
		for i := range 12 { // every 50 ms: never quiet
			s.say <- change{path: fmt.Sprintf("%02d.md", i)}
			time.Sleep(50 * time.Millisecond) // of the bubble's clock
		}
		if b := <-batches; b.at.Sub(begin) != 500*time.Millisecond || len(b.Paths) < 10 || len(b.Paths) > 11 {
			t.Errorf("changes without a pause: %d after %v, want 10 after 500 ms", len(b.Paths), b.at.Sub(begin))
		}
		<-batches // the rest
		for i := range maxPaths + 1 {
			s.say <- change{path: fmt.Sprint(i)}
		}
		if b := <-batches; !b.All || b.Paths != nil {
			t.Errorf("more paths than are kept apart: All %v and %d paths", b.All, len(b.Paths))
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}

// TestPollerKeeps covers what permissions cannot show to root.
func TestPollerKeeps(t *testing.T) {
	for path, want := range map[string]bool{"d/a.md": true, "d": true, "dd/a.md": false, "x.md": true, "x.mdx": false} {
		if got := within(path, []string{"d", "x.md"}); got != want {
			t.Errorf("within(%q) = %v", path, got)
		}
	}
}

// A walk tells of an edit that keeps the size and puts back the time.
func TestPollerSeesKeptTime(t *testing.T) {
	v := watched(t, t.TempDir(), Options{Poll: true})
	v.write("a.md", "one")
	p, err := openPoller(t.Context(), v.w)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(v.root, "a.md")
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if walk.ChangeTime(before) == 0 {
		t.Skip("this system does not tell when a file was changed last")
	}
	for after := before; walk.ChangeTime(after) == walk.ChangeTime(before); { // a tick of the system's clock
		v.write("a.md", "two")
		v.do(os.Chtimes(name, time.Time{}, before.ModTime()))
		if after, err = os.Stat(name); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := p.look(t.Context()); err != nil || !slices.Equal(changed, []string{"a.md"}) {
		t.Errorf("look() = %q, %v, want a.md", changed, err)
	}
}

// TestPollerReportsWhatItsReaderHolds: a file that is there only between two walks, while
// the reader looks, is reported by the next walk, and as long as the reader holds it.
func TestPollerReportsWhatItsReaderHolds(t *testing.T) {
	v := &view{t: t, root: t.TempDir(), o: Options{Walk: documents}, files: map[string]string{}}
	var err error
	if v.tree, err = walk.Open(walk.Root{Dir: v.root}); err != nil {
		t.Fatal(err)
	}
	defer v.tree.Close()
	p, err := openPoller(t.Context(), &Watcher{tree: v.tree, options: Options{Walk: documents, Held: v.held}})
	if err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	v.files["there-between.md"] = "two walks"
	v.mu.Unlock()
	for range 2 {
		if got, err := p.look(t.Context()); err != nil || !slices.Equal(got, []string{"there-between.md"}) {
			t.Errorf("the walk finds %q, %v, want the file that the reader holds", got, err)
		}
	}
	v.mu.Lock()
	clear(v.files)
	v.mu.Unlock()
	if got, err := p.look(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("the walk finds %q, %v, want nothing", got, err)
	}
}

// TestUnhandled: a change is known at once, before a batch with it is handed over and until
// it was handled.
func TestUnhandled(t *testing.T) {
	dir := t.TempDir()
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	w, err := Open(t.Context(), tree, &Options{Walk: documents, Quiet: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if w.Polling() != "" || w.source.(*events).probe == nil {
		t.Skip("the system does not report changes in their order")
	}
	ctx, stop := context.WithCancel(t.Context())
	batches, handled, ended := make(chan Batch), make(chan error), make(chan error)
	go func() {
		ended <- w.Run(ctx, false, func(_ context.Context, b Batch) error { batches <- b; return <-handled })
	}()
	unhandled := func(name, when string) {
		t.Helper()
		if b, ok := w.Unhandled(); !ok || !slices.Contains(b.Paths, name) {
			t.Errorf("%s: %+v, %v, want %s", when, b, ok, name)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		unhandled(name, "just written")
	}
	write("a.md")
	<-batches
	unhandled("a.md", "being handled")
	write("b.md")
	handled <- errors.New("not yet")
	write("c.md")
	unhandled("a.md", "after an error")
	stop()
	for running := true; running; {
		select {
		case <-batches:
			handled <- nil
		case <-ended:
			running = false
		}
	}
	if _, ok := w.Unhandled(); ok {
		t.Error("the watcher knows changes after its end")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
