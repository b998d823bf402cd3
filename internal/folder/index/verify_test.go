package index

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cairn/internal/base/testutil"
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
	testutil.Await(t, func() string {
		if _, err := os.Stat(filepath.Join(x.options.Dir, vectorFolder+damagedSuffix)); err != nil {
			return "the damage is not found"
		}
		return ""
	})
	testutil.Await(t, func() string {
		s, err := x.Status(t.Context(), StatusRequest{})
		if err != nil || s.State != "ready" || len(s.Degraded) > 0 {
			return fmt.Sprintf("not rebuilt: %+v, %v", s, err)
		}
		return ""
	})
}
