package retriever

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"cairn/indexer"
	"cairn/internal/base/testutil"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/keyword"
	"cairn/internal/store/kv"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
	"cairn/models/bpe"
)

// folder is a small indexed workspace.
type folder struct {
	t        testing.TB
	dir      string
	docs     *docs.Store
	keyword  *keyword.Index
	vectors  *plainVectors
	embedder *testutil.HashEmbedder
	files    *walk.Tree
	*Retriever
}

// open indexes files and returns a retriever for them. Files named in later are
// left without vectors.
func open(t testing.TB, files map[string]string, o *Options, later ...string) *folder {
	t.Helper()
	f := &folder{t: t, dir: t.TempDir(), vectors: &plainVectors{}, embedder: &testutil.HashEmbedder{}}
	db, err := kv.Open(filepath.Join(t.TempDir(), "docs.db"), nil)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	f.docs, err = docs.Open(db, nil)
	must(t, err)
	f.keyword, err = keyword.Memory()
	must(t, err)
	t.Cleanup(func() { f.keyword.Close() })
	f.files, err = walk.Open(walk.Root{Dir: f.dir})
	must(t, err)
	t.Cleanup(func() { f.files.Close() })
	for path, text := range files {
		f.write(path, text)
	}
	f.index(files, later)
	f.Retriever, err = New(Sources{
		Documents: f.docs, Keyword: f.keyword, Vectors: f.vectors, Embedder: f.embedder,
		Budget: &bpe.Counter{}, Files: f.files,
	}, o)
	must(t, err)
	return f
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *folder) write(path, text string) {
	f.t.Helper()
	name := filepath.Join(f.dir, filepath.FromSlash(path))
	must(f.t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(f.t, os.WriteFile(name, []byte(text), 0o644))
}

// index does what a run of the indexer does, in one go.
func (f *folder) index(files map[string]string, later []string) {
	f.t.Helper()
	ctx := context.Background()
	chunker, err := indexer.NewChunker(f.embedder, nil)
	must(f.t, err)
	var puts []docs.Put
	var entries []store.KeywordEntry
	var vectors []store.VectorEntry
	for _, path := range slices.Sorted(names(files)) {
		content := []byte(files[path])
		parsed := markdown.Parse(path, content)
		sum := sha256.Sum256(content)
		info, err := os.Stat(filepath.Join(f.dir, filepath.FromSlash(path)))
		must(f.t, err)
		doc := store.Document{
			Path: path, Title: parsed.Title, Hash: hex.EncodeToString(sum[:]), Size: info.Size(),
			ModTime: info.ModTime().UnixNano(), Labels: parsed.Labels, Sections: parsed.Sections,
		}
		chunker.Chunk(&doc, string(content))
		puts = append(puts, docs.Put{Document: doc, Text: content})
		for i := range doc.Sections {
			for n := range doc.Sections[i].Chunks {
				entries = append(entries, chunker.KeywordEntry(&doc, i, n, string(content)))
				if slices.Contains(later, path) {
					continue
				}
				v, err := f.embedder.EmbedDocuments(ctx, []string{chunker.EmbedText(&doc, i, n, string(content))})
				must(f.t, err)
				vectors = append(vectors, store.VectorEntry{Chunk: store.ChunkID(path, doc.Sections[i].Anchor, n), Path: path, Labels: doc.Labels, Vector: v[0]})
			}
		}
	}
	must(f.t, f.docs.Put(ctx, puts))
	must(f.t, f.keyword.Update(ctx, entries, nil))
	must(f.t, f.vectors.Update(ctx, vectors, nil))
	for _, kind := range []docs.Kind{docs.Keyword, docs.Vectors} {
		var pending []docs.PendingDoc
		must(f.t, f.docs.View(func(r *docs.Reader) (err error) {
			pending, err = r.Pending(kind, "", 0)
			return err
		}))
		var done []docs.Mark
		for _, p := range pending {
			if kind == docs.Keyword || !slices.Contains(later, p.Path) {
				done = append(done, p.Mark)
			}
		}
		must(f.t, f.docs.Done(ctx, kind, done, 0))
	}
	_, err = f.docs.Advance(ctx, []string{""}, time.Unix(1_700_000_000, 0))
	must(f.t, err)
}

func names(files map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for path := range files {
			if !yield(path) {
				return
			}
		}
	}
}

func (f *folder) search(q Query) *Answer {
	f.t.Helper()
	a, err := f.Search(context.Background(), q)
	if err != nil {
		f.t.Fatalf("Search(%+v): %v", q, err)
	}
	return a
}

func paths(a *Answer) []string {
	out := []string{}
	for _, r := range a.Results {
		out = append(out, r.Path)
	}
	return out
}

// plainVectors is the slow and obvious vector store.
type plainVectors struct {
	mu      sync.Mutex
	entries map[string]store.VectorEntry
	err     error // what Search fails with
	scores  error // what Scores fails with
}

func (p *plainVectors) Update(_ context.Context, entries []store.VectorEntry, stale []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries == nil {
		p.entries = map[string]store.VectorEntry{}
	}
	for _, id := range stale {
		delete(p.entries, id)
	}
	for _, e := range entries {
		p.entries[e.Chunk] = e
	}
	return nil
}

func (p *plainVectors) Search(_ context.Context, query []float32, k int, f store.Filter) ([]store.Hit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hits []store.Hit
	for id, e := range p.entries {
		if f.Match(e.Path, e.Labels) {
			hits = append(hits, store.Hit{Chunk: id, Score: dot(query, e.Vector)})
		}
	}
	slices.SortFunc(hits, func(a, b store.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
	})
	return hits[:min(k, len(hits))], p.err
}

func (p *plainVectors) Scores(_ context.Context, query []float32, chunks []string) ([]float64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]float64, len(chunks))
	for i, id := range chunks {
		out[i] = math.NaN()
		if e, ok := p.entries[id]; ok {
			out[i] = dot(query, e.Vector)
		}
	}
	return out, p.scores
}

func (p *plainVectors) Has(_ context.Context, chunks []string) ([]bool, error) {
	out := make([]bool, len(chunks))
	for i, id := range chunks {
		_, out[i] = p.entries[id]
	}
	return out, nil
}

func (p *plainVectors) Count() (int, error) { return len(p.entries), nil }
func (p *plainVectors) Close() error        { return nil }

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// renderJSON returns v as a client receives it.
func renderJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
