package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/text/walk"
)

func open(t *testing.T, dir string, o *Options) *Tree {
	t.Helper()
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return New(tree, o)
}

func lock(t *testing.T, tree *Tree) (unlock func()) {
	t.Helper()
	unlock, err := tree.Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.md")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := open(t, dir, nil)
	_, stamp, err := tree.Read("a.md")
	if err != nil {
		t.Fatal(err)
	}
	defer lock(t, tree)()
	if err := tree.replace("a.md", []byte("new"), stamp); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v, want 0600 kept", info.Mode(), err)
	}
	// The stamp is that of the file before.
	if err := tree.replace("a.md", []byte("newer"), stamp); !errors.Is(err, ErrChanged) {
		t.Errorf("replacing with an old stamp: %v, want ErrChanged", err)
	}
	// Content alone gives it away when size and time do not.
	_, stamp, _ = tree.Read("a.md")
	os.WriteFile(name, []byte("wen"), 0o600)
	os.Chtimes(name, time.Time{}, time.Unix(0, stamp.ModTime))
	if err := tree.replace("a.md", []byte("newer"), stamp); !errors.Is(err, ErrChanged) {
		t.Errorf("replacing a file of the same size and time: %v, want ErrChanged", err)
	}
	if got, _ := os.ReadFile(name); string(got) != "wen" {
		t.Errorf("the file holds %q after refusals, want wen", got)
	}
	if err := tree.replace("none.md", nil, stamp); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("replacing no file: %v, want fs.ErrNotExist", err)
	}
	only(t, dir, "a.md")
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	tree := open(t, dir, nil)
	defer lock(t, tree)()
	if err := tree.Create("x/y/a.md", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := tree.Create("x/y/a.md", []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating it again: %v, want fs.ErrExist", err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "x/y/a.md")); string(got) != "one" {
		t.Errorf("the file holds %q, want one", got)
	}
	only(t, filepath.Join(dir, "x/y"), "a.md")
	if err := tree.Create("big.md", make([]byte, walk.DefaultMaxSize+1)); !errors.Is(err, walk.ErrSize) {
		t.Errorf("creating a file that cannot be read: %v, want ErrSize", err)
	}
}

func TestContainment(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	os.WriteFile(filepath.Join(outside, "secret.md"), []byte("s"), 0o644)
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip("no symbolic links here")
	}
	os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(dir, "s.md"))
	os.Mkdir(filepath.Join(dir, "in"), 0o755)
	os.Symlink("in", filepath.Join(dir, "alias"))
	tree := open(t, dir, nil)
	defer lock(t, tree)()
	for _, p := range []string{"../a.md", "/etc/a.md", "link/a.md", "link/secret.md", "s.md", "a/../../b.md", "alias/a.md", "", "x\\y.md", "a\x00.md", "C:/a.md"} {
		if err := tree.Create(p, []byte("x")); err == nil {
			t.Errorf("Create(%q) succeeds", p)
		}
		if err := tree.replace(p, []byte("x"), Stamp{}); err == nil {
			t.Errorf("Replace(%q) succeeds", p)
		}
	}
	only(t, outside, "secret.md")
	only(t, filepath.Join(dir, "in"))
}

// TestCrash interrupts a write between the temporary file and the rename.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a.md"), []byte("old"), 0o644)
	crash := errors.New("power cut")
	tree := open(t, dir, &Options{Fault: func(string) error { return crash }})
	_, stamp, _ := tree.Read("a.md")
	unlock := lock(t, tree)
	if err := tree.replace("a.md", []byte("new"), stamp); !errors.Is(err, crash) {
		t.Fatalf("got %v, want the crash", err)
	}
	if err := tree.Create("b.md", []byte("new")); !errors.Is(err, crash) {
		t.Fatalf("got %v, want the crash", err)
	}
	unlock()
	if got, _ := os.ReadFile(filepath.Join(dir, "a.md")); string(got) != "old" {
		t.Errorf("the file holds %q, want old", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "b.md")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("b.md: %v, want none", err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".cairn-*"))
	if len(left) != 2 {
		t.Fatalf("the crash left %v, want two temporary files for the sweep", left)
	}
	// A later process removes what is so old that no process can be writing it.
	old := time.Now().Add(-2 * time.Hour)
	os.Chtimes(left[0], old, old)
	next := open(t, dir, nil)
	defer lock(t, next)()
	if err := next.Create("c.md", nil); err != nil {
		t.Fatal(err)
	}
	if rest, _ := filepath.Glob(filepath.Join(dir, ".cairn-*")); len(rest) != 1 || rest[0] != left[1] {
		t.Errorf("after the sweep there is %v, want %v", rest, left[1:])
	}
}

func TestLockIsSharedByProcesses(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, nil), open(t, dir, &Options{LockWait: time.Nanosecond}) // over before the first attempt
	unlock := lock(t, a)
	_, err := b.Lock(context.Background())
	held, ok := errors.AsType[*LockError](err)
	if !ok {
		t.Fatalf("the second lock gives %v, want a LockError", err)
	}
	if held.PID != 0 && held.PID != os.Getpid() || !strings.Contains(held.Error(), held.Path) {
		t.Errorf("the holder is %d (%v), want us, %d", held.PID, held, os.Getpid())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Lock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	unlock()
	unlock, err = b.Lock(context.Background())
	if err != nil {
		t.Fatalf("the lock was given back, but: %v", err)
	}
	unlock()
}

func TestEdit(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.md")
	os.WriteFile(name, []byte("old"), 0o644)
	tree := open(t, dir, nil)
	before, _ := os.Stat(name)
	same := func(old []byte, _ Stamp) ([]byte, error) { return old, nil }
	if written, err := tree.Edit(context.Background(), "a.md", same); written || err != nil {
		t.Errorf("an edit that changes nothing: %v, %v", written, err)
	}
	if after, _ := os.Stat(name); !os.SameFile(before, after) {
		t.Error("an edit that changes nothing made a new file")
	}
	refuse := errors.New("no")
	if _, err := tree.Edit(context.Background(), "a.md", func([]byte, Stamp) ([]byte, error) { return []byte("x"), refuse }); !errors.Is(err, refuse) {
		t.Errorf("got %v, want the refusal", err)
	}
	// Somebody else writes while the edit thinks.
	_, err := tree.Edit(context.Background(), "a.md", func([]byte, Stamp) ([]byte, error) {
		return []byte("mine"), os.WriteFile(name, []byte("theirs"), 0o644)
	})
	if got, _ := os.ReadFile(name); !errors.Is(err, ErrChanged) || string(got) != "theirs" {
		t.Errorf("got %v and %q, want ErrChanged and theirs", err, got)
	}
}

// only fails unless a folder holds exactly the names.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// TestEditKeepsTheEncoding: a file that is not UTF-8 is not changed.
func TestEditKeepsTheEncoding(t *testing.T) {
	dir := t.TempDir()
	tree := open(t, dir, nil)
	for _, text := range []string{"caf\xe9\n", "\xff\xfea\x00"} {
		name := filepath.Join(dir, "a.md")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		written, err := tree.Edit(t.Context(), "a.md", func(old []byte, _ Stamp) ([]byte, error) { return append(old, "é"...), nil })
		if written || err == nil || !strings.Contains(err.Error(), "a.md is not UTF-8: convert it") {
			t.Errorf("%q: written %v, %v", text, written, err)
		}
		if now, _ := os.ReadFile(name); string(now) != text {
			t.Errorf("%q became %q", text, now)
		}
	}
}
