package retriever_test

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
	"cairn/retriever"
)

// openExample indexes two files and returns a retriever over them.
func openExample(dir string) (*retriever.Retriever, error) {
	for name, text := range map[string]string{
		"login.md":    "# Login\n\nSign in with an access token.\n",
		"rotation.md": "# Rotation\n\nRotate tokens every quarter.\n\n## Emergency\n\nRevoke a stolen token at once.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	files, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		return nil, err
	}
	db, err := kv.Open(filepath.Join(dir, "cairn.db"), nil)
	if err != nil {
		return nil, err
	}
	documents, err := docs.Open(db, nil)
	if err != nil {
		return nil, err
	}
	keywords, err := keyword.Memory()
	if err != nil {
		return nil, err
	}
	vectors := flat.Memory(testutil.HashDimension)
	embedder := &testutil.HashEmbedder{} // a program uses models/minilm
	x := indexer.New(indexer.Stores{Files: files, Docs: documents, Keyword: keywords, Vectors: vectors}, embedder, nil)
	if _, err := x.Run(context.Background(), nil); err != nil {
		return nil, err
	}
	return retriever.New(retriever.Sources{
		Documents: documents, Keyword: keywords, Vectors: vectors, Embedder: embedder, Files: files,
	}, nil)
}

// Example searches and reads back the section that was found.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r, err := openExample(dir)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := r.Search(ctx, retriever.Query{Text: "stolen token", Mode: retriever.Keyword})
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range answer.Results {
		fmt.Printf("%s#%s: %s\n", result.Path, result.Anchor, result.Snippet)
	}
	best := answer.Results[0]
	reading, err := r.Read(ctx, retriever.ReadRequest{Path: best.Path + "#" + best.Anchor})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reading.Content)
	// Output:
	// rotation.md#emergency: Revoke a stolen token at once.
	// login.md#login: Sign in with an access token.
	// ## Emergency
	//
	// Revoke a stolen token at once.
}
