package indexer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"cairn/indexer"
	"cairn/internal/base/testutil"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/internal/store/kv"
	"cairn/internal/text/walk"
)

// Example indexes a folder of one file, and then runs again after a second file
// was added.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	write("login.md", "# Login\n\nSign in with a token.\n\n## Tokens\n\nA token lives for a day.\n")

	files, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()
	db, err := kv.Open(filepath.Join(dir, "cairn.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	documents, err := docs.Open(db, nil)
	if err != nil {
		log.Fatal(err)
	}
	keywords, err := keyword.Memory()
	if err != nil {
		log.Fatal(err)
	}
	defer keywords.Close()
	embedder := &testutil.HashEmbedder{} // a program uses models/minilm
	x := indexer.New(indexer.Stores{
		Files: files, Docs: documents, Keyword: keywords, Vectors: flat.Memory(testutil.HashDimension),
	}, embedder, nil)

	run := func() {
		report, err := x.Run(context.Background(), nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d files, %d sections; %d added, %d unchanged, %d texts embedded\n",
			report.Files, report.Sections, report.Added, report.Unchanged, report.Embedded)
	}
	run()
	write("rotation.md", "# Rotation\n\nRotate tokens every quarter.\n")
	run()
	// Output:
	// 1 files, 2 sections; 1 added, 0 unchanged, 2 texts embedded
	// 2 files, 3 sections; 1 added, 1 unchanged, 1 texts embedded
}
