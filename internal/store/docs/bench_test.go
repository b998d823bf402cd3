package docs

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"cairn/internal/store"
)

// corpus makes documents of the size of a large reference manual: some 13
// sections and 6 kB each.
func corpus(n int) []Put {
	rng := rand.New(rand.NewPCG(1, 2))
	puts := make([]Put, n)
	for i := range puts {
		specs := make([]string, 1+rng.IntN(24))
		for j := range specs {
			specs[j] = fmt.Sprintf("a-heading-of-some-words-%d:.", j)
		}
		puts[i] = page(fmt.Sprintf("reference/part-%d/page-%05d.md", i%50, i), specs...)
		for range 5 * len(specs) { // to some 6 kB of text
			puts[i].Text = append(puts[i].Text, puts[i].Text[:80]...)
		}
		for j := range puts[i].Document.Sections {
			s := &puts[i].Document.Sections[j]
			s.Parent = min(s.Parent, 0)
			s.Trail = trailBelow(puts[i].Document.Sections, s.Parent, s.Heading)
		}
	}
	return puts
}

func fill(b *testing.B, s *Store, puts []Put) (bytes int64) {
	for i := 0; i < len(puts); i += 256 {
		if err := s.Put(background, puts[i:min(i+256, len(puts))]); err != nil {
			b.Fatal(err)
		}
	}
	for i := range puts {
		bytes += int64(len(puts[i].Text))
	}
	return bytes
}

// BenchmarkPut stores 10,000 documents in batches of 256; MB/s are of text.
func BenchmarkPut(b *testing.B) {
	puts := corpus(10000)
	for b.Loop() {
		s := openStore(b, filepath.Join(b.TempDir(), "docs.db"), nil)
		b.SetBytes(fill(b, s, puts))
	}
}

// BenchmarkPutAgain replaces 256 documents of 10,000.
func BenchmarkPutAgain(b *testing.B) {
	puts := corpus(10000)
	s := openStore(b, filepath.Join(b.TempDir(), "docs.db"), nil)
	fill(b, s, puts)
	for b.Loop() {
		b.SetBytes(fill(b, s, puts[5000:5256]))
	}
}

// BenchmarkRead reads 50 documents with their texts, as a query does, with a
// cache too small to help and with one that holds them.
func BenchmarkRead(b *testing.B) {
	puts := corpus(2000)
	for name, size := range map[string]int{"cold": 1, "cached": 4096} {
		b.Run(name, func(b *testing.B) {
			s := openStore(b, filepath.Join(b.TempDir(), "docs.db"), &Options{Cache: size})
			fill(b, s, puts)
			for b.Loop() {
				if err := s.View(func(r *Reader) error {
					for i := range 50 {
						path := puts[i*37].Document.Path
						if d, err := r.Document(path); err != nil || len(d.Sections) == 0 || len(r.Text(path)) == 0 {
							return fmt.Errorf("reading %s: %v", path, err)
						}
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCounts(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "docs.db"), nil)
	fill(b, s, corpus(1000))
	for b.Loop() {
		if c, err := s.Counts(); err != nil || c.Files != 1000 {
			b.Fatal(c, err)
		}
	}
}

func BenchmarkFiles(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "docs.db"), nil)
	fill(b, s, corpus(10000))
	for b.Loop() {
		if files, err := s.Files(); err != nil || len(files) != 10000 {
			b.Fatal(len(files), err)
		}
	}
}

// BenchmarkDecode decodes one document of 12 sections.
func BenchmarkDecode(b *testing.B) {
	puts := corpus(1)
	d := puts[0].Document
	for len(d.Sections) != 12 {
		puts = corpus(len(puts) + 1)
		d = puts[len(puts)-1].Document
	}
	value, f := encodeDocument(&d), &File{Path: d.Path}
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		var got *store.Document
		got, err := decodeDocument(f, value)
		if err != nil || len(got.Sections) != 12 {
			b.Fatal(err)
		}
	}
}
