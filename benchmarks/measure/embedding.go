package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"cairn/benchmarks"
	"cairn/models/bert"
)

// embedding measures package bert on a model folder; compare.py measures ONNX Runtime in the
// same way. The file of texts has a JSON string a line. CAIRN_KERNEL forces a kernel.
func embedding(flags *flag.FlagSet) func() error {
	model := flags.String("model", "", "model folder")
	file := flags.String("texts", "", "file of texts, a JSON string a line")
	threads := flags.Int("threads", 0, "texts embedded at the same time; 0 is all cores")
	rounds := flags.Int("rounds", 1, "measured rounds; the fastest counts")
	turns := flags.Bool("turns", false, "embed the texts of each line of the input, a JSON array")
	return func() error {
		e, err := bert.Open(*model, &bert.Options{Threads: *threads})
		if err != nil {
			return err
		}
		defer e.Close()
		if *turns {
			return takeTurns(e)
		}
		texts, err := benchmarks.ReadTexts(*file)
		if err != nil {
			return err
		}
		r, err := benchmarks.Embed(context.Background(), e, texts, *rounds)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
}

// takeTurns embeds the texts of each line of the input and answers with their number.
func takeTurns(e *bert.Encoder) error {
	for in := json.NewDecoder(os.Stdin); ; {
		var texts []string
		if err := in.Decode(&texts); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := e.EmbedDocuments(context.Background(), texts); err != nil {
			return err
		}
		fmt.Println(len(texts))
	}
}
