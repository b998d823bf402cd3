package benchmarks

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/kv"
	"cairn/internal/store/ngram"
	"cairn/internal/text/markdown"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
)

// grepOptions selects documents and source code.
var grepOptions = &walk.Options{Extensions: markdown.Extensions(), MaxSize: markdown.MaxSize, Code: walk.CodeOn}

// grepTree copies at most n text files below the sources to dir, the same number from each.
func grepTree(t *testing.T, dir string, sources []string, n int) {
	t.Helper()
	for i, source := range sources {
		tree, err := walk.Open(walk.Root{Dir: source})
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		if err := tree.Walk(t.Context(), grepOptions, func(e walk.Entry) error {
			if e.Reason == walk.None && !e.Dir {
				paths = append(paths, e.Path)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		for k := (n - 1) / (len(sources) - i); k > 0 && len(paths) > 0; paths = paths[1:] {
			content, _, err := tree.ReadFile(paths[0], 0)
			if err != nil || walk.Check(content) != walk.None || bytes.IndexByte(content, 0) >= 0 || bytes.HasPrefix(content, []byte("\ufeff")) {
				continue // ripgrep would not read it as text, or without its first character
			}
			to := filepath.Join(dir, strconv.Itoa(i), filepath.FromSlash(paths[0]))
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644)); err != nil {
				t.Fatal(err)
			}
			k, n = k-1, n-1
		}
		if err := tree.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// grepPatterns returns n strings and expressions from the files, the same for the same seed:
// words, identifiers, ends of lines such as messages, and expressions made of them.
func grepPatterns(t *testing.T, tree *walk.Tree, paths []string, seed uint64, n int) []scan.Request {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	kinds := []*regexp.Regexp{
		regexp.MustCompile(`\b[A-Za-z][a-z]{3,}\b`),
		regexp.MustCompile(`\b[A-Za-z]+(?:_[A-Za-z0-9]+|[a-z0-9][A-Z][A-Za-z0-9]*)+\b`),
		regexp.MustCompile(`"[A-Za-z][a-z]+ [^"\n]{8,60}"|[A-Z][a-z]+ [a-z]+ [ -~]{6,50}\.`),
	}
	found := make([]map[string]bool, len(kinds))
	for range 2000 {
		content, _, err := tree.ReadFile(paths[rng.IntN(len(paths))], 0)
		if err != nil {
			t.Fatal(err)
		}
		for k, re := range kinds {
			if found[k] == nil {
				found[k] = map[string]bool{}
			}
			for _, m := range re.FindAll(content[:min(len(content), 64<<10)], -1) {
				found[k][strings.Trim(string(m), `"`)] = true
			}
		}
	}
	texts := make([][]string, len(kinds))
	for k := range kinds {
		for text := range found[k] {
			texts[k] = append(texts[k], text)
		}
		slices.Sort(texts[k])
	}
	any := func(k int) string { return texts[k][rng.IntN(len(texts[k]))] }
	var patterns []scan.Request
	for len(patterns) < n {
		for k := range kinds {
			patterns = append(patterns, scan.Request{Pattern: any(k), IgnoreCase: rng.IntN(5) == 0})
		}
		a, b, name := any(0), any(0), any(1)
		half := len(name) / 2
		patterns = append(patterns, scan.Request{Regexp: true, Pattern: []string{
			a + ".*" + b, a + "|" + b, "(?i)" + name, "^[ \t]*" + name, name[:half] + "[A-Za-z0-9_]*" + name[half+1:],
			"[A-Za-z]+" + name, `(func|def|class|type) +` + name, name + `\(.*\)`, "(" + a + "|" + name + ")s?[ .]", "[" + a[:1] + "x]" + a[1:] + " [a-z]+",
		}[rng.IntN(10)]})
	}
	return patterns[:n]
}

// ripgrep returns the lines that rg prints for a pattern, and its time.
func ripgrep(t *testing.T, rg, dir string, r scan.Request) (lines []string, took time.Duration) {
	t.Helper()
	args := []string{"--no-config", "--no-ignore", "--hidden", "--line-number", "--no-heading", "--color=never"}
	if !r.Regexp {
		args = append(args, "--fixed-strings")
	}
	if r.IgnoreCase {
		args = append(args, "--ignore-case")
	}
	cmd := exec.Command(rg, append(args, "-e", r.Pattern, ".")...)
	cmd.Dir = dir
	begin := time.Now()
	out, err := cmd.Output()
	took = time.Since(begin)
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatal(r, err)
	}
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.TrimRight(strings.TrimPrefix(line, "./"), "\r\n"))
	}
	return lines, took
}

// TestGrep compares scans by the n-grams with ripgrep, or with scans of all files where it is
// not installed. With CAIRN_GREP, a directory to keep two trees in, it measures both with
// 1,000 patterns, or CAIRN_GREP_PATTERNS; CAIRN_GREP_FROM lists folders to copy files from,
// CAIRN_GREP_FILES selects one of the trees.
func TestGrep(t *testing.T) {
	base, sources, sizes, n := os.Getenv("CAIRN_GREP"), filepath.SplitList(os.Getenv("CAIRN_GREP_FROM")), []int{10_000, 100_000}, 1000
	if base == "" {
		base, sources, sizes, n = t.TempDir(), []string{".."}, []int{500}, 60
	}
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
		if err != nil {
			t.Fatal(name, err)
		}
		return n
	}
	n = number("CAIRN_GREP_PATTERNS", n)
	if only := number("CAIRN_GREP_FILES", 0); only > 0 {
		sizes = []int{only}
	}
	for _, size := range sizes {
		dir := filepath.Join(base, strconv.Itoa(size))
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			grepTree(t, dir, sources, size)
		}
		t.Run(strconv.Itoa(size), func(t *testing.T) { compareGrep(t, dir, n) })
	}
}

// grepDocuments returns documents without sections that have the masked texts and filters of
// files, the bytes of both, and the files that have secrets.
func grepDocuments(t *testing.T, tree *walk.Tree, paths []string, masks *secret.Masks) (d *docs.Store, bytes, grams int, masked map[string]bool) {
	t.Helper()
	db, err := kv.Open(filepath.Join(t.TempDir(), "documents.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if d, err = docs.Open(db, nil); err != nil {
		t.Fatal(err)
	}
	var maker ngram.Maker
	masked = map[string]bool{}
	for batch := range slices.Chunk(paths, 1000) {
		var puts []docs.Put
		for _, path := range batch {
			content, info, err := tree.ReadFile(path, 0)
			if err != nil {
				t.Fatal(err)
			}
			text, secrets := masks.Mask(content)
			filter := maker.Filter(text, secrets > 0)
			if secrets > 0 {
				masked[path] = true
			}
			bytes, grams = bytes+len(content), grams+len(filter)
			doc := store.Document{Path: path, Hash: fmt.Sprintf("%x", sha256.Sum256(content)), Size: info.Size(), ModTime: info.ModTime().UnixNano()}
			puts = append(puts, docs.Put{Document: doc, Text: text, ChangeTime: walk.ChangeTime(info), Grams: filter})
		}
		if err := d.Put(t.Context(), puts); err != nil {
			t.Fatal(err)
		}
	}
	return d, bytes, grams, masked
}

func compareGrep(t *testing.T, dir string, n int) {
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	rg, rgErr := exec.LookPath("rg")
	all, err := scan.Select(t.Context(), tree, grepOptions, nil, scan.Request{Pattern: "x"})
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, len(all.Files))
	for i, f := range all.Files {
		paths[i] = f.Path
	}
	masks, err := secret.New()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	d, bytes, grams, masked := grepDocuments(t, tree, paths, masks)
	recorded := time.Since(begin)
	var known *scan.Known
	begin = time.Now()
	if err := d.View(func(r *docs.Reader) (err error) {
		known, err = scan.Record(r, nil, true)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	read := time.Since(begin)
	var times, chosen, rgTimes []time.Duration
	total, candidates, matching := 0, 0, 0
	for _, r := range grepPatterns(t, tree, paths, 1, n) {
		begin := time.Now()
		c, err := scan.SelectWatched(t.Context(), tree, grepOptions, known, nil, r)
		if err != nil {
			t.Fatal(r, err)
		}
		chosen = append(chosen, time.Since(begin))
		a, err := scan.Find(t.Context(), tree, grepOptions, masks, d, c, r)
		if err != nil {
			t.Fatal(r, err)
		}
		a.List()
		times = append(times, time.Since(begin))
		total, candidates, matching = total+a.Total, candidates+len(c.Files), matching+a.Matching
		var got, want []string
		for _, l := range a.Found {
			got = append(got, fmt.Sprintf("%s:%d:%s", l.Path, l.Number, l.Text))
		}
		if rgErr == nil {
			var took time.Duration
			want, took = ripgrep(t, rg, dir, r)
			rgTimes = append(rgTimes, took)
		} else {
			full, err := scan.Find(t.Context(), tree, grepOptions, masks, nil, all, r)
			if err != nil {
				t.Fatal(r, err)
			}
			for _, l := range full.Found {
				want = append(want, fmt.Sprintf("%s:%d:%s", l.Path, l.Number, l.Text))
			}
		}
		differs := func(line string) bool { // ripgrep masks nothing
			path, _, _ := strings.Cut(line, ":")
			return masked[path]
		}
		got, want = slices.DeleteFunc(got, differs), slices.DeleteFunc(want, differs)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %d lines, want %d", r, len(got), len(want))
		}
		if a.Searched != len(all.Files) {
			t.Errorf("%+v: %d files, want %d", r, a.Searched, len(all.Files))
		}
	}
	t.Logf("%d files, %d of them with secrets and not compared, %d bytes, filters %.1f %% of them, recorded in %v, read in %v", len(all.Files), len(masked), bytes, 100*float64(grams)/float64(bytes), recorded, read)
	t.Logf("%d patterns, %d lines, %d files searched, %d matching: %s; candidates %s; rg %s", n, total, candidates, matching, grepTimes(times), grepTimes(chosen), grepTimes(rgTimes))
	if rgErr != nil {
		t.Log("ripgrep is not installed: compared with scans of all files")
	}
	if float64(grams) > .25*float64(bytes) {
		t.Errorf("the filters take %d bytes of %d", grams, bytes)
	}
}

// grepTimes formats the median and some percentiles.
func grepTimes(times []time.Duration) string {
	if len(times) == 0 {
		return "not measured"
	}
	times = slices.SortedFunc(slices.Values(times), cmp.Compare[time.Duration])
	at := func(p float64) time.Duration { return times[int(p*float64(len(times)-1))].Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p95 %v, p99 %v, most %v", at(.5), at(.95), at(.99), at(1))
}
