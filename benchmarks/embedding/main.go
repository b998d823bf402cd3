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
	"flag"
	"fmt"
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
	flag.Parse()
	if err := measure(*model, *file, *threads, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func measure(model, file string, threads, rounds int) error {
	texts, err := benchmarks.ReadTexts(file)
	if err != nil {
		return err
	}
	e, err := bert.Open(model, &bert.Options{Threads: threads})
	if err != nil {
		return err
	}
	defer e.Close()
	r, err := benchmarks.Embed(context.Background(), e, texts, rounds)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
