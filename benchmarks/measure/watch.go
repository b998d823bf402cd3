package main

import (
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

type bench struct {
	root   string
	client *agent.Client
	r      *rand.Rand
	marks  int
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

// text returns a document with a mark and words of its own.
func (b *bench) text(mark string) string {
	text := "# " + mark + "\n\n" + mark
	for range 30 {
		text += " " + words[b.r.IntN(len(words))]
	}
	return text + ".\n"
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
		if err := write(b.file(n), b.text("first")); err != nil {
			return err
		}
	}
	begin := time.Now()
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	fmt.Printf("%d files indexed in %.1f s\n", files, time.Since(begin).Seconds())
	if b.client, _, err = agent.Start(cairn, "mcp", "-C", root, "--no-record"); err != nil {
		return err
	}
	defer b.client.Close()
	err = b.until("the start", func(s *status) bool { return s.State == "ready" && s.Watching == "events" && s.Progress == nil })
	if err != nil {
		return err
	}
	if err := b.changes(files, edits); err != nil {
		return err
	}
	return b.branches(min(many, files))
}

// changes changes files in each way.
func (b *bench) changes(files, edits int) error {
	pick := func() string { return b.file(b.r.IntN(files)) }
	indexed := func(at, mark string) error { return errors.Join(write(at, b.text(mark)), b.found(at, mark, "keyword")) }
	// Each change begins with a file and a mark, and returns the path at which the mark must then
	// be found, "" for nowhere.
	for _, c := range []struct {
		name   string
		before func(at, mark string) error // not measured
		change func(at, mark string) (string, error)
	}{
		{"edit", nil, func(at, mark string) (string, error) { return at, write(at, b.text(mark)) }},
		{"save by renaming", nil, func(at, mark string) (string, error) {
			tmp := filepath.Join(filepath.Dir(at), "."+filepath.Base(at)+".tmp")
			return at, errors.Join(write(tmp, b.text(mark)), os.Rename(tmp, at))
		}},
		{"new folder", nil, func(_, mark string) (string, error) {
			at := filepath.Join(b.root, "new", mark, "deep", "file.md")
			return at, write(at, b.text(mark))
		}},
		{"moved file", indexed, func(at, mark string) (string, error) {
			to := strings.TrimSuffix(at, ".md") + "-" + mark + ".md"
			return to, errors.Join(os.Rename(at, to), write(at, b.text("first")))
		}},
		{"removed file", indexed, func(at, _ string) (string, error) { return "", os.Remove(at) }},
	} {
		var byWord, byVector []float64
		for range edits {
			at, mark := pick(), b.mark()
			if c.before != nil {
				if err := c.before(at, mark); err != nil {
					return err
				}
			}
			to, err := c.change(at, mark)
			if err != nil {
				return err
			}
			begin := time.Now()
			if err := b.found(to, mark, "keyword"); err != nil {
				return err
			}
			byWord = append(byWord, milliseconds(time.Since(begin)))
			if to == "" {
				if err := write(at, b.text("first")); err != nil {
					return err
				}
				continue
			}
			if err := b.found(to, mark, "semantic"); err != nil {
				return err
			}
			byVector = append(byVector, milliseconds(time.Since(begin)))
		}
		show(c.name+", by keyword", byWord)
		if byVector != nil {
			show(c.name+", by vector", byVector)
		}
	}
	return nil
}

// branches switches between git branches that differ in many files. In branch two, eight of ten
// are changed, one is removed and one is renamed; branch three has other texts, which were never
// embedded. A switch has ended when the mark of the branch is found in the last of the files.
func (b *bench) branches(many int) error {
	tree, err := os.MkdirTemp("", "cairn-watch-tree-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	git := func(args ...string) error {
		args = append([]string{"-C", b.root, "-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(args[8:], " "), err, out)
		}
		return nil
	}
	last := b.file(many - 1)
	marks := map[string]string{"one": b.mark(), "two": b.mark(), "three": b.mark()}
	if err := errors.Join(write(last, b.text(marks["one"])), git("init", "-q", "-b", "one"), git("add", "."), git("commit", "-q", "-m", "one")); err != nil {
		return err
	}
	// The other branches are made in another folder, so that the watched one does not change.
	for _, branch := range []string{"two", "three"} {
		at := filepath.Join(tree, branch)
		if err := git("worktree", "add", "-q", "-b", branch, at, "one"); err != nil {
			return err
		}
		for n := range many {
			rel, err := filepath.Rel(b.root, b.file(n))
			if err != nil {
				return err
			}
			name, mark := filepath.Join(at, rel), branch
			if n == many-1 {
				mark = marks[branch]
			}
			switch {
			case branch == "two" && n%10 == 7:
				err = os.Remove(name)
			case branch == "two" && n%10 == 8:
				err = os.Rename(name, strings.TrimSuffix(name, ".md")+"-moved.md")
			default:
				err = write(name, b.text(mark))
			}
			if err != nil {
				return err
			}
		}
		if err := errors.Join(git("-C", at, "add", "-A"), git("-C", at, "commit", "-q", "-m", branch), git("worktree", "remove", at)); err != nil {
			return err
		}
	}
	embedded := func(s *status) bool { return s.Pending == 0 && s.State == "ready" }
	for _, branch := range []string{"two", "one", "two", "one", "three"} {
		if err := b.until("vectors", embedded); err != nil {
			return err
		}
		name := fmt.Sprintf("switch of %d files to %s", many, branch)
		begin := time.Now()
		if err := git("switch", "-q", branch); err != nil {
			return err
		}
		fmt.Printf("%-42s %.0f ms\n", name+", git itself", milliseconds(time.Since(begin)))
		begin = time.Now()
		if err := b.found(last, marks[branch], "keyword"); err != nil {
			return err
		}
		fmt.Printf("%-42s %.0f ms after git\n", name+", by keyword", milliseconds(time.Since(begin)))
		if err := b.until("vectors", embedded); err != nil {
			return err
		}
		fmt.Printf("%-42s %.0f ms after git\n", name+", all by vector", milliseconds(time.Since(begin)))
	}
	return nil
}

// found asks until the first result for a mark is the file at path, or with "" for path, until
// no result is a file with the mark: words spelt alike may be found.
func (b *bench) found(path, mark, mode string) error {
	query := mark
	if mode == "semantic" { // the first words of the document itself: nothing else is as near
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		query = strings.TrimPrefix(strings.Join(strings.Fields(string(text))[:24], " "), "# ")
	}
	return b.wait(mark+" in "+path, func() (bool, error) {
		var results []struct{ Path string }
		err := b.client.Call("read_context", map[string]any{"query": query, "mode": mode, "limit": 1}, &results)
		if err != nil || len(results) == 0 {
			return path == "", err
		}
		at := filepath.Join(b.root, filepath.FromSlash(results[0].Path))
		if path != "" {
			return at == path, nil
		}
		text, err := os.ReadFile(at)
		return err == nil && !strings.Contains(string(text), mark), nil
	})
}

func write(name, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
}

func show(name string, times []float64) {
	at := func(p float64) float64 { return benchmarks.Percentile(times, p) }
	fmt.Printf("%-42s p50 %5.0f  p95 %5.0f  longest %5.0f ms\n", name, at(50), at(95), at(100))
}

// status has the fields of the tool status that are awaited.
type status struct {
	State    string
	Watching string
	Pending  int
	Progress any
}

// until waits for a status.
func (b *bench) until(what string, ok func(*status) bool) error {
	return b.wait(what, func() (bool, error) {
		var s status
		err := b.client.Call("status", map[string]any{}, &s)
		return ok(&s), err
	})
}

// limit bounds how long an answer may be wrong.
const limit = 5 * time.Minute

func (b *bench) wait(what string, ok func() (bool, error)) error {
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
