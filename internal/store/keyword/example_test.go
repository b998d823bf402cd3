package keyword_test

import (
	"context"
	"fmt"
	"log"

	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
)

func Example() {
	ctx := context.Background()
	index, err := keyword.Memory()
	if err != nil {
		log.Fatal(err)
	}
	defer index.Close()
	entries := []store.KeywordEntry{
		{Chunk: "login.md#login.0", Path: "login.md", Title: "Login", Body: "Sign in with an access token."},
		{Chunk: "rotate.md#rotate.0", Path: "rotate.md", Title: "Rotation", Body: "Rotate tokens for access every quarter."},
	}
	if err := index.Update(ctx, entries, nil); err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"rotating a token", `"access token"`, "token -quarter"} {
		hits, err := index.Search(ctx, query.Parse(text), 10, store.Filter{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text, ":")
		for _, h := range hits {
			fmt.Print(" ", h.Chunk)
		}
		fmt.Println()
	}
	// Output:
	// rotating a token: rotate.md#rotate.0 login.md#login.0
	// "access token": login.md#login.0
	// token -quarter: login.md#login.0
}
