package benchmarks

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// SampleQueries returns n different queries: sequences of three to eight words in lines of
// the Markdown files below dir, chosen at random with seed.
func SampleQueries(dir string, n int, seed uint64) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != dir:
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(path, ".md"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]bool{}
	var queries []string
	for tries := 0; len(queries) < n; tries++ {
		if len(files) == 0 || tries > 100*n {
			return nil, fmt.Errorf("%d different queries in the .md files below %s, want %d", len(queries), dir, n)
		}
		text, err := os.ReadFile(files[r.IntN(len(files))])
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(text), "\n")
		words := strings.FieldsFunc(lines[r.IntN(len(lines))], func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
		if len(words) < 3 {
			continue
		}
		if want := 3 + r.IntN(6); len(words) > want {
			at := r.IntN(len(words) - want + 1)
			words = words[at : at+want]
		}
		q := strings.Join(words, " ")
		if q = q[:min(len(q), 150)]; !seen[q] {
			seen[q] = true
			queries = append(queries, strings.ToValidUTF8(q, ""))
		}
	}
	return queries, nil
}
