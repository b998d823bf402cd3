// Command measure measures cairn as its clients see it:
//
//	go run ./benchmarks/measure stdio -cairn ./cairn -C FOLDER [-queries 1000] [-mode hybrid]
//	go run ./benchmarks/measure embedding -model DIR -texts FILE [-threads N] [-rounds N]
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// programs maps a name to a function that defines its flags and returns what to run after
// they are parsed.
var programs = map[string]func(*flag.FlagSet) func() error{
	"stdio": stdio, "embedding": embedding,
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: measure {%s} [flags]\n", strings.Join(slices.Sorted(maps.Keys(programs)), ","))
		os.Exit(2)
	}
	name := os.Args[1]
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	run := programs[name](flags)
	_ = flags.Parse(os.Args[2:]) // it exits after an error
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
