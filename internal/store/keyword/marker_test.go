package keyword

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/text/query"
)

// TestMarker: a Marker finds the terms that Analyze finds, in prose, names and other scripts.
func TestMarker(t *testing.T) {
	texts := []string{
		"Yes, yielding dying skies; the ugly early singly.", "readContext HTTP2Server v1.2.3 1.11 --dry-run .net C++ C#",
		"Ångström naïve e\u0301clair K\u212A \u0130stanbul œuvre ﬂow ½ Straße", "日本語の検索 한국어", "a b c 1 2 it's users' snake_case_name a-b-c-d",
	}
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages of the manual: %v, %v", pages, err)
	}
	for _, p := range pages {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for i, asked := range texts {
		words := strings.Fields(asked)
		for from := 0; from < len(words); from += 1 + len(words)/20 {
			q := query.Query{Words: strings.Join(words[from:min(from+5, len(words))], " ")}
			terms := map[string]bool{}
			for _, term := range QueryTerms(q) {
				terms[term] = true
			}
			m := NewMarker(q)
			for _, text := range []string{asked, texts[(i+1)%len(texts)]} {
				want := map[string]bool{}
				for _, term := range Analyze(text) {
					if terms[term] {
						want[term] = true
					}
				}
				if got := m.In(text); !maps.Equal(got, want) {
					t.Errorf("%q in %.60q: %v, want %v", q.Words, text, got, want)
				}
			}
		}
	}
}

func BenchmarkMarker(b *testing.B) {
	text, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		b.Fatal(err)
	}
	m := NewMarker(query.Query{Words: "which process owns the files of an index and how do clients reach it"})
	b.Run("Marker", func(b *testing.B) {
		for b.Loop() {
			m.In(string(text))
		}
	})
	b.Run("Analyze", func(b *testing.B) {
		for b.Loop() {
			Analyze(string(text))
		}
	})
}
