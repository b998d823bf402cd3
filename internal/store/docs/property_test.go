package docs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cairn/internal/store"
	"cairn/internal/store/kv"
)

// model is the slow, obvious version of a Store.
type model struct {
	docs  map[string]Put
	marks [2]map[string]modelMark
	seq   uint64
}

type modelMark struct {
	seq   uint64
	stale map[string]bool
}

func newModel() *model {
	return &model{docs: map[string]Put{}, marks: [2]map[string]modelMark{{}, {}}, seq: 1} // Open takes the first number
}

func (m *model) clone() *model {
	c := &model{docs: maps.Clone(m.docs), seq: m.seq}
	for k := range m.marks {
		c.marks[k] = maps.Clone(m.marks[k])
	}
	return c
}

// change replaces (or with nil removes) a document.
func (m *model) change(path string, p *Put) {
	before, had := m.docs[path]
	if p == nil && !had {
		return
	}
	for k := range m.marks {
		stale := maps.Clone(m.marks[k][path].stale)
		if stale == nil {
			stale = map[string]bool{}
		}
		for _, id := range before.Document.ChunkIDs() {
			stale[id] = true
		}
		if p != nil {
			for _, id := range p.Document.ChunkIDs() {
				delete(stale, id)
			}
		}
		m.marks[k][path] = modelMark{seq: m.seq, stale: stale}
	}
	if p == nil {
		delete(m.docs, path)
	} else {
		m.docs[path] = *p
	}
}

func (m *model) pending(k Kind) (docs []PendingDoc, c PendingCounts) {
	for _, path := range slices.Sorted(maps.Keys(m.marks[k])) {
		p, there := m.docs[path]
		d := PendingDoc{Mark: Mark{Path: path, Seq: m.marks[k][path].seq}, Deleted: !there}
		d.Sections, d.Chunks = len(p.Document.Sections), len(p.Document.ChunkIDs())
		d.Stale = slices.Sorted(maps.Keys(m.marks[k][path].stale))
		docs = append(docs, d)
		c.Files++
		c.Sections += d.Sections
		c.Chunks += d.Chunks
	}
	return docs, c
}

// compare holds everything a reader can see against the model.
func (m *model) compare(s *Store) error {
	return s.View(func(r *Reader) error {
		var want Counts
		docs := map[string]*store.Document{}
		for path, p := range m.docs {
			d, err := r.Document(path)
			if err != nil {
				return err
			}
			docs[path] = d
			if diff := cmp.Diff(&p.Document, d); diff != "" {
				return fmt.Errorf("document %s (-want +got):\n%s", path, diff)
			}
			if got := r.Text(path); string(got) != string(p.Text) {
				return fmt.Errorf("text %s: %q, want %q", path, got, p.Text)
			}
			want.Files++
			want.Sections += len(p.Document.Sections)
			want.Chunks += len(p.Document.ChunkIDs())
			want.Bytes += int64(len(p.Text))
			if p.Document.HasTasks() {
				want.Tasks++
			}
		}
		var paths []string
		if err := r.Files("", func(f File) bool {
			paths = append(paths, f.Path)
			return docs[f.Path] != nil && f.HexHash() == docs[f.Path].Hash
		}); err != nil {
			return err
		}
		if sorted := slices.Sorted(maps.Keys(m.docs)); !slices.Equal(paths, sorted) {
			return fmt.Errorf("files %v, want %v", paths, sorted)
		}
		for _, k := range []Kind{Keyword, Vectors} {
			var pending []PendingDoc
			pending, *want.Pending(k) = m.pending(k)
			got, err := r.Pending(k, "", 0)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(pending, got, cmpopts.EquateEmpty()); diff != "" {
				return fmt.Errorf("pending %v (-want +got):\n%s", k, diff)
			}
		}
		got, err := r.Counts()
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("counts (-want +got):\n%s", diff)
		}
		return err
	})
}

// TestAgainstModel does random operations and compares after each one. Now and
// then it crashes: it goes on with a copy of the file taken between two
// operations, as a killed process leaves it.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 3))
		path := filepath.Join(t.TempDir(), "docs.db")
		db, err := kv.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(db, &Options{Cache: 3})
		if err != nil {
			t.Fatal(err)
		}
		m := newModel()
		for step := range 120 {
			name, err := m.random(rng, s)
			if err == nil {
				err = m.compare(s)
			}
			if err != nil {
				t.Fatalf("seed %d, step %d, %s: %v", seed, step, name, err)
			}
			if rng.IntN(20) == 0 {
				crashed := fmt.Sprintf("%s.%d", path, step)
				copyFile(t, path, crashed)
				after := m.clone()
				if _, err := m.random(rng, s); err != nil { // lost in the crash
					t.Fatal(err)
				}
				db.Close()
				if db, err = kv.Open(crashed, nil); err != nil {
					t.Fatal(err)
				}
				if s, err = Open(db, &Options{Cache: 3}); err != nil {
					t.Fatal(err)
				}
				path, m = crashed, after
				if err := m.compare(s); err != nil {
					t.Fatalf("seed %d, step %d, after a crash: %v", seed, step, err)
				}
			}
		}
		db.Close()
	}
}

// random does one operation on both.
func (m *model) random(rng *rand.Rand, s *Store) (name string, err error) {
	paths := make([]string, 1+rng.IntN(4))
	for i := range paths {
		paths[i] = fmt.Sprintf("dir/%d.md", rng.IntN(8))
	}
	m.seq++ // every operation below takes a number
	switch op := rng.IntN(8); op {
	case 0, 1, 2:
		puts := make([]Put, len(paths))
		for i, path := range paths {
			var sections []string
			for n := range rng.IntN(4) {
				sections = append(sections, fmt.Sprintf("s%d:%.*s", n+rng.IntN(2)*10, rng.IntN(4), "..."))
			}
			puts[i] = page(path, sections...)
			puts[i].Document.ModTime = rng.Int64N(3)
		}
		for i := range puts {
			m.change(puts[i].Document.Path, &puts[i])
		}
		return "put", s.Put(background, puts)
	case 3, 4:
		for _, path := range paths {
			m.change(path, nil)
		}
		return "delete", s.Delete(background, paths)
	case 5:
		var touched []File
		for _, path := range paths {
			to := File{Path: path, Size: rng.Int64N(9), ModTime: rng.Int64N(9)}
			touched = append(touched, to)
			if p, ok := m.docs[path]; ok {
				p.Document.Size, p.Document.ModTime = to.Size, to.ModTime
				m.docs[path] = p
			}
		}
		return "touch", s.Touch(background, touched)
	case 6:
		k := Kind(rng.IntN(2))
		var marks []Mark
		for i, path := range paths {
			marks = append(marks, Mark{Path: path, Seq: m.marks[k][path].seq - uint64(i&1)})
			if i&1 == 0 {
				delete(m.marks[k], path)
			}
		}
		return "done", s.Done(background, k, marks, 0)
	default:
		k := Kind(rng.IntN(2))
		for path := range m.docs {
			m.marks[k][path] = modelMark{seq: m.seq, stale: m.marks[k][path].stale}
		}
		return "renew", s.Renew(background, k)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
