package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/text/outline"
	"cairn/retriever"
)

// symbol is a declaration of a file without its comments.
type symbol struct {
	name        string // qualified: Type.Method
	start, decl int    // lines from 1: of its annotations, and of its declaration
	end         int
}

// question is a question whose answer is one symbol.
type question struct {
	pack, kind, path, symbol, text string
}

// codeRun searches packages of source code, whose symbols have lost their comments, for
// sentences of these comments and for paraphrases.
type codeRun struct {
	sources, work, mode string
	half                string // tuning, held-out or fresh
	agents              agents
	log                 func(format string, args ...any)
}

// TestCodeQuestions measures the ranking of source code:
//
//	benchmarks/code/fetch.sh SOURCES
//	CAIRN_CODE=SOURCES CAIRN_CODE_WORK=DIR CAIRN_CODE_HALF=tuning go test ./benchmarks/measure -run CodeQuestions -v
//
// The halves, tuning and held-out, consist of whole packages, chosen by the hash of their
// names. CAIRN_CODE_HALF=fresh takes the packages and questions of fresh.tsv, which nothing
// was tuned on.
func TestCodeQuestions(t *testing.T) {
	c := &codeRun{sources: os.Getenv("CAIRN_CODE"), work: os.Getenv("CAIRN_CODE_WORK"), mode: os.Getenv("CAIRN_CODE_MODE"), half: os.Getenv("CAIRN_CODE_HALF"), log: t.Logf}
	if c.sources == "" || c.work == "" {
		t.Skip("needs CAIRN_CODE, a folder with the sources of benchmarks/code/packages.tsv, and CAIRN_CODE_WORK, a folder for its files")
	}
	t.Setenv("CAIRN_HOME", filepath.Join(c.work, ".home"))
	file := "../code/questions.tsv"
	if c.half == "fresh" {
		file = "../code/fresh.tsv"
	}
	if err := c.measure(file); err != nil {
		t.Fatal(err)
	}
}

// TestWithoutComments checks that the questions' words leave the sources.
func TestWithoutComments(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"a.go":   {"package a\n\n// F adds.\n// It is fast.\nfunc F() {\n\t// inside\n}\n", "package a\n\nfunc F() {\n\t// inside\n}\n"},
		"a.py":   {"class A:\n    \"\"\"Adds.\"\"\"\n    @b\n    def f(self):\n        \"\"\"Adds\n        more.\"\"\"\n        return 1\n", "class A:\n    \n    @b\n    def f(self):\n        \n        return 1\n"},
		"A.java": {"class A {\n  /**\n   * Adds.\n   */\n  @Override\n  int f() {\n    return 1;\n  }\n}\n", "class A {\n  @Override\n  int f() {\n    return 1;\n  }\n}\n"},
	} {
		if got := string(withoutComments(name, []byte(c.src))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// ranks counts, for the questions of one kind, where the file and the symbol were.
type ranks struct {
	questions, file1, file5, symbol1, symbol5 int
	ndcg                                      float64 // at 10, of the files without repetitions
}

func (r *ranks) add(file, symbol int) {
	count := func(n *int, rank, most int) {
		if rank > 0 && rank <= most {
			*n++
		}
	}
	r.questions++
	count(&r.file1, file, 1)
	count(&r.file5, file, 5)
	count(&r.symbol1, symbol, 1)
	count(&r.symbol5, symbol, 5)
	if file > 0 && file <= 10 {
		r.ndcg += 1 / math.Log2(float64(file+1))
	}
}

func (c *codeRun) measure(file string) error {
	questions, err := readQuestions(file)
	if err != nil {
		return err
	}
	total := map[string]*ranks{}
	for pack, qs := range questions {
		if c.half != "fresh" && heldOut(pack) != (c.half == "held-out") {
			continue
		}
		if err := c.ask(pack, qs, total); err != nil {
			return fmt.Errorf("%s: %w", pack, err)
		}
	}
	c.log("%-12s %9s %7s %7s %8s %9s %9s", "kind", "questions", "file@1", "file@5", "nDCG@10", "symbol@1", "symbol@5")
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		r := total[kind]
		n := float64(r.questions)
		c.log("%-12s %9d %7.3f %7.3f %8.3f %9.3f %9.3f", kind, r.questions, float64(r.file1)/n, float64(r.file5)/n, r.ndcg/n, float64(r.symbol1)/n, float64(r.symbol5)/n)
	}
	c.log("%s", c.agents.report())
	return nil
}

// ask indexes a package without its comments and searches it for its questions.
func (c *codeRun) ask(pack string, qs []question, total map[string]*ranks) error {
	dir := filepath.Join(c.work, pack)
	symbols, err := strip(filepath.Join(c.sources, pack), dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	folder, err := cairn.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer folder.Close()
	if _, err := folder.Index(ctx, nil); err != nil {
		return err
	}
	for _, q := range qs {
		at := slices.IndexFunc(symbols[q.path], func(s symbol) bool { return s.name == q.symbol })
		if at < 0 {
			return fmt.Errorf("%s has no symbol %s", q.path, q.symbol)
		}
		gold := symbols[q.path][at]
		if err := c.agents.ask(ctx, folder, dir, q, gold); err != nil {
			return err
		}
		answer, err := folder.Search(ctx, cairn.Query{Text: q.text, Mode: retriever.Mode(c.mode), Limit: 40})
		if err != nil {
			return err
		}
		fileRank, symbolRank := 0, 0
		var files []string
		for i, r := range answer.Results {
			if !slices.Contains(files, r.Path) {
				files = append(files, r.Path)
			}
			if r.Path != q.path {
				continue
			}
			fileRank = cmp.Or(fileRank, slices.Index(files, r.Path)+1)
			if gold.start <= r.LineRange.Start && r.LineRange.Start <= gold.decl {
				symbolRank = cmp.Or(symbolRank, 1+i)
			}
		}
		for _, kind := range []string{q.kind, "all"} {
			if total[kind] == nil {
				total[kind] = &ranks{}
			}
			total[kind].add(fileRank, symbolRank)
		}
		c.log("%d\t%d\t%s\t%s\t%s\t%s", fileRank, symbolRank, pack, q.path, q.symbol, q.text)
	}
	return nil
}

// heldOut reports whether a package belongs to the half that is looked at once.
func heldOut(pack string) bool { return sha256.Sum256([]byte(pack))[0]%2 == 1 }

func readQuestions(file string) (map[string][]question, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	questions := map[string][]question{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		v := strings.Split(lines.Text(), "\t")
		if len(v) != 5 {
			return nil, fmt.Errorf("%s: want five columns: %q", file, lines.Text())
		}
		questions[v[0]] = append(questions[v[0]], question{v[0], v[1], v[2], v[3], v[4]})
	}
	return questions, lines.Err()
}

// strip copies the source files below from to the folder to, without the comments of their
// symbols, and returns the symbols of each copy.
func strip(from, to string) (map[string][]symbol, error) {
	symbols := map[string][]symbol{}
	err := fs.WalkDir(os.DirFS(from), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !outline.IsSource(name) {
			return err
		}
		src, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		src = withoutComments(name, bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")))
		symbols[name] = symbolsOf(name, src)
		path := filepath.Join(to, name)
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, src) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, src, 0o644)
	})
	return symbols, err
}

func symbolsOf(name string, src []byte) (symbols []symbol) {
	outlined, _ := outline.Outline(name, src)
	line := func(at int) int { return 1 + bytes.Count(src[:at], []byte("\n")) }
	for _, s := range outlined {
		full := s.Name
		if s.Scope != "" {
			full = s.Scope + "." + full
		}
		for p := s.Parent; p >= 0; p = outlined[p].Parent {
			full = outlined[p].Name + "." + full
		}
		symbols = append(symbols, symbol{full, line(s.Start), line(s.Decl), line(s.End)})
	}
	return symbols
}

// withoutComments returns a source file without the comments above its symbols and without
// Python's docstrings. It keeps annotations.
func withoutComments(name string, src []byte) []byte {
	outlined, _ := outline.Outline(name, src)
	var out []byte
	at := 0
	drop := func(from, to int) {
		if from >= at {
			out = append(out, src[at:from]...)
			at = to
		}
	}
	for _, s := range outlined {
		inside := false // a block comment
		for from := s.Start; from < s.Decl; {
			to := min(from+1+len(firstLine(src[from:])), s.Decl)
			line := strings.TrimSpace(string(src[from:to]))
			block := strings.HasPrefix(line, "/*")
			if inside || block || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "# ") || line == "#" {
				drop(from, to)
			}
			inside = (inside || block) && !strings.Contains(line, "*/")
			from = to
		}
		if from, to := docstring(name, src, s); from < to {
			drop(from, to)
		}
	}
	return append(out, src[at:]...)
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// docstring returns the range of a symbol's docstring in Python.
func docstring(name string, src []byte, s outline.Symbol) (from, to int) {
	body := string(src[s.Decl:s.End])
	i := strings.Index(body, `"""`)
	if filepath.Ext(name) != ".py" || i < 0 {
		return 0, 0
	}
	head := strings.TrimRight(body[:i], " \t\nrR")
	end := strings.Index(body[i+3:], `"""`)
	if !strings.HasSuffix(head, ":") || strings.Contains(head, "\n\n") || strings.Count(head, "(") != strings.Count(head, ")") || end < 0 {
		return 0, 0
	}
	return s.Decl + i, s.Decl + i + end + 6
}
