package toolsearch

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/store/keyword"
	"cairn/internal/toolbox/catalog"
)

// BenchmarkSearch searches the catalogues of the folder named by CAIRN_DATA with
// an intent of three parts. The vectors are a stand-in's, so that what is
// measured is the search without the model.
func BenchmarkSearch(b *testing.B) {
	dir := os.Getenv("CAIRN_DATA")
	if dir == "" {
		b.Skip("CAIRN_DATA names no folder of evaluation data")
	}
	files, err := filepath.Glob(filepath.Join(dir, "catalogues", "*.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	var tools []catalog.Tool
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		batch, err := catalog.Read(b.Context(), f, filepath.Base(file))
		f.Close()
		if err != nil {
			b.Fatal(err)
		}
		tools = append(tools, batch.Tools...)
	}
	k, err := keyword.Memory()
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	x := New(k, Options{Embedder: &testutil.HashEmbedder{}})
	if err := x.Sync(context.Background(), tools, nil); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d tools", x.Len())
	for b.Loop() {
		if _, err := x.Search(context.Background(), Query{Text: "Find all open issues of the repository, then read the config file of the project and send a summary to the team"}); err != nil {
			b.Fatal(err)
		}
	}
}
