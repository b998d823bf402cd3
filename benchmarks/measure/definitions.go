package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"cairn/benchmarks"
	"cairn/internal/text/outline"
)

// place is where a symbol is defined.
type place struct {
	path string
	line int
}

// definitions searches a running cairn serve for the names of a repository's symbols, and
// prints for how many of them a definition is the first hit and among the first five:
//
//	cairn serve --addr 127.0.0.1:7931 --auth off &
//	go run ./benchmarks/measure definitions -n 600 -mode keyword http://127.0.0.1:7931 FOLDER
//
// Names of one word in lower case are left out, since they are also words of English, and so
// are tests.
func definitions(flags *flag.FlagSet) func() error {
	n := flags.Int("n", 600, "names to ask for, chosen at random")
	mode := flags.String("mode", "keyword", "mode of the searches")
	qualified := flags.Bool("qualified", false, "ask for Type.Method and package.Name")
	return func() error { return measureDefinitions(flags.Arg(0), flags.Arg(1), *mode, *n, *qualified) }
}

func measureDefinitions(address, dir, mode string, n int, qualified bool) error {
	defined, err := symbols(dir, qualified)
	if err != nil {
		return err
	}
	var names []string
	for name := range defined {
		names = append(names, name)
	}
	slices.Sort(names)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:min(n, len(names))]
	o := benchmarks.LoadOptions{URL: address, Mode: mode, Limit: 5}
	first, five := 0, 0
	for _, name := range names {
		time.Sleep(60 * time.Millisecond) // the server takes 20 calls a second
		found, err := o.Search(context.Background(), http.DefaultClient, name)
		if err != nil {
			return fmt.Errorf("searching %q: %w", name, err)
		}
		at := slices.IndexFunc(found.Results, func(h benchmarks.FoundHit) bool {
			return slices.ContainsFunc(defined[name], func(p place) bool {
				return h.Path == p.path && h.Lines.Start <= p.line && p.line <= h.Lines.End
			})
		})
		if at == 0 {
			first++
		}
		if at >= 0 {
			five++
		}
	}
	fmt.Printf("%d names: first %.4f, first five %.4f\n", len(names), float64(first)/float64(len(names)), float64(five)/float64(len(names)))
	return nil
}

// symbols returns the places of the symbols of a folder by name.
func symbols(dir string, qualified bool) (map[string][]place, error) {
	defined := map[string][]place{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !outline.IsSource(name) || outline.IsTest(name) {
			return err
		}
		src, err := os.ReadFile(path.Join(dir, name))
		if err != nil || outline.Unwanted(src) != "" {
			return err
		}
		outlined, _ := outline.Outline(name, src)
		for _, s := range outlined {
			key := s.Name
			switch {
			case s.Local || s.Parent >= 0:
				continue
			case qualified && s.Scope != "":
				key = s.Scope + "." + key
			case qualified:
				key = path.Base(path.Dir(name)) + "." + key
			case len(key) < 2 || strings.ToLower(key) == key && !strings.Contains(key, "_"):
				continue
			}
			defined[key] = append(defined[key], place{name, 1 + strings.Count(string(src[:s.Decl]), "\n")})
		}
		return nil
	})
	return defined, err
}
