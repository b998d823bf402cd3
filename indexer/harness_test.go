package indexer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/job"
	"cairn/internal/base/testutil"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/internal/store/kv"
	"cairn/internal/text/query"
	"cairn/internal/text/walk"
	"cairn/models"
)

// open opens the stores of an index in folder index over the files in root.
func open(root, index string, e models.Embedder) (s Stores, closeAll func() error, err error) {
	var closers []func() error
	closeAll = func() error {
		var errs []error
		for _, c := range slices.Backward(closers) {
			errs = append(errs, c())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	d := e.Description()
	if s.Files, err = walk.Open(walk.Root{Dir: root}); err != nil {
		return s, closeAll, err
	}
	closers = append(closers, s.Files.Close)
	db, err := kv.Open(filepath.Join(index, "cairn.db"), nil)
	if err != nil {
		return s, closeAll, err
	}
	closers = append(closers, db.Close)
	if s.Docs, err = docs.Open(db, &docs.Options{Model: d}); err != nil {
		return s, closeAll, err
	}
	keywords, err := keyword.Open(filepath.Join(index, "text"), nil)
	if err != nil {
		return s, closeAll, err
	}
	closers = append(closers, keywords.Close)
	s.Keyword = keywords
	vectors, err := flat.Open(filepath.Join(index, "vectors"), d.Dimension, d.ID, nil)
	if err != nil {
		return s, closeAll, err
	}
	closers = append(closers, vectors.Close)
	s.Vectors, s.Cache = vectors, vectors
	return s, closeAll, nil
}

// fixture is an index over a folder of a test.
type fixture struct {
	t        *testing.T
	root     string
	index    string
	embedder *testutil.HashEmbedder
	stores   Stores
	*Indexer
}

func newFixture(t *testing.T, root string, o *Options) *fixture {
	t.Helper()
	f := &fixture{t: t, root: root, index: t.TempDir(), embedder: &testutil.HashEmbedder{}}
	s, closeAll, err := open(root, f.index, f.embedder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	})
	f.stores, f.Indexer = s, New(s, f.embedder, o)
	return f
}

func (f *fixture) run() *Report {
	f.t.Helper()
	r, err := f.Run(f.t.Context(), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fixture) write(name, content string) {
	f.t.Helper()
	write(f.t, f.root, name, content)
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// content is all that an index can answer with: every document with its chunk
// ids and text, skipped files, and the first ten of 100 queries on both legs.
type content struct {
	Documents map[string]string
	Skipped   []docs.Skipped
	Keyword   map[string][]store.Hit
	Vector    map[string][]store.Hit
	Pending   [2]docs.PendingCounts
}

func contentOf(t *testing.T, s Stores, e models.Embedder) content {
	t.Helper()
	ctx := context.Background()
	c := content{Documents: map[string]string{}, Keyword: map[string][]store.Hit{}, Vector: map[string][]store.Hit{}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := s.Docs.Files()
	check(err)
	var chunks []string
	for path := range files {
		d, err := s.Docs.Document(path)
		check(err)
		body, _, err := s.Docs.Text(path)
		check(err)
		same := *d
		same.ModTime = 0 // two runs may find it racy or not
		encoded, err := json.Marshal(same)
		check(err)
		c.Documents[path] = string(encoded) + string(body)
		chunks = append(chunks, d.ChunkIDs()...)
	}
	if n := slices.Index(haveVectors(t, s, chunks), false); n >= 0 {
		t.Errorf("chunk %s has no vector", chunks[n])
	}
	for _, index := range []interface{ Count() (int, error) }{s.Keyword, s.Vectors} {
		n, err := index.Count()
		check(err)
		if n != len(chunks) {
			t.Errorf("%T holds %d chunks, the documents have %d", index, n, len(chunks))
		}
	}
	c.Skipped, err = s.Docs.Skipped()
	check(err)
	for i := range c.Skipped {
		c.Skipped[i].Size, c.Skipped[i].ModTime, c.Skipped[i].ChangeTime = 0, 0, 0 // as above
	}
	counts, err := s.Docs.Counts()
	check(err)
	c.Pending = [2]docs.PendingCounts{counts.Keyword, counts.Vectors}
	r := rand.New(rand.NewPCG(99, 99))
	for range 100 {
		q := testutil.Sentence(r, 2)
		c.Keyword[q], err = s.Keyword.Search(ctx, query.Parse(q), 10, store.Filter{})
		check(err)
		v, err := e.EmbedQuery(ctx, q)
		check(err)
		c.Vector[q], err = s.Vectors.Search(ctx, v, 10, store.Filter{})
		check(err)
	}
	return c
}

// sameAsClean compares an index with one built from nothing over the same files.
func sameAsClean(t *testing.T, root string, s Stores, e models.Embedder, o *Options) {
	t.Helper()
	clean := newFixture(t, root, o)
	clean.run()
	got, want := contentOf(t, s, e), contentOf(t, clean.stores, clean.embedder)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the index differs from a clean one (-clean +got):\n%.4000s", diff)
	}
}

func generated(t *testing.T, files int) string {
	t.Helper()
	root := t.TempDir()
	if err := testutil.WriteFolder(root, files, 5); err != nil {
		t.Fatal(err)
	}
	return root
}

// haveVectors reports which chunks have a vector.
func haveVectors(t *testing.T, s Stores, chunks []string) []bool {
	t.Helper()
	vectors, err := s.Vectors.(*flat.Store).Vectors(t.Context(), chunks)
	if err != nil {
		t.Fatal(err)
	}
	has := make([]bool, len(chunks))
	for i, v := range vectors {
		has[i] = v != nil
	}
	return has
}

func (r *Report) String() string {
	return fmt.Sprintf("files %d (+%d ~%d -%d =%d) skipped %v unreadable %d chunks %d embedded %d cached %d",
		r.Files, r.Added, r.Changed, r.Removed, r.Unchanged, r.Skipped, r.Skipped["unreadable"], r.Chunks, r.Embedded, r.FromCache)
}

// Paths is Run for the given files alone, as Refresh takes them.
func (x *Indexer) Paths(ctx context.Context, paths []string, progress func(job.Progress)) (*Report, error) {
	only, err := newPathSet(paths)
	if err != nil {
		return nil, fmt.Errorf("indexing: %w", err)
	}
	return x.run(ctx, only, true, progress)
}
