package bert_test

import (
	"context"
	"fmt"
	"log"

	"cairn/models/bert"
	"cairn/models/minilm"
	"cairn/models/wordpiece"
)

// Find the text nearest to a query, with the weights that cairn ships.
func Example() {
	tok, err := wordpiece.New(minilm.TokenizerJSON())
	if err != nil {
		log.Fatal(err)
	}
	enc, err := bert.New(minilm.Weights(), tok, minilm.Description(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer enc.Close()
	ctx := context.Background()
	texts := []string{"The cat sleeps on the sofa.", "Interest rates rose again."}
	vectors, err := enc.EmbedDocuments(ctx, texts)
	if err != nil {
		log.Fatal(err)
	}
	query, err := enc.EmbedQuery(ctx, "a pet takes a nap")
	if err != nil {
		log.Fatal(err)
	}
	nearest, best := "", float32(-1)
	for i, v := range vectors {
		cosine := float32(0) // of unit vectors
		for j := range v {
			cosine += v[j] * query[j]
		}
		if cosine > best {
			nearest, best = texts[i], cosine
		}
	}
	fmt.Println(len(query), nearest)
	// Output: 384 The cat sleeps on the sofa.
}
