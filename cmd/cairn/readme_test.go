package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestReadmeShowsWhatIsPrinted runs the first command of the README and
// compares its first result with the one shown there. Scores differ in the third
// decimal from kernel to kernel.
func TestReadmeShowsWhatIsPrinted(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("go run ./cmd/cairn search -C examples/handbook \"([^\"]+)\"\n```\n\n```\n((?s:.*?))```\n").FindSubmatch(readme)
	if m == nil {
		t.Fatal("the README shows no search of examples/handbook with its output")
	}
	query, shown := string(m[1]), string(m[2])
	root := t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	if code := run([]string{"search", "-C", root, query}, strings.NewReader(""), &out, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	printed, _, _ := strings.Cut(out.String(), "\n 2. ")
	shownScore, shown := cutScore(t, strings.TrimSuffix(shown, "\n"))
	score, printed := cutScore(t, printed)
	if printed != shown || score < shownScore-.01 || score > shownScore+.01 {
		t.Errorf("cairn search %q prints, with score %.3f,\n%s\nthe README shows, with score %.3f,\n%s", query, score, printed, shownScore, shown)
	}
}

// cutScore removes the score from the end of the first line.
func cutScore(t *testing.T, result string) (float64, string) {
	t.Helper()
	first, rest, _ := strings.Cut(result, "\n")
	at := strings.LastIndexByte(first, ' ')
	score, err := strconv.ParseFloat(first[at+1:], 64)
	if err != nil {
		t.Fatalf("%q ends in no score", first)
	}
	return score, first[:at] + "\n" + rest
}
