package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/indexer"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
)

func open(t *testing.T, files map[string]string) (string, *walk.Tree) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return dir, tree
}

const maxSize = 64 << 10

var options = &walk.Options{Extensions: []string{".md", ".txt"}, MaxSize: func(string) int64 { return maxSize }}

// findMasked finds lines without an index.
func findMasked(ctx context.Context, tree *walk.Tree, masks *secret.Masks, r Request) (*Answer, error) {
	c, err := Select(ctx, tree, options, nil, r)
	if err != nil {
		return nil, err
	}
	return listed(Find(ctx, tree, options, masks, nil, c, r))
}

func listed(a *Answer, err error) (*Answer, error) {
	if err == nil {
		a.List()
	}
	return a, err
}

func find(t *testing.T, tree *walk.Tree, r Request) *Answer {
	t.Helper()
	a, err := findMasked(context.Background(), tree, nil, r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return a
}

func TestFind(t *testing.T) {
	_, tree := open(t, map[string]string{
		"a.md":          "# Title\nERR_42 here\r\nnothing\nand ERR_42 again, ERR_42",
		"docs/b.txt":    "err_42\nERR_420\n",
		".gitignore":    "ignored.md\n",
		"ignored.md":    "ERR_42\n",
		".hidden.md":    "ERR_42\n",
		"code.go":       "// ERR_42\n",
		"binary.md":     "ERR_42\x00\n",
		"vendor/dep.md": "ERR_42\n",
	})
	for _, c := range []struct {
		r    Request
		want []string
	}{
		{Request{Pattern: "ERR_42"}, []string{"a.md:2:ERR_42 here", "a.md:4:and ERR_42 again, ERR_42", "docs/b.txt:2:ERR_420"}},
		{Request{Pattern: "ERR_42", PathPrefix: "docs/"}, []string{"docs/b.txt:2:ERR_420"}},
		{Request{Pattern: `(?i)err_42\b`, Regexp: true}, []string{"a.md:2:ERR_42 here", "a.md:4:and ERR_42 again, ERR_42", "docs/b.txt:1:err_42"}},
		{Request{Pattern: `^nothing$`, Regexp: true}, []string{"a.md:3:nothing"}},
		{Request{Pattern: `here$`, Regexp: true}, []string{"a.md:2:ERR_42 here"}},
		{Request{Pattern: "("}, []string{}},
	} {
		a := find(t, tree, c.r)
		if !slices.Equal(a.Lines, c.want) || a.Total != len(c.want) || a.Truncated || c.r.PathPrefix == "" && a.Searched != 2 {
			t.Errorf("%+v: %+v, want %q", c.r, a, c.want)
		}
	}
}

// TestFindMasks: a secret does not match, and a matching line does not contain it.
func TestFindMasks(t *testing.T) {
	_, tree := open(t, map[string]string{"a.md": "first\ntoken ghp_0123456789abcdefghijklmnopqrstuvwxyz\n"})
	masks, err := secret.New()
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string][]string{"0123456789": {}, "token": {"a.md:2:token ghp_***"}} {
		a, err := findMasked(t.Context(), tree, masks, Request{Pattern: pattern})
		if err != nil || !slices.Equal(a.Lines, want) {
			t.Errorf("%s: %+v, %v, want %q", pattern, a, err, want)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	_, tree := open(t, nil)
	for _, r := range []Request{{}, {Pattern: "a\nb"}, {Pattern: "(", Regexp: true}, {Pattern: `(a)\1`, Regexp: true}, {Pattern: strings.Repeat("x", maxPattern+1)}} {
		a, err := findMasked(t.Context(), tree, nil, r)
		if _, ok := errors.AsType[*PatternError](err); !ok {
			t.Errorf("%.20q: %+v, %v", r.Pattern, a, err)
		}
	}
}

// TestFindIsBounded: omitted lines are counted, and the answer reports them.
func TestFindIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("%02d.md", i)] = strings.Repeat("needle\n", 100) + strings.Repeat("n", 3000) + "needle\n"
	}
	_, tree := open(t, files)
	a := find(t, tree, Request{Pattern: "needle", MaxLines: 7})
	if len(a.Lines) != 7 || a.Total != 5050 || a.Matching != 50 || !a.Truncated || a.Reason != "7 of 5050 lines are shown" {
		t.Errorf("7 lines: %d lines, %+v", len(a.Lines), a.Reason)
	}
	a = find(t, tree, Request{Pattern: "needle", MaxBytes: 500})
	if n := len(strings.Join(a.Lines, "\n")); n > 500 || n < 400 || a.Total != 5050 || !a.Truncated {
		t.Errorf("500 bytes: %d, total %d", n, a.Total)
	}
	if a = find(t, tree, Request{Pattern: "nneedle"}); len(a.Lines) != 50 || len(a.Lines[0]) > maxLine+20 {
		t.Errorf("long lines: %d of %d bytes", len(a.Lines), len(a.Lines[0]))
	}
	a = find(t, tree, Request{Pattern: "needle", timeout: time.Nanosecond})
	if !a.Truncated || !strings.Contains(a.Reason, "ended after 1ns") {
		t.Errorf("no time: %+v", a)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := findMasked(ctx, tree, nil, Request{Pattern: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// patterns are what TestFindEverything looks for: strings, and expressions after "re:".
var patterns = []string{"alpha", "a.c", "(beta", "gamma delta", "é", "re:^#+ ", "re:alpha|beta", "re:[0-9]{2,}", `re:\bbeta\b`, "re:(?i)ALPHA", "re:a.*z$", `re:\(be`, "re:^$", "re:é+"}

// words are those of random text.
var words = []string{"alpha", "beta", "(beta", "gamma", "delta", "a.c", "abc", "é", "éé", "12", "345", "#", "##", "Alpha", "z", "\t"}

// random returns a folder of random text that contains matches of the patterns.
func random(t *testing.T) (string, *walk.Tree) {
	rng := rand.New(rand.NewPCG(1, 2))
	files := map[string]string{"sub/.gitignore": "*.txt\n", "sub/deep/skip.txt": "alpha\n"}
	for i := range 60 {
		var b strings.Builder
		for range rng.IntN(200) {
			for range rng.IntN(8) {
				b.WriteString(words[rng.IntN(len(words))] + strings.Repeat(" ", rng.IntN(2)))
			}
			b.WriteString("\n")
		}
		dir := []string{"", "docs/", "sub/deep/"}[rng.IntN(3)]
		files[fmt.Sprintf("%sf%02d.md", dir, i)] = strings.TrimSuffix(b.String(), strings.Repeat("\n", rng.IntN(2)))
	}
	return open(t, files)
}

// TestFindEverything compares with a plain scan of the same files.
func TestFindEverything(t *testing.T) {
	dir, tree := random(t)
	for _, p := range patterns {
		expr, isRegexp := strings.CutPrefix(p, "re:")
		r := Request{Pattern: expr, Regexp: isRegexp}
		if !isRegexp {
			expr = regexp.QuoteMeta(expr)
		}
		re := regexp.MustCompile(expr)
		want := []string{}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
				if len(text) > 0 && re.MatchString(line) {
					want = append(want, fmt.Sprintf("%s:%d:%s", filepath.ToSlash(rel), n+1, line))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		got := find(t, tree, r)
		sorted := slices.Sorted(slices.Values(got.Lines))
		if diff := cmp.Diff(want, sorted); diff != "" || got.Total != len(want) {
			t.Errorf("%s (-want +got):\n%s", p, diff)
		}
	}
}

// TestFindLikeRipgrep compares with ripgrep where it is installed. A word boundary is one
// of ASCII in RE2.
func TestFindLikeRipgrep(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not installed")
	}
	dir, tree := random(t)
	for _, p := range patterns {
		expr, isRegexp := strings.CutPrefix(p, "re:")
		args := []string{"--no-config", "--no-require-git", "--line-number", "--no-heading", "--color=never", "--sort=path"}
		if !isRegexp {
			args = append(args, "--fixed-strings")
		}
		cmd := exec.Command(rg, append(args, "-e", strings.ReplaceAll(expr, `\b`, `(?-u:\b)`))...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
			t.Fatal(p, err)
		}
		want := slices.Sorted(slices.Values(strings.Split(string(bytes.TrimSuffix(out, []byte("\n"))), "\n")))
		got := slices.Sorted(slices.Values(find(t, tree, Request{Pattern: expr, Regexp: isRegexp}).Lines))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-rg +scan):\n%s", p, diff)
		}
	}
}

// TestFindDecodes: lines of files that are not UTF-8 match as text, and the answer counts the
// files that are not searched.
func TestFindDecodes(t *testing.T) {
	files := map[string]string{
		"latin.txt": "first\nR\xe9sum\xe9 here\n", "wide.txt": "\xff\xfea\x00\n\x00\xe9\x00s\x00",
		"koi8.txt": "\xf0\xd2\xc9\n", "zero.md": "\x00", "large.md": strings.Repeat("x", maxSize+1), "a.txt.gz": "\x1f\x8b\x00", "a.gz": "\x1f\x8b",
	}
	_, tree := open(t, files)
	want := []string{"latin.txt:2:Résumé here", "wide.txt:2:és"}
	a := find(t, tree, Request{Pattern: "és"})
	if !slices.Equal(a.Lines, want) || a.Searched != 2 {
		t.Errorf("%+v, want %q", a, want)
	}
	if got, want := a.Text(), "lines: 2, files: 2; not searched: 1 converted, 2 not text, 1 too large\n"; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	x, d := openIndexer(t, tree, &indexer.Options{Walk: options})
	if _, err := x.RunKeywords(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	known := record(t, d, nil)
	for _, prefix := range []string{"", "koi8"} {
		r := Request{Pattern: "és", PathPrefix: prefix}
		c, err := SelectWatched(t.Context(), tree, options, known, nil, r)
		if err != nil {
			t.Fatal(err)
		}
		same(t, tree, d, "watching", r, c, find(t, tree, r))
	}
}

// TestFindCountsUnreadable: a scan counts the files that it cannot read, but not those that were
// removed meanwhile.
func TestFindCountsUnreadable(t *testing.T) {
	dir, tree := open(t, map[string]string{"a.md": "one", "b.md": "one", "c.md": "one"})
	r := Request{Pattern: "one"}
	c, err := Select(t.Context(), tree, options, nil, r)
	if err != nil {
		t.Fatal(err)
	}
	b, gone := filepath.Join(dir, "b.md"), filepath.Join(dir, "c.md")
	if err := errors.Join(os.Remove(b), os.Mkdir(b, 0o700), os.Remove(gone)); err != nil {
		t.Fatal(err)
	}
	c.addEntry(&walk.Entry{Path: "d", Dir: true, Reason: walk.Unreadable})
	a, err := Find(t.Context(), tree, options, nil, nil, c, r)
	if err != nil || a.Total != 1 || a.Searched != 1 || len(a.Unsearched) != 1 || a.Unsearched["unreadable"] != 2 {
		t.Errorf("%+v, %v, want one line, and two files that are unreadable", a, err)
	}
}
