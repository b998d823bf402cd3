package index

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/kv"
)

// TestKindsFollowDocuments: the count of documents by format is kept until a document
// enters or leaves.
func TestKindsFollowDocuments(t *testing.T) {
	d := newDocs(t)
	var k ofDocuments[counted]
	var err error
	for _, c := range []struct {
		put, remove string
		want        map[string]int
	}{
		{put: "a.md"}, {put: "b.html", want: map[string]int{"Markdown": 1, "html": 1}}, {put: "c.md", want: map[string]int{"Markdown": 2, "html": 1}}, {remove: "b.html"},
	} {
		if c.put != "" {
			err = d.Put(t.Context(), []docs.Put{{Document: store.Document{Path: c.put, Hash: strings.Repeat("0", 64)}}})
		} else {
			err = d.Delete(t.Context(), []string{c.remove})
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := k.get(d, count); err != nil || !maps.Equal(got.kinds, c.want) {
				t.Errorf("after %q %q: %v, %v; want %v", c.put, c.remove, got, err, c.want)
			}
		}
	}
}

// TestLanguageOfDocuments: the built-in model knows English alone. References full of
// names and sources are English.
func TestLanguageOfDocuments(t *testing.T) {
	german := strings.Repeat("Der Schlüssel wird jede Woche erneuert, und die Dienste lesen ihn beim Start aus der Datei.\n", 6)
	english := strings.Repeat("The key is renewed every week, and the services read it from the file when they start.\n", 6)
	for name, c := range map[string]struct {
		texts map[string]string
		want  int
	}{
		"German":                {map[string]string{"a.md": german}, 100},
		"Japanese":              {map[string]string{"a.md": "鍵は毎週更新され、サービスは起動時にファイルから読み取ります。\n"}, 100},
		"Russian":               {map[string]string{"a.md": "Ключ обновляется каждую неделю.\n"}, 100},
		"English":               {map[string]string{"a.md": english}, 0},
		"mostly names":          {map[string]string{"a.md": strings.Repeat("`fopen(path, mode)` opens a file\n`fclose(stream)` closes it\n", 10)}, 0},
		"a few words":           {map[string]string{"a.md": "Schlüssel erneuern\n"}, 0},
		"half and half":         {map[string]string{"a.md": german, "b.md": english + english}, 34},
		"sources are not prose": {map[string]string{"a.go": german}, 0},
		"none":                  {nil, 0},
	} {
		d := newDocs(t)
		for path, text := range c.texts {
			put := docs.Put{Document: store.Document{Path: path, Hash: strings.Repeat("0", 64)}, Text: []byte(text)}
			if err := d.Put(t.Context(), []docs.Put{put}); err != nil {
				t.Fatal(err)
			}
		}
		var f ofDocuments[counted]
		got, err := f.get(d, count)
		if err != nil || got.notEnglish < c.want-1 || got.notEnglish > c.want+1 {
			t.Errorf("%s: %d %%, %v; want %d", name, got.notEnglish, err, c.want)
		}
	}
}

func newDocs(t *testing.T) *docs.Store {
	t.Helper()
	db, err := kv.Open(filepath.Join(t.TempDir(), "documents.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	d, err := docs.Open(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestStatusComparesKernels opens an index with another kernel than that of the process
// that created it.
func TestStatusComparesKernels(t *testing.T) {
	var made Options
	x := open(t, func(o *Options) { o.Description.Kernel = "avx2"; made = *o })
	if _, err := x.Index(t.Context(), IndexRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	for kernel, want := range map[string]bool{"avx2": false, "neon": true, "": false} {
		made.Description.Kernel = kernel
		x := New(made)
		s, err := x.Status(t.Context(), StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Kernels != nil; got != want {
			t.Errorf("with the kernel %q the status has kernels %+v", kernel, s.Kernels)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
