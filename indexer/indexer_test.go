package indexer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/base/job"
	"cairn/internal/base/testutil"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/ngram"
	"cairn/internal/text/convert"
	"cairn/internal/text/query"
	"cairn/internal/text/sandbox"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
)

func TestRunFromNothing(t *testing.T) {
	f := newFixture(t, generated(t, 40), nil)
	var last job.Progress
	phases := map[string]bool{}
	r, err := f.Run(t.Context(), func(p job.Progress) {
		last = p
		phases[p.Phase] = true
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Files != 40 || r.Added != 40 || r.Chunks == 0 || r.Sections == 0 || r.Embedded == 0 || r.Generation != 1 {
		t.Errorf("report of a first run over 40 files: %v, generation %d", r, r.Generation)
	}
	if len(phases) != 3 || last.Phase != PhaseVectors || last.Done != r.Chunks || last.Total != r.Chunks {
		t.Errorf("progress in phases %v ended with %+v, want all three and %d chunks", phases, last, r.Chunks)
	}
	meta, err := f.stores.Docs.Meta()
	if err != nil {
		t.Fatal(err)
	}
	if meta.BuiltAt.IsZero() || len(meta.Roots) != 1 {
		t.Errorf("meta after a run is %+v", meta)
	}
	contentOf(t, f.stores, f.embedder)
}

func TestSecondRunEmbedsAndReadsNothing(t *testing.T) {
	root := generated(t, 30)
	old := time.Now().Add(-time.Hour)
	for i := range 30 {
		if err := os.Chtimes(filepath.Join(root, fmt.Sprintf("part%d/doc%03d.md", i%5, i)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	f := newFixture(t, root, nil)
	f.run()
	// Same size and times, other bytes: a run that opened the file would see it.
	name := filepath.Join(root, "part0/doc000.md")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Repeat([]byte("x"), len(b)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	f.believe("part0/doc000.md")
	before := f.embedder.Embedded()
	r := f.run()
	if got := f.embedder.Embedded() - before; got != 0 || r.Unchanged != 30 || r.Changed != 0 || r.Embedded != 0 || r.FromCache != 0 {
		t.Errorf("second run embedded %d texts: %v", got, r)
	}
}

// TestFreshFilesHaveTheirTime: a file written just before the run is recorded
// with its time, so that answers do not call it stale.
func TestFreshFilesHaveTheirTime(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	for step, content := range []string{"# A\n", "# B\n", "# B\n"} { // added, changed, touched
		f.write("a.md", content)
		f.run()
		info, err := os.Stat(filepath.Join(f.root, "a.md"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := f.stores.Docs.Document("a.md")
		if err != nil || d.ModTime != info.ModTime().UnixNano() || d.Size != info.Size() {
			t.Errorf("step %d: recorded %+v, %v, want time %d", step, d, err, info.ModTime().UnixNano())
		}
	}
}

// TestSkippedContentIsNotReadAgain: what a file holds is looked at once for
// each size and time.
func TestSkippedContentIsNotReadAgain(t *testing.T) {
	f := newFixture(t, t.TempDir(), &Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	at := time.Now().Add(-time.Hour)
	put := func(name, content string, at time.Time) {
		f.write(name, content)
		if err := os.Chtimes(filepath.Join(f.root, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	put("binary.md", "# \x00\n", at)
	put("koi8.md", "# \xf0\xd2\xc9\n", at)
	const both = "files 0 (+0 ~0 -0 =0) skipped map[binary:1 not UTF-8:1] unreadable 0 chunks 0 embedded 0 cached 0"
	if got := f.run().String(); got != both {
		t.Errorf("first run:\n got %s\nwant %s", got, both)
	}
	put("binary.md", "# A\n", at) // as before, but for the content: seen only if it is read
	put("koi8.md", "# ABC\n", at)
	f.believe("binary.md", "koi8.md")
	if got := f.run().String(); got != both {
		t.Errorf("run with the same sizes and times:\n got %s\nwant %s", got, both)
	}
	put("binary.md", "# A\n", at.Add(time.Second))
	put("koi8.md", "# longer\n", at)
	if got, want := f.run().String(), "files 2 (+2 ~0 -0 =0) skipped map[] unreadable 0 chunks 2 embedded 2 cached 0"; got != want {
		t.Errorf("run with another time and another size:\n got %s\nwant %s", got, want)
	}
}

// TestHeld: nothing is written to a derived index that this process must not write.
func TestHeld(t *testing.T) {
	lost := errors.New("another process has the folder")
	held := error(nil)
	f := newFixture(t, generated(t, 4), &Options{Held: func() error { return held }})
	if err := f.scan(t.Context(), nil, nil, &Report{Skipped: map[string]int{}}); err != nil {
		t.Fatal(err)
	}
	held = lost
	if err := f.Keywords(t.Context(), nil); !errors.Is(err, lost) {
		t.Errorf("Keywords = %v, want %v", err, lost)
	}
	if err := f.Vectors(t.Context(), nil); !errors.Is(err, lost) {
		t.Errorf("Vectors = %v, want %v", err, lost)
	}
	for _, index := range []interface{ Count() (int, error) }{f.stores.Keyword, f.stores.Vectors} {
		if n, err := index.Count(); n > 0 || err != nil {
			t.Errorf("%T holds %d chunks, %v, want none", index, n, err)
		}
	}
}

// TestContradictoryDocumentIsSkipped: a parser's mistake about one file costs
// that file alone, and the list of skipped files names it.
func TestContradictoryDocumentIsSkipped(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	f.write("bad.md", "# A\n\n# B\n")
	f.write("good.md", "# Good\n")
	tl := &Report{Skipped: map[string]int{}}
	s := &scanner{x: f.Indexer, t: tl, m: newProgressReporter(nil, time.Now, PhaseScan, 0, 0), seen: map[string]bool{}, chunker: hashChunker(nil)}
	for _, name := range []string{"bad.md", "good.md"} {
		o := s.read(walk.Entry{Path: name})
		if name == "bad.md" {
			for i := range o.put.Document.Sections {
				o.put.Document.Sections[i].Anchor = "same"
			}
		}
		if err := s.collect(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.put(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files, err := f.stores.Docs.Files(); err != nil || len(files) != 1 || tl.Added != 1 || s.seen["bad.md"] {
		t.Errorf("stored %v, %v, added %d; want good.md alone", files, err, tl.Added)
	}
	if want := []docs.Skipped{{Path: "bad.md", Reason: `contradictory: two sections have the anchor "same"`, Grams: s.x.gramsOf([]byte("# A\n\n# B\n"))}}; !slices.Equal(s.skipped, want) {
		t.Errorf("skipped %v, want %v", s.skipped, want)
	}
}

func TestChanges(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"empty folder", func() {}, "files 0 (+0 ~0 -0 =0) skipped map[] unreadable 0 chunks 0 embedded 0 cached 0"},
		{"two files", func() {
			f.write("a.md", "# A\n\nalpha\n\n## A2\n\nbeta\n")
			f.write("b/b.md", "# B\n\ngamma\n")
		}, "files 2 (+2 ~0 -0 =0) skipped map[] unreadable 0 chunks 3 embedded 3 cached 0"},
		{"an edit embeds what changed", func() { f.write("a.md", "# A\n\nalpha\n\n## A2\n\nbeta, changed\n") },
			"files 2 (+0 ~1 -0 =1) skipped map[] unreadable 0 chunks 3 embedded 1 cached 1"},
		{"a section less", func() { f.write("a.md", "# A\n\nalpha\n") },
			"files 2 (+0 ~1 -0 =1) skipped map[] unreadable 0 chunks 2 embedded 0 cached 1"},
		{"a rename embeds nothing", func() {
			if err := os.Rename(filepath.Join(f.root, "b"), filepath.Join(f.root, "c")); err != nil {
				t.Fatal(err)
			}
		}, "files 2 (+1 ~0 -1 =1) skipped map[] unreadable 0 chunks 2 embedded 0 cached 1"},
		{"new time, same bytes", func() {
			if err := os.Chtimes(filepath.Join(f.root, "a.md"), time.Now(), time.Now().Add(-time.Minute)); err != nil {
				t.Fatal(err)
			}
		}, "files 2 (+0 ~0 -0 =2) skipped map[] unreadable 0 chunks 2 embedded 0 cached 0"},
		{"a file turns binary", func() { f.write("a.md", "alpha\x00") },
			"files 1 (+0 ~0 -1 =1) skipped map[binary:1] unreadable 0 chunks 1 embedded 0 cached 0"},
		{"and another is ignored", func() { f.write(".cairnignore", "c/\n") },
			"files 0 (+0 ~0 -1 =0) skipped map[binary:1 ignored:1] unreadable 0 chunks 0 embedded 0 cached 0"},
		{"and back", func() {
			f.write("a.md", "# A\n\nalpha\n")
			if err := os.Remove(filepath.Join(f.root, ".cairnignore")); err != nil {
				t.Fatal(err)
			}
		}, "files 2 (+2 ~0 -0 =0) skipped map[] unreadable 0 chunks 2 embedded 0 cached 2"},
		{"not UTF-8, too large", func() {
			f.write("a.md", "\xff\x01")
			f.write("c/b.md", string(bytes.Repeat([]byte("x"), 1+walk.DefaultMaxSize)))
		}, "files 0 (+0 ~0 -2 =0) skipped map[not UTF-8:1 too large:1] unreadable 0 chunks 0 embedded 0 cached 0"},
	}
	for _, s := range steps {
		s.do()
		if got := f.run().String(); got != s.want {
			t.Errorf("%s:\n got %s\nwant %s", s.name, got, s.want)
		}
		contentOf(t, f.stores, f.embedder)
	}
	skipped := contentOf(t, f.stores, f.embedder).Skipped
	if want := []docs.Skipped{{Path: "a.md", Reason: "not UTF-8", Grams: ngram.NotText}, {Path: "c/b.md", Reason: "too large"}}; !slices.Equal(skipped, want) {
		t.Errorf("skipped files are %v, want %v", skipped, want)
	}
	sameAsClean(t, f.root, f.stores, f.embedder, nil)
}

// TestLargeDocument: most bytes of a large document are not text.
func TestLargeDocument(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	f.write("a.html", "<p>alpha<script>"+string(bytes.Repeat([]byte("x"), walk.DefaultMaxSize))+"</script>")
	if got, want := f.run().String(), "files 1 (+1 ~0 -0 =0) skipped map[] unreadable 0 chunks 1 embedded 1 cached 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for size, want := range map[int64]int64{0: smallFile / 64, smallFile: smallFile, 20 << 20: 2 * smallFile, 64 << 20: 4 * smallFile} {
		if got := weight(walk.Entry{Path: "a.pdf", Size: size}, 4*smallFile); got != want {
			t.Errorf("a file of %d bytes weighs %d, want %d", size, got, want)
		}
	}
}

// TestEqualTextsAreEmbeddedOnce: copies of a page are common.
func TestEqualTextsAreEmbeddedOnce(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	for i := range 10 {
		f.write(fmt.Sprintf("v%d/page.md", i), "# Page\n\nThe same text.\n")
	}
	if r := f.run(); r.Chunks != 10 || f.embedder.Embedded() != 1 {
		t.Errorf("ten copies embedded %d texts: %v", f.embedder.Embedded(), r)
	}
}

func TestUnreadableIsNotDeleted(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("permissions do not bind this user")
	}
	f := newFixture(t, t.TempDir(), nil)
	f.write("a.md", "# A\n")
	f.write("dir/b.md", "# B\n")
	f.run()
	if err := os.Chmod(filepath.Join(f.root, "dir"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(f.root, "dir"), 0o755)
	f.write("a.md", "# A changed\n")
	if err := os.Chmod(filepath.Join(f.root, "a.md"), 0); err != nil {
		t.Fatal(err)
	}
	if r := f.run(); r.Files != 2 || r.Removed != 0 || r.Skipped["unreadable"] != 2 {
		t.Errorf("run over unreadable paths: %v", r)
	}
	// The same by name, and below a folder that can be listed but not entered.
	for _, mode := range []os.FileMode{0, 0o444, 0o111} {
		if err := os.Chmod(filepath.Join(f.root, "dir"), mode); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"dir/b.md", "dir", "dir/x/y.md"} {
			if r, err := f.Refresh(t.Context(), []string{path}); err != nil || r.Files != 2 || r.Removed != 0 {
				t.Errorf("Refresh(%s) in a folder of mode %o: %v, %v", path, mode, r, err)
			}
		}
	}
	if r, err := f.Refresh(t.Context(), []string{"a.md"}); err != nil || r.Files != 2 || r.Skipped["unreadable"] != 1 {
		t.Errorf("Refresh of a file without permission: %v, %v", r, err)
	}
}

// TestKeptPaths covers what permissions cannot show to root.
func TestKeptPaths(t *testing.T) {
	s := &scanner{kept: []string{"dir", "a.md"}}
	for path, want := range map[string]bool{"dir/b.md": true, "dir": true, "a.md": true, "dir2/b.md": false, "a.mdx": false, "x/dir/b.md": false} {
		if got := s.isKept(path); got != want {
			t.Errorf("isKept(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestGoneRootDeletesNothing(t *testing.T) {
	root := t.TempDir()
	f := newFixture(t, root, nil)
	f.write("a.md", "# A\n")
	f.run()
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	r, err := f.Run(t.Context(), nil)
	if r.Files != 1 {
		t.Errorf("a root that is gone left %d files and the error %v, want 1 file", r.Files, err)
	}
}

func TestPaths(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	for _, name := range []string{"a.md", "d/b.md", "d/e/c.md", "dd.md"} {
		f.write(name, "# One\n\ntext of "+name+"\n")
	}
	f.write("bin.md", "\x00")
	f.run()
	for _, name := range []string{"a.md", "d/b.md", "dd.md"} {
		f.write(name, "# Two\n\nanother text, of "+name+"\n")
	}
	if err := os.Remove(filepath.Join(f.root, "d/e/c.md")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		paths []string
		want  string
	}{
		{[]string{"dd.md"}, "files 4 (+0 ~1 -0 =0) skipped map[] unreadable 0 chunks 4 embedded 1 cached 0"},
		{[]string{"d/"}, "files 3 (+0 ~1 -1 =0) skipped map[] unreadable 0 chunks 3 embedded 1 cached 0"},
		{[]string{"nowhere.md", "d/e/c.md"}, "files 3 (+0 ~0 -0 =0) skipped map[] unreadable 0 chunks 3 embedded 0 cached 0"},
		{[]string{".gitignore"}, "files 3 (+0 ~1 -0 =2) skipped map[binary:1] unreadable 0 chunks 3 embedded 1 cached 0"},
	} {
		r, err := f.Paths(t.Context(), step.paths, nil)
		if err != nil || r.String() != step.want {
			t.Errorf("Paths(%q):\n got %v, %v\nwant %s", step.paths, r, err, step.want)
		}
	}
	if _, err := f.Paths(t.Context(), []string{"../x.md"}, nil); !errors.Is(err, walk.ErrPath) {
		t.Errorf("Paths outside of the workspace: %v, want ErrPath", err)
	}
	sameAsClean(t, f.root, f.stores, f.embedder, nil)
}

// TestRefreshLooksAtNothingElse checks that Refresh ignores changes outside its
// paths.
func TestRefreshLooksAtNothingElse(t *testing.T) {
	f := newFixture(t, generated(t, 40), nil)
	f.run()
	f.write("part1/doc001.md", "# Named\n\nzebra\n")
	f.write("part2/doc002.md", "# Not named\n\nquagga\n")
	f.write("part3/new.md", "# Not named\n\nokapi\n")
	r, err := f.Refresh(t.Context(), []string{"part1/doc001.md"})
	if err != nil || r.Changed != 1 || r.Added != 0 || r.Unchanged != 0 || r.Files != 40 || f.embedder.Embedded() == 0 {
		t.Errorf("Refresh of one file: %v, %v", r, err)
	}
	if hits, err := f.stores.Keyword.Search(t.Context(), query.Parse("zebra"), 5, store.Filter{}); err != nil || len(hits) != 1 {
		t.Errorf("keyword hits before the vectors: %v, %v", hits, err)
	}
	e, err := f.Embed(t.Context())
	if err != nil || e.Embedded != 1 || e.Generation != 2 {
		t.Errorf("Embed: %v, generation %d, %v", e, e.Generation, err)
	}
	if r, err := f.Refresh(t.Context(), nil); err != nil || r.Changed != 1 || r.Added != 1 || r.Unchanged != 39 {
		t.Errorf("Refresh of everything: %v, %v", r, err)
	}
	if _, err := f.Embed(t.Context()); err != nil {
		t.Fatal(err)
	}
	sameAsClean(t, f.root, f.stores, f.embedder, nil)
}

func TestKeywordsAnswerBeforeVectors(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	f.write("a.md", "# Alpha\n\nunmistakable\n")
	if _, err := f.Refresh(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	hits, err := f.stores.Keyword.Search(t.Context(), query.Parse("unmistakable"), 5, store.Filter{})
	if err != nil || len(hits) != 1 || hits[0].Chunk != "a.md#alpha.0" {
		t.Errorf("keyword hits %v, %v; want a.md#alpha.0", hits, err)
	}
	if f.embedder.Embedded() != 0 {
		t.Errorf("%d texts were embedded, want none", f.embedder.Embedded())
	}
	if err := f.Vectors(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	sameAsClean(t, f.root, f.stores, f.embedder, nil)
}

func TestCancelledRunResumes(t *testing.T) {
	root := generated(t, 60)
	f := newFixture(t, root, &Options{BatchTexts: 16, WindowChunks: 100})
	ctx, cancel := context.WithCancel(t.Context())
	f.embedder.Before = func([]string) error {
		if f.embedder.Embedded() > 200 {
			cancel()
		}
		return ctx.Err()
	}
	if _, err := f.Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled run: %v", err)
	}
	first := f.embedder.Embedded()
	f.embedder.Before = nil
	r := f.run()
	clean := newFixture(t, root, nil).run()
	if first < 200 || first+r.Embedded != clean.Embedded {
		t.Errorf("of %d texts the first run embedded %d and the second %d, want each embedded once", clean.Embedded, first, r.Embedded)
	}
	sameAsClean(t, root, f.stores, f.embedder, nil)
}

// TestShortRunsMakeProgress: with an encoder of ten texts a second, a run that
// is ended after a second and a half has stored what it made.
func TestShortRunsMakeProgress(t *testing.T) {
	var clock atomic.Int64 // milliseconds
	root := generated(t, 60)
	f := newFixture(t, root, &Options{Now: func() time.Time { return time.UnixMilli(1e12 + clock.Load()) }})
	for session := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		end := clock.Load() + 1500
		f.embedder.Before = func(texts []string) error {
			if clock.Add(int64(100*len(texts))) > end {
				cancel()
			}
			return ctx.Err()
		}
		before, err := f.stores.Vectors.Count()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Run(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Fatalf("session %d: %v, want cancelled", session, err)
		}
		if after, err := f.stores.Vectors.Count(); err != nil || after < before+firstBatch {
			t.Errorf("session %d: %d vectors became %d, %v; want at least %d more", session, before, after, err, firstBatch)
		}
	}
	f.embedder.Before = nil
	f.run()
	sameAsClean(t, root, f.stores, f.embedder, nil)
}

// TestFirstWindowIsSmall: embedding begins, and the first documents are
// complete, long before a large index has been read.
func TestFirstWindowIsSmall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFixture(t, generated(t, 100), nil)
	f.embedder.Before = func([]string) error {
		if f.embedder.Embedded() >= firstWindow {
			cancel()
		}
		return ctx.Err()
	}
	if _, err := f.Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("run: %v, want cancelled", err)
	}
	counts, err := f.stores.Docs.Counts()
	if err != nil {
		t.Fatal(err)
	}
	if done := counts.Chunks - counts.Vectors.Chunks; counts.Chunks < 4*firstWindow || done < firstWindow/2 {
		t.Errorf("after %d of %d texts, documents of %d chunks are complete, want at least %d", f.embedder.Embedded(), counts.Chunks, done, firstWindow/2)
	}
}

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name      string
		perText   time.Duration
		wantTexts []int           // of each batch
		wantEnds  []time.Duration // of embedding between commits
	}{
		{"quick", ms / 10, []int{8, 16, 32, 64, 64, 64}, nil},
		{"usual", 17 * ms, []int{8, 16, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32}, []time.Duration{1496 * ms, 1632 * ms, 2720 * ms}},
		{"slow", 400 * ms, []int{8, 8, 8, 8}, []time.Duration{3200 * ms, 3200 * ms, 3200 * ms}},
	} {
		p := newBatchSize(64)
		var texts []int
		var ends []time.Duration
		var since time.Duration
		for range c.wantTexts {
			texts = append(texts, p.texts)
			took := time.Duration(p.texts) * c.perText
			if since += took; p.embedded(took) {
				ends = append(ends, since)
				since = 0
			}
		}
		if !slices.Equal(texts, c.wantTexts) || !slices.Equal(ends, c.wantEnds) {
			t.Errorf("%s: batches of %v, commits after %v; want %v, %v", c.name, texts, ends, c.wantTexts, c.wantEnds)
		}
	}
}

func TestEmbedderErrorKeepsKeywords(t *testing.T) {
	f := newFixture(t, generated(t, 5), nil)
	broken := errors.New("broken")
	f.embedder.Before = func([]string) error { return broken }
	if _, err := f.Run(t.Context(), nil); !errors.Is(err, broken) {
		t.Errorf("run with a broken encoder: %v, want its error", err)
	}
	counts, err := f.stores.Docs.Counts()
	if err != nil {
		t.Fatal(err)
	}
	if counts.Keyword.Files != 0 || counts.Vectors.Files != 5 {
		t.Errorf("pending after a broken encoder: %d for keywords, %d for vectors; want 0 and 5", counts.Keyword.Files, counts.Vectors.Files)
	}
}

// TestRandomEdits: after any series of edits, renames and deletions, an
// incremental run equals a clean one.
func TestRandomEdits(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			o := &Options{WindowChunks: 64, BatchTexts: 8}
			f := newFixture(t, generated(t, 12), o)
			f.run()
			for range 5 {
				for range 1 + r.IntN(6) {
					edit(t, r, f.root)
				}
				f.run()
			}
			sameAsClean(t, f.root, f.stores, f.embedder, nil)
		})
	}
}

// edit makes one random change of a folder that WriteFolder wrote.
func edit(t *testing.T, r *rand.Rand, root string) {
	t.Helper()
	name := func() string { return fmt.Sprintf("part%d/doc%03d.md", r.IntN(3), r.IntN(15)) }
	from := filepath.Join(root, name())
	b, err := os.ReadFile(from)
	switch {
	case err != nil || r.IntN(4) == 0:
		write(t, root, name(), testutil.Markdown(r, r.IntN(5000)))
		return
	case r.IntN(3) == 0:
		err = os.Remove(from)
	case r.IntN(3) == 0:
		err = os.Rename(from, filepath.Join(root, "part0", filepath.Base(name())))
	case r.IntN(3) == 0:
		err = os.WriteFile(from, []byte(string(b)+testutil.Markdown(r, 300)), 0o644)
	case r.IntN(5) == 0:
		err = os.WriteFile(from, []byte("\x00"), 0o644)
	default:
		at := bytes.IndexByte(b, '\n') + 1
		err = os.WriteFile(from, slices.Concat(b[:at], []byte("An inserted sentence.\n"), b[at:]), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkUnchanged is a run over 10,000 files in which nothing changed.
func BenchmarkUnchanged(b *testing.B) {
	root, old := b.TempDir(), time.Now().Add(-time.Hour)
	for i := range 10000 {
		name := filepath.Join(root, fmt.Sprintf("%02d/%02d", i%100, i/1000), fmt.Sprintf("%d.md", i))
		err := errors.Join(
			os.MkdirAll(filepath.Dir(name), 0o755),
			os.WriteFile(name, fmt.Appendf(nil, "# Page %d\n\ntext\n", i), 0o644),
			os.Chtimes(name, old, old))
		if err != nil {
			b.Fatal(err)
		}
	}
	e := &testutil.HashEmbedder{}
	s, closeAll, err := open(root, b.TempDir(), e)
	if err != nil {
		b.Fatal(err)
	}
	defer closeAll()
	x := New(s, e, nil)
	for b.Loop() {
		if _, err := x.Run(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// A file whose conversion exceeds a limit is read again when it changes and once after a
// day. A file that could not be converted because no process could be started is read by
// the next run.
func TestFileBeyondALimitIsTriedAgain(t *testing.T) {
	now := time.Now().Add(time.Hour)
	f := newFixture(t, t.TempDir(), &Options{Now: func() time.Time { return now }})
	failure := errors.New("no process")
	reads := 0
	f.textOf = func(string, []byte, *secret.Masks) ([]byte, int, error) {
		reads++
		return nil, 0, failure
	}
	f.write("a.pdf", "%PDF")
	expect := func(want int, why string) {
		t.Helper()
		report := f.run()
		if reads != want || report.Skipped[failure.Error()] != 1 {
			t.Errorf("%s: read %d times, want %d; skipped %v", why, reads, want, report.Skipped)
		}
	}
	expect(1, "no process")
	expect(2, "the next run")
	failure = &sandbox.Error{Reason: "takes too long"}
	expect(3, "the first time beyond the limit")
	expect(3, "the next run")
	now = now.Add(retryTime)
	expect(4, "after a day")
	now = now.Add(retryTime)
	expect(4, "after two days")
	f.write("a.pdf", "%PDF-1")
	expect(5, "after a change")
	f.write("a.pdf", "%PDF-1.4")
	expect(6, "after another change within a day")
	now = now.Add(retryTime)
	expect(7, "a day after that")
	f.write("a.pdf", "%PDF-1.45")
	expect(8, "after a third change")
	failure = &convert.Error{Reason: "broken file"}
	now = now.Add(retryTime)
	expect(9, "after a day")
	now = now.Add(retryTime)
	expect(9, "an error of the file")
}
