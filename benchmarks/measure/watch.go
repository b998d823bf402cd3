package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cairn/benchmarks"
	"cairn/benchmarks/agent"
)

// watch measures how long after a change a client of `cairn mcp` finds it. It makes a folder
// of short documents, waits until the server has indexed it, changes files in the ways that
// people and editors do, switches between branches of git, and searches until the answer is
// right.
//
// A time begins when the change is complete on disk and ends when the right answer has
// arrived. Searches follow each other after 5 ms.
func watch(flags *flag.FlagSet) func() error {
	cairn := flags.String("cairn", "./cairn", "the cairn `program`")
	files := flags.Int("files", 10_000, "documents in the folder")
	edits := flags.Int("edits", 50, "changes of each kind")
	many := flags.Int("switch", 1000, "files in which two branches of git differ")
	return func() error { return measureWatch(*cairn, *files, *edits, *many) }
}

// words lists the words of the documents.
var words = strings.Fields(`server token budget query section heading cache vector keyword chunk document folder graph task
	workflow agent release version network policy container cluster node restart deploy error timeout retry queue worker`)

// sentence is deterministic for a seed and like no other's.
func sentence(r *rand.Rand, mark string) string {
	parts := []string{mark}
	for range 30 {
		parts = append(parts, words[r.IntN(len(words))])
	}
	return strings.Join(parts, " ")
}

type bench struct {
	root   string
	client *client
	r      *rand.Rand
	marks  int
	latest string // mark of the branch "new"
}

// file returns the name of document n.
func (b *bench) file(n int) string {
	return filepath.Join(b.root, fmt.Sprintf("part%02d", n%40), fmt.Sprintf("doc%05d.md", n))
}

// mark returns a word that no document has.
func (b *bench) mark() string {
	b.marks++
	letters := []byte("xq")
	for n := b.marks; n > 0; n /= 26 {
		letters = append(letters, byte('a'+n%26))
	}
	return string(letters) + "zu"
}

func (b *bench) text(n int, mark string) string {
	return fmt.Sprintf("# Document %d\n\n%s.\n", n, sentence(b.r, mark))
}

func measureWatch(cairn string, files, edits, many int) error {
	root, err := os.MkdirTemp("", "cairn-watch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	private := root + "home"
	defer os.RemoveAll(private)
	if err := os.Setenv("CAIRN_HOME", private); err != nil {
		return err
	}
	b := &bench{root: root, r: rand.New(rand.NewPCG(7, 7))}
	for n := range files {
		if err := write(b.file(n), b.text(n, "first")); err != nil {
			return err
		}
	}
	begin := time.Now()
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	fmt.Printf("%d files indexed in %.1f s\n", files, time.Since(begin).Seconds())
	c, _, err := agent.Start(cairn, "mcp", "-C", root, "--no-record")
	if err != nil {
		return err
	}
	defer c.Close()
	b.client = &client{c}
	if err := b.client.until("the start", func() (bool, error) { return b.client.watching() }); err != nil {
		return err
	}
	// Every change is a function that makes it and returns a word and the path where it must be found.
	pick := func() string { return b.file(b.r.IntN(files)) }
	for _, c := range []struct {
		name   string
		change func(i int, mark string) (string, error)
	}{
		{"edit", func(i int, mark string) (string, error) { at := pick(); return at, write(at, b.text(i, mark)) }},
		{"save by renaming", func(i int, mark string) (string, error) {
			at := pick()
			tmp := filepath.Join(filepath.Dir(at), "."+filepath.Base(at)+".tmp")
			return at, errors.Join(write(tmp, b.text(i, mark)), os.Rename(tmp, at))
		}},
		{"new folder", func(i int, mark string) (string, error) {
			at := filepath.Join(root, "new", mark, "deep", "file.md")
			return at, write(at, b.text(i, mark))
		}},
		{"moved file", func(i int, mark string) (string, error) {
			at := pick()
			if err := write(at, b.text(i, mark)); err != nil {
				return "", err
			}
			if err := b.found(at, mark, "keyword"); err != nil {
				return "", err
			}
			to := strings.TrimSuffix(at, ".md") + "-" + mark + ".md"
			return to, errors.Join(os.Rename(at, to), write(at, b.text(i, "first")))
		}},
	} {
		var byWord, byVector []float64
		for i := range edits {
			mark := b.mark()
			at, err := c.change(i, mark)
			if err != nil {
				return err
			}
			begin := time.Now()
			if err := b.found(at, mark, "keyword"); err != nil {
				return err
			}
			byWord = append(byWord, milliseconds(time.Since(begin)))
			if err := b.found(at, mark, "semantic"); err != nil {
				return err
			}
			byVector = append(byVector, milliseconds(time.Since(begin)))
		}
		show(c.name+", by keyword", byWord)
		show(c.name+", by vector", byVector)
	}
	if err := b.removals(edits); err != nil {
		return err
	}
	return b.branches(min(many, files))
}

// removals measures how long a search finds a removed file.
func (b *bench) removals(n int) error {
	var took []float64
	for i := range n {
		mark := b.mark()
		at := filepath.Join(b.root, "gone", mark+".md")
		if err := write(at, b.text(i, mark)); err != nil {
			return err
		}
		if err := b.found(at, mark, "keyword"); err != nil {
			return err
		}
		if err := os.Remove(at); err != nil {
			return err
		}
		begin := time.Now()
		if err := b.client.until("removal", func() (bool, error) {
			// Words spelt alike may be found instead.
			first, err := b.client.first(mark, "keyword")
			return first != "gone/"+mark+".md", err
		}); err != nil {
			return err
		}
		took = append(took, milliseconds(time.Since(begin)))
	}
	show("removed file, not found any more", took)
	return nil
}

// branches switches between two git branches that differ in many files: eight of ten are
// changed, one is removed and one is renamed.
func (b *bench) branches(many int) error {
	git := func(args ...string) error {
		args = append([]string{"-C", b.root, "-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(args[8:], " "), err, out)
		}
		return nil
	}
	// The files to find, each with its own word: the last files that branch two changes,
	// lacks and renames.
	changed, removed, renamed := b.file(many-3), b.file(many-2), b.file(many-1)
	words := map[string]string{changed: b.mark(), removed: b.mark(), renamed: b.mark()}
	if err := errors.Join(write(removed, b.text(many-2, words[removed])),
		write(renamed, b.text(many-1, words[renamed])), git("init", "-q", "-b", "one"), git("add", "."),
		git("commit", "-q", "-m", "one"), git("switch", "-q", "-c", "two")); err != nil {
		return err
	}
	for n := range many {
		at := b.file(n)
		mark := "second"
		if at == changed {
			mark = words[changed]
		}
		var err error
		switch n % 10 {
		case 8:
			err = os.Remove(at)
		case 9:
			err = os.Rename(at, moved(at))
		default:
			err = write(at, b.text(n, mark))
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(git("add", "-A"), git("commit", "-q", "-m", "two")); err != nil {
		return err
	}
	if err := b.found(changed, words[changed], "keyword"); err != nil {
		return err
	}
	for _, branch := range []string{"one", "two", "one", "two", "one", "new"} {
		if err := b.client.until("vectors", b.client.embedded); err != nil {
			return err
		}
		if branch == "new" { // texts that were never embedded
			if err := b.fresh(git, many); err != nil {
				return err
			}
		}
		begin := time.Now()
		if err := git("switch", "-q", branch); err != nil {
			return err
		}
		name := fmt.Sprintf("switch of %d files to %s", many, branch)
		fmt.Printf("%-42s %.0f ms\n", name+", git itself", milliseconds(time.Since(begin)))
		begin = time.Now()
		want := map[string]string{} // by word
		switch branch {
		case "one":
			want[words[changed]], want[words[removed]], want[words[renamed]] = "", removed, renamed
		case "two":
			want[words[changed]], want[words[removed]], want[words[renamed]] = changed, "", moved(renamed)
		case "new":
			want[b.latest] = b.file(many - 1)
		}
		for word, path := range want {
			if err := b.client.until("the switch", b.settled(word, path)); err != nil {
				return err
			}
		}
		fmt.Printf("%-42s %.0f ms after git\n", name+", by keyword", milliseconds(time.Since(begin)))
		if err := b.client.until("vectors", b.client.embedded); err != nil {
			return err
		}
		fmt.Printf("%-42s %.0f ms after git\n", name+", all by vector", milliseconds(time.Since(begin)))
	}
	return nil
}

// fresh creates a branch of new texts without a change of the watched folder.
func (b *bench) fresh(git func(...string) error, many int) error {
	aside, err := os.MkdirTemp("", "cairn-watch-tree-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)
	tree := filepath.Join(aside, "tree")
	if err := git("worktree", "add", "-q", "-b", "new", tree, "one"); err != nil {
		return err
	}
	b.latest = b.mark()
	for n := range many {
		mark := "third"
		if n == many-1 {
			mark = b.latest
		}
		rel, err := filepath.Rel(b.root, b.file(n))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(tree, rel), b.text(n, mark)); err != nil {
			return err
		}
	}
	return errors.Join(git("-C", tree, "commit", "-q", "-a", "-m", "new"), git("worktree", "remove", tree))
}

// settled reports whether the first hit for a word is the file at path, or with
// "" for path, not a file that has the word: words spelt alike may be found.
func (b *bench) settled(word, path string) func() (bool, error) {
	return func() (bool, error) {
		got, err := b.client.first(word, "keyword")
		if err != nil || path == "" && got == "" {
			return err == nil, err
		}
		if path != "" {
			rel, err := filepath.Rel(b.root, path)
			return got == filepath.ToSlash(rel), err
		}
		text, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(got)))
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return !strings.Contains(string(text), word), err
	}
}

func moved(path string) string { return strings.TrimSuffix(path, ".md") + "-moved.md" }

// found asks until the first result for mark is at path.
func (b *bench) found(path, mark, mode string) error {
	rel, err := filepath.Rel(b.root, path)
	if err != nil {
		return err
	}
	query := mark
	if mode == "semantic" {
		// The first words of the document itself: nothing else is as near.
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		query = strings.TrimPrefix(strings.Join(strings.Fields(string(text))[:24], " "), "# ")
	}
	return b.client.until(mark+" in "+rel, func() (bool, error) {
		first, err := b.client.first(query, mode)
		return first == filepath.ToSlash(rel), err
	})
}

func write(name, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
}

func show(name string, times []float64) {
	at := func(p float64) float64 { return benchmarks.Percentile(times, p) }
	fmt.Printf("%-42s p50 %5.0f  p95 %5.0f  longest %5.0f ms\n", name, at(50), at(95), at(100))
}

// client is a client of a running `cairn mcp`.
type client struct{ *agent.Client }

// first returns the path of the first result, "" without one.
func (c *client) first(query, mode string) (string, error) {
	var results []struct{ Path string }
	err := c.Call("read_context", map[string]any{"query": query, "mode": mode, "limit": 1}, &results)
	if err != nil || len(results) == 0 {
		return "", err
	}
	return results[0].Path, nil
}

type status struct {
	State    string
	Watching string
	Pending  int
	Progress json.RawMessage
}

func (c *client) watching() (bool, error) {
	var s status
	err := c.Call("status", map[string]any{}, &s)
	return s.State == "ready" && s.Watching == "events" && s.Progress == nil, err
}

func (c *client) embedded() (bool, error) {
	var s status
	err := c.Call("status", map[string]any{}, &s)
	return s.Pending == 0 && s.State == "ready", err
}

// limit bounds how long an answer may be wrong.
const limit = 5 * time.Minute

func (c *client) until(what string, ok func() (bool, error)) error {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		done, err := ok()
		if err != nil || done {
			return err
		}
		if time.Since(begin) > limit {
			return fmt.Errorf("%s: not within %v", what, limit)
		}
	}
}
