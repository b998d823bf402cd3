package index

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestVerifiesRegularly damages the file of the vectors under an open index, which has
// its codes in memory: no search meets the damage, the regular check does.
func TestVerifiesRegularly(t *testing.T) {
	x := open(t, func(o *Options) { o.Background, o.VerifyEvery = true, 20*time.Millisecond })
	if _, err := x.Index(t.Context(), IndexRequest{Join: true}, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(x.options.Dir, vectorFolder, "vectors.cairn")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(x.options.Dir, vectorFolder+damagedSuffix)); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the damage is not found")
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s, err := x.Status(t.Context(), StatusRequest{})
		if err == nil && s.State == "ready" && len(s.Degraded) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not rebuilt: %+v, %v", s, err)
		}
	}
}
