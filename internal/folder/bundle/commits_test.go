package bundle_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/folder/bundle"
	"cairn/internal/folder/config"
	"cairn/internal/folder/encoder"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
	"cairn/retriever"
)

// TestCommits asks for the context of commits of public repositories, by their subject, in
// the folder as it was before each; benchmarks/history.md has its figures. CAIRN_HISTORIES
// is a pattern of git directories whose folders are named OWNER+NAME. Half of them, by hash
// of the name, were used for tuning. Commits with more than a subject are also asked by their
// whole message.
func TestCommits(t *testing.T) {
	dirs, err := filepath.Glob(os.Getenv("CAIRN_HISTORIES"))
	if err != nil || len(dirs) == 0 {
		t.Skip("CAIRN_HISTORIES names no git directories")
	}
	part := cmp.Or(os.Getenv("CAIRN_HISTORIES_PART"), "tuning")
	all := map[string]*score{}
	fmt.Printf("| repository | asked | %s |\n", strings.Join(rivalNames(), " | "))
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		if tuning := sha256.Sum256([]byte(name))[0]%2 == 0; tuning != (part == "tuning") {
			continue
		}
		c := clone(t, dir)
		one := map[string]*score{}
		asked := 0
		for _, commit := range c.commits() {
			gold := c.checkout(commit)
			if len(gold) == 0 {
				continue
			}
			asked++
			for name, ask := range rivals {
				for suffix, question := range map[string]string{"": commit.subject, bodySuffix: c.message(commit)} {
					if question == "" {
						continue
					}
					start := time.Now()
					a := ask(c, question)
					took := time.Since(start)
					for _, s := range []map[string]*score{one, all} {
						if s[name+suffix] == nil {
							s[name+suffix] = &score{}
						}
						s[name+suffix].add(a, gold, took)
					}
				}
			}
		}
		c.close()
		fmt.Printf("| %s | %d |", strings.ReplaceAll(name, "+", "/"), asked)
		for _, name := range rivalNames() {
			fmt.Printf(" %s |", one[name])
		}
		fmt.Println()
	}
	for _, name := range rivalNames() {
		fmt.Printf("%-8s %s of %d, p50 %v, %.0f tokens\n", name, all[name], all[name].n, all[name].median(), all[name].tokens/float64(all[name].n))
	}
}

// answer is what a rival shows.
type answer struct {
	files  []string // the best first
	lines  map[string]map[int]bool
	tokens int
}

func (a *answer) show(path string, from, to int) {
	if !slices.Contains(a.files, path) {
		a.files = append(a.files, path)
	}
	if a.lines[path] == nil {
		a.lines[path] = map[int]bool{}
	}
	for n := from; n <= to; n++ {
		a.lines[path][n] = true
	}
}

const budget = 4000

// rivals answer a question.
var rivals = map[string]func(c *checkout, question string) *answer{
	"search": func(c *checkout, question string) *answer {
		q := retriever.Query{Text: question, MaxTokens: budget, AsText: true}
		found, err := index.SearchOp.Call(c.Context(), c.w.Folder, q, nil)
		if err != nil {
			c.Fatal(err)
		}
		a := &answer{lines: map[string]map[int]bool{}, tokens: budget}
		for _, r := range found.Results {
			if a.show(r.Path, 1, 0); r.Content != "" {
				a.show(r.Path, r.Passage.Start, r.Passage.End)
			}
			for _, m := range r.More {
				if m.Content != "" {
					a.show(r.Path, m.Passage.Start, m.Passage.End)
				}
			}
		}
		return a
	},
	"context": func(c *checkout, question string) *answer {
		b, err := index.ContextOp.Call(c.Context(), c.w.Folder, bundle.Request{Query: question, Budget: budget, AsText: true}, nil)
		if err != nil {
			c.Fatal(err)
		}
		a := &answer{lines: map[string]map[int]bool{}, tokens: b.Tokens}
		for _, i := range b.Items {
			end := i.Lines.End
			if i.Part == "signature" {
				end = i.Lines.Start
			}
			a.show(i.Path, i.Lines.Start, end)
		}
		for _, m := range b.More {
			a.show(m.Path, 1, 0)
		}
		return a
	},
}

const bodySuffix = ", message"

func rivalNames() (names []string) {
	for name := range rivals {
		names = append(names, name, name+bodySuffix)
	}
	slices.Sort(names)
	return names
}

// score sums the figures of a rival.
type score struct {
	n                                      int
	first, five, recall, found, f1, tokens float64
	took                                   []time.Duration
}

func (s *score) add(a *answer, gold map[string]map[int]bool, took time.Duration) {
	s.n++
	s.tokens += float64(a.tokens)
	s.took = append(s.took, took)
	files := 0
	for i, f := range a.files[:min(5, len(a.files))] {
		if gold[f] != nil {
			if files++; i == 0 {
				s.first++
			}
		}
	}
	if files > 0 {
		s.five++
	}
	s.recall += float64(files) / float64(min(5, len(gold)))
	shown, right, all := 0, 0, 0
	for f, lines := range a.lines {
		shown += len(lines)
		for n := range lines {
			if gold[f][n] {
				right++
			}
		}
	}
	for _, lines := range gold {
		all += len(lines)
	}
	s.found += float64(right) / float64(all)
	s.f1 += 2 * float64(right) / float64(shown+all)
}

func (s *score) String() string {
	if s == nil {
		return "none"
	}
	n := float64(s.n)
	return fmt.Sprintf("%d: %.2f %.2f %.2f %.2f %.3f", s.n, s.first/n, s.five/n, s.recall/n, s.found/n, s.f1/n)
}

func (s *score) median() time.Duration {
	slices.Sort(s.took)
	return s.took[len(s.took)/2].Round(100 * time.Microsecond)
}

// checkout is a repository in a folder that cairn indexes.
type checkout struct {
	*testing.T
	dir   string
	w     *workspace.Workspace
	model *encoder.Model
}

func clone(t *testing.T, dir string) *checkout {
	c := &checkout{T: t, dir: filepath.Join(t.TempDir(), "work"), model: &encoder.Model{}}
	c.git("clone", "-q", "--no-checkout", dir, c.dir)
	return c
}

func (c *checkout) git(args ...string) string {
	c.Helper()
	cmd := exec.Command("git", args...)
	if args[0] != "clone" {
		cmd.Args = slices.Insert(cmd.Args, 1, "-C", c.dir)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.Discard
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	if err := cmd.Run(); err != nil {
		c.Fatalf("git %v: %v", args, err)
	}
	return out.String()
}

type commit struct{ hash, subject string }

// maxAsked is CAIRN_HISTORIES_ASKED, or 12.
var maxAsked, _ = strconv.Atoi(cmp.Or(os.Getenv("CAIRN_HISTORIES_ASKED"), "12"))

// commits returns at most maxAsked of the newest quarter of the commits, the oldest first,
// evenly spread: those with three words or more in the subject that change one to eight
// documents or source files.
func (c *checkout) commits() (list []commit) {
	log := strings.Split(strings.TrimSuffix(c.git("log", "--no-merges", "--name-only", "--format=%x00%H%x09%s"), "\n"), "\x00")[1:]
	for _, entry := range log[:len(log)/4] {
		head, files, _ := strings.Cut(entry, "\n")
		hash, subject, _ := strings.Cut(head, "\t")
		n := 0
		for _, f := range strings.Fields(files) {
			if wanted(f) {
				n++
			}
		}
		if n >= 1 && n <= 8 && len(strings.Fields(subject)) >= 3 {
			list = append(list, commit{hash, subject})
		}
	}
	slices.Reverse(list)
	if step := float64(len(list)) / float64(maxAsked); step > 1 {
		var some []commit
		for i := range maxAsked {
			some = append(some, list[int(float64(i)*step)])
		}
		list = some
	}
	return list
}

var trailer = regexp.MustCompile(`(?im)^(signed-off-by|co-authored-by|reviewed-by|change-id|git-svn-id): .*$`)

// message returns the message of a commit without its trailers, at most 1,000 bytes, "" if it
// has a subject alone.
func (c *checkout) message(m commit) string {
	text := trailer.ReplaceAllString(c.git("log", "-1", "--format=%B", m.hash), "")
	text = strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), 1000)], ""))
	if text == m.subject {
		return ""
	}
	return text
}

func wanted(p string) bool {
	o := walk.Options{Extensions: markdown.Extensions(), Code: walk.CodeOn}
	return p != "" && !strings.HasPrefix(p, ".") && !strings.Contains(p, "/.") && !walk.IsIgnoreFile(path.Base(p)) && o.Wants()(path.Base(p))
}

var hunk = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? `)

// checkout brings the folder and its index to the parent of a commit. It returns the lines
// of the sections that the commit changes, by file.
func (c *checkout) checkout(m commit) map[string]map[int]bool {
	c.git("checkout", "-q", "-f", "--detach", m.hash+"^")
	if c.w == nil {
		c.open()
	}
	if _, err := index.IndexOp.Call(c.Context(), c.w.Folder, index.IndexRequest{}, nil); err != nil {
		c.Fatal(err)
	}
	gold := map[string]map[int]bool{}
	var file string
	var doc *markdown.Document
	for line := range strings.Lines(c.git("diff", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", m.hash+"^", m.hash)) {
		line = strings.TrimSuffix(line, "\n")
		if old, ok := strings.CutPrefix(line, "--- "); ok {
			file, doc = "", nil
			if p, ok := strings.CutPrefix(old, "a/"); ok && wanted(p) {
				if text, err := os.ReadFile(filepath.Join(c.dir, p)); err == nil {
					file, doc = p, markdown.Parse(p, text)
				}
			}
		}
		h := hunk.FindStringSubmatch(line)
		if h == nil || file == "" {
			continue
		}
		from, _ := strconv.Atoi(h[1])
		n := 1
		if h[2] != "" {
			n, _ = strconv.Atoi(h[2])
		}
		for _, s := range doc.Sections {
			if s.StartLine <= from+max(n, 1)-1 && from <= s.OwnEndLine {
				if gold[file] == nil {
					gold[file] = map[int]bool{}
				}
				for l := s.StartLine; l <= s.OwnEndLine; l++ {
					gold[file][l] = true
				}
			}
		}
	}
	return gold
}

func (c *checkout) open() {
	sel, err := config.Select(c.dir)
	if err != nil {
		c.Fatal(err)
	}
	o := workspace.Options{Settings: index.Settings{Logger: slog.New(slog.DiscardHandler)}, Command: "test"}
	if err := c.model.Apply(&o); err != nil {
		c.Fatal(err)
	}
	if c.w, err = workspace.Open(c.Context(), sel, config.Default(), workspace.Owning, o); err != nil {
		c.Fatal(err)
	}
}

func (c *checkout) close() {
	if c.w != nil {
		if err := c.w.Close(); err != nil {
			c.Fatal(err)
		}
	}
}
