// Command embedding measures package bert on a model folder; compare.py
// measures ONNX Runtime in the same way.
//
//	go run ./benchmarks/embedding -model DIR -texts FILE [-threads N] [-rounds N]
//
// FILE holds a JSON string a line. CAIRN_KERNEL forces a kernel.
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

func main() { os.Exit(run()) }

func run() int {
	model := flag.String("model", "", "model folder")
	file := flag.String("texts", "", "file of texts, a JSON string a line")
	threads := flag.Int("threads", 0, "texts embedded at the same time; 0 is all cores")
	rounds := flag.Int("rounds", 1, "measured rounds; the fastest counts")
	turns := flag.Bool("turns", false, "embed the texts of each line of the input, a JSON array")
	flag.Parse()
	e, err := bert.Open(*model, &bert.Options{Threads: *threads})
	if err == nil {
		defer e.Close()
		if *turns {
			err = takeTurns(e)
		} else {
			err = measure(e, *file, *rounds)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
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

func measure(e *bert.Encoder, file string, rounds int) error {
	texts, err := benchmarks.ReadTexts(file)
	if err != nil {
		return err
	}
	r, err := benchmarks.Embed(context.Background(), e, texts, rounds)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
