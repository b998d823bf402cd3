package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// repository is a work tree made by git itself.
type repository struct {
	*testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	r := repository{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

func (r repository) git(args ...string) string {
	r.Helper()
	c := exec.Command("git", append([]string{"-C", r.dir}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z")
	out, err := c.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, where nil removes one, and commits them.
func (r repository) commit(subject string, files map[string]string) {
	r.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		if text == "" {
			os.Remove(path)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", subject+"\n\nbody")
}

// log returns one line for each commit: its subject and changes.
func log(t *testing.T, r *Repository, known ...Hash) (lines []string) {
	t.Helper()
	head, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	err = r.Walk(t.Context(), []Hash{head}, func(h Hash) bool { return slices.Contains(known, h) }, func(c *Commit) (bool, error) {
		changes, complete, err := r.Changes(c)
		lines = append(lines, fmt.Sprint(c.Subject, " ", changes, " ", complete))
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func open(t *testing.T, dir string) *Repository {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestHistory(t *testing.T) {
	g := newRepository(t)
	long := strings.Repeat("a line of the file\n", 500)
	g.commit("first", map[string]string{"a.go": long, "docs/b.md": "b"})
	g.commit("change", map[string]string{"a.go": long + "more", "docs/b.md": "", "c.go": "c"})
	g.commit("move", map[string]string{"a.go": "", "lib/a.go": long + "more", "c.go": "", "lib/c.go": "other"})
	want := []string{
		"move [{a.go lib/a.go} {c.go lib/c.go}] true",
		"change [{ c.go} {a.go a.go} {docs/b.md }] true",
		"first [{ a.go} { docs/b.md}] true",
	}
	marker := filepath.Join(t.TempDir(), "executed")
	for _, key := range []string{"core.fsmonitor", "diff.external", "core.sshCommand", "filter.x.smudge"} {
		g.git("config", key, "touch "+marker)
	}
	slices.Sort(want)
	for _, step := range [][]string{{"status"}, {"gc", "-q"}, {"pack-refs", "--all"}} {
		g.git("-c", "core.fsmonitor=false", step[0])
		got := log(t, open(t, g.dir))
		slices.Sort(got) // the commits have the same time
		if !slices.Equal(got, want) {
			t.Errorf("after git %s:\n%s\nwant\n%s", step[0], strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a configured program was executed")
	}
	r := open(t, g.dir)
	head, _ := r.Head()
	if got := log(t, r, head); got != nil {
		t.Errorf("the known commit was visited: %v", got)
	}
	if got := g.git("rev-parse", "HEAD"); got != head.String() {
		t.Errorf("head %s, want %s", head, got)
	}
}

// TestWorktrees checks which files named .git are followed.
func TestWorktrees(t *testing.T) {
	g := newRepository(t)
	g.commit("first", map[string]string{"a.go": "a"})
	linked := filepath.Join(t.TempDir(), "linked")
	g.git("worktree", "add", "-q", linked)
	if got := log(t, open(t, linked)); len(got) != 1 {
		t.Errorf("a worktree has the commits %v, want 1", got)
	}
	line, err := os.ReadFile(filepath.Join(linked, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	thief := t.TempDir() // names the worktree's directory, which does not lead back
	if err := os.WriteFile(filepath.Join(thief, ".git"), line, 0o644); err != nil {
		t.Fatal(err)
	}
	direct, symbolic := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(direct, ".git"), []byte("gitdir: "+filepath.Join(g.dir, ".git")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(g.dir, ".git"), filepath.Join(symbolic, ".git")); err != nil {
		t.Skip(err)
	}
	borrowing := t.TempDir()
	info := filepath.Join(borrowing, ".git/objects/info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(info, "alternates"), []byte(filepath.Join(g.dir, ".git/objects")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(filepath.Join(borrowing, "none")); err == nil {
		t.Error("a missing directory was opened")
	}
	for name, dir := range map[string]string{"no repository": t.TempDir(), "a worktree of another folder": thief, "another repository": direct, "a symbolic link": symbolic, "borrowed objects": borrowing} {
		if _, err := Open(dir); !errors.Is(err, ErrNone) {
			t.Errorf("%s: error %v, want %v", name, err, ErrNone)
		}
	}
}

// made is a git directory written by hand.
type made struct {
	*testing.T
	dir string
}

func newMade(t *testing.T) made {
	m := made{t, t.TempDir()}
	m.write("HEAD", []byte("ref: refs/heads/main\n"))
	return m
}

func (m made) write(name string, content []byte) {
	m.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		m.Fatal(err)
	}
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write(content)
	z.Close()
	return b.Bytes()
}

// object writes a loose object.
func (m made) object(typ string, content []byte) Hash {
	m.Helper()
	all := append(fmt.Appendf(nil, "%s %d\x00", typ, len(content)), content...)
	h := Hash(sha1.Sum(all))
	m.write("objects/"+h.String()[:2]+"/"+h.String()[2:], compress(all))
	return h
}

func entryOf(mode, name string, h Hash) []byte { return append([]byte(mode+" "+name+"\x00"), h[:]...) }

// commit writes a commit as the head.
func (m made) commit(tree Hash, parents ...Hash) Hash {
	m.Helper()
	text := fmt.Sprintf("tree %s\n", tree)
	for _, p := range parents {
		text += fmt.Sprintf("parent %s\n", p)
	}
	h := m.object("commit", []byte(text+"author a <a@b> 1 +0000\ncommitter a <a@b> 99 +0000\n\nsubject\n"))
	m.write("refs/heads/main", []byte(h.String()+"\n"))
	return h
}

// changes returns the changes of the head.
func (m made) changes() ([]Change, bool, error) {
	m.Helper()
	r, err := OpenDir(m.dir)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	head, err := r.Head()
	if err != nil {
		return nil, false, err
	}
	c, err := r.Commit(head)
	if err != nil {
		return nil, false, err
	}
	return r.Changes(c)
}

func TestHostileTrees(t *testing.T) {
	m := newMade(t)
	blob := Hash{1}
	var odd []byte
	for _, name := range []string{"..", ".", ".GIT", "a/b", "a\nb", "a\\b", "\xff", "fine.go", "fine.go"} {
		odd = append(odd, entryOf("100644", name, blob)...)
	}
	odd = append(odd, entryOf("120000", "link", blob)...)
	odd = append(odd, entryOf("160000", "submodule", blob)...)
	m.commit(m.object("tree", odd))
	if got, _, err := m.changes(); err != nil || len(got) != 2 || got[0] != (Change{New: "fine.go"}) {
		t.Errorf("odd names: %v, %v; want only fine.go", got, err)
	}

	bomb := m.object("tree", entryOf("100644", "a", blob))
	wide := bomb
	for range 12 {
		var level []byte
		for i := range 10 {
			level = append(level, entryOf("40000", fmt.Sprint(i), wide)...)
		}
		wide = m.object("tree", level)
	}
	m.commit(wide)
	if got, complete, err := m.changes(); err != nil || complete || len(got) > maxChanges+10 {
		t.Errorf("10^12 files: %d changes, complete %v, %v", len(got), complete, err)
	}
	deep := bomb
	for range maxDepth + 10 {
		deep = m.object("tree", entryOf("40000", "d", deep))
	}
	m.commit(deep)
	if got, complete, err := m.changes(); err != nil || complete || len(got) != 0 {
		t.Errorf("deep tree: %v, complete %v, %v", got, complete, err)
	}
	m.commit(m.object("tree", []byte("100644 a")))
	if _, _, err := m.changes(); err == nil {
		t.Error("no error for a damaged tree")
	}
}

// packEntry returns an object in a pack. base is that of a delta.
func packEntry(typ byte, size int, base, compressed []byte) []byte {
	head := []byte{typ<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&0x7f))
	}
	return slices.Concat(head, base, compressed)
}

// pack writes a pack of the entries, with the hash that each gets.
func (m made) pack(hashes []Hash, entries ...[]byte) {
	data := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	var names, offsets []byte
	index := []byte("\377tOc\x00\x00\x00\x02")
	for i, e := range entries {
		names = append(names, hashes[i][:]...)
		offsets = binary.BigEndian.AppendUint32(offsets, uint32(len(data)))
		data = append(data, e...)
	}
	for b := range 256 {
		n := uint32(0)
		for _, h := range hashes {
			if int(h[0]) <= b {
				n++
			}
		}
		index = binary.BigEndian.AppendUint32(index, n)
	}
	m.write("objects/pack/pack-1.pack", append(data, make([]byte, 40)...))
	m.write("objects/pack/pack-1.idx", slices.Concat(index, names, make([]byte, 4*len(entries)), offsets, make([]byte, 40)))
}

func TestHostilePacks(t *testing.T) {
	a, b := Hash{0x10}, Hash{0x20}
	delta := compress([]byte{1, 1, 1, 'x'})
	bomb := compress(make([]byte, maxObject*3))
	for name, entries := range map[string][][]byte{
		"a cycle of deltas":             {packEntry(hashDelta, 4, b[:], delta), packEntry(hashDelta, 4, a[:], delta)},
		"a delta of itself":             {packEntry(hashDelta, 4, a[:], delta)},
		"a delta of a missing object":   {packEntry(hashDelta, 4, (&Hash{9})[:], delta)},
		"a delta before the pack":       {packEntry(offsetDelta, 4, []byte{0xff, 0xff, 0xff, 0x7f}, delta)},
		"a delta at its own place":      {packEntry(offsetDelta, 4, []byte{0}, delta)},
		"an endless offset":             {packEntry(offsetDelta, 4, bytes.Repeat([]byte{0xff}, 60), nil)},
		"an endless size":               {bytes.Repeat([]byte{0xff}, 60)},
		"more bytes than announced":     {packEntry(commitObject, 100, nil, bomb)},
		"too many bytes":                {packEntry(commitObject, maxObject*3, nil, bomb)},
		"no compressed data":            {packEntry(commitObject, 10, nil, []byte("plain text"))},
		"a result that is too large":    {packEntry(hashDelta, 11, b[:], compress([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})), packEntry(commitObject, 1, nil, compress([]byte("x")))},
		"a copy outside of its base":    {packEntry(hashDelta, 6, b[:], compress([]byte{1, 5, 0x91, 9, 5, 0})), packEntry(commitObject, 1, nil, compress([]byte("x")))},
		"an object of a type that is 0": {packEntry(0, 1, nil, compress([]byte("x")))},
	} {
		m := newMade(t)
		m.write("refs/heads/main", []byte(a.String()))
		m.pack([]Hash{a, b}[:len(entries)], entries...)
		if _, _, err := m.changes(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	m := newMade(t)
	m.write("refs/heads/main", []byte(a.String()))
	m.write("objects/pack/pack-1.pack", []byte("PACK"))
	m.write("objects/pack/pack-1.idx", append([]byte("\377tOc\x00\x00\x00\x02"), bytes.Repeat([]byte{0xff}, 1024)...))
	if _, _, err := m.changes(); err == nil {
		t.Error("an index that ends early: no error")
	}
}

// TestBounds checks that a walk ends with its context, and that references form no loop.
func TestBounds(t *testing.T) {
	m := newMade(t)
	tree := m.object("tree", nil)
	h := m.commit(tree)
	for range 50 {
		h = m.commit(tree, h)
	}
	r, err := OpenDir(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err = r.Walk(ctx, []Hash{h}, func(Hash) bool { return false }, func(*Commit) (bool, error) {
		if n++; n == 10 {
			cancel()
		}
		return true, nil
	})
	if !errors.Is(err, context.Canceled) || n != 10 {
		t.Errorf("%d commits, %v; want 10, canceled", n, err)
	}
	r.work = maxWork
	if _, err := r.Commit(h); !errors.Is(err, ErrLimit) {
		t.Errorf("without work left: %v", err)
	}
	for name, head := range map[string]string{"a loop": "ref: refs/heads/main", "outside": "ref: refs/../../x", "garbage": "x", "empty": ""} {
		m.write("refs/heads/main", []byte(head))
		if _, _, err := m.changes(); err == nil {
			t.Errorf("a reference to %s: no error", name)
		}
	}
}

func TestDiffering(t *testing.T) {
	g := newRepository(t)
	files := map[string]string{"a.go": "a", "b.go": "b", "c.go": "c", "lib/d.go": "d", "lib/dd.go": "dd", "gone.go": "x"}
	g.commit("first", files)
	for _, version := range []string{"2", "4"} {
		g.git("reset", "-q", "--hard")
		g.git("update-index", "--force-write-index", "--index-version", version)
		differing := func() []string {
			folder, err := os.OpenRoot(g.dir)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			paths, err := open(t, g.dir).Differing(folder, 10)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(paths)
			return paths
		}
		if got := differing(); len(got) != 0 {
			t.Errorf("version %s, nothing changed: %v", version, got)
		}
		for name, text := range map[string]string{"a.go": "changed", "lib/dd.go": "staged", "new.go": "untracked"} {
			if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		os.Remove(filepath.Join(g.dir, "gone.go"))
		g.git("add", "lib/dd.go")
		if got, want := differing(), []string{"a.go", "lib/dd.go"}; !slices.Equal(got, want) {
			t.Errorf("version %s: %v, want %v", version, got, want)
		}
	}
	for _, text := range []string{"", "DIRC", "DIRC\x00\x00\x00\x02\x00\x00\x00\x01", "DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\xff", 100), "DIRC\x00\x00\x00\x02\xff\xff\xff\xff"} {
		if err := eachEntry([]byte(text), func(string, time.Time, uint32, Hash) {}); err == nil {
			t.Errorf("no error for the index %.20q", text)
		}
	}
}
