package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Skip(err)
	}
	for i := range 200 {
		name := fmt.Sprintf("%d.md", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if names, ok := f.Changed(); !ok || !slices.Equal(names, []string{name}) {
			t.Fatalf("Changed() = %q, %v, want %s", names, ok, name)
		}
	}
	if names, ok := f.Changed(); !ok || len(names) > 0 {
		t.Errorf("Changed() = %q, %v after no change", names, ok)
	}
	info, err := os.Stat(t.TempDir())
	if err != nil || f.Of(info) {
		t.Errorf("Of(another folder) = true, %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := f.Changed(); ok {
		t.Error("Changed() is ok after Close")
	}
}

func BenchmarkFolder(b *testing.B) {
	f, err := OpenFolder(b.TempDir())
	if err != nil {
		b.Skip(err)
	}
	defer f.Close()
	for b.Loop() {
		f.Changed()
	}
}
