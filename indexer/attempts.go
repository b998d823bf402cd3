package indexer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
)

const (
	// setAside is the reason for skipping a file that ended the process.
	setAside = "set aside: the process ended twice while it indexed this file; it is tried again when it changes, or by index --rebuild"
	// maxAttempts is how many times the process may end while it indexes a file.
	maxAttempts = 2
	// minAttempted is the size in bytes of the smallest text that is recorded. Smaller
	// texts cannot use much memory or time.
	minAttempted = 32 << 10
)

// attempts records the documents being indexed in a file, so that the next process can
// tell which document ended this one. The file is not synced, since it must survive
// the end of the process but not of the machine. A nil *attempts records nothing.
type attempts struct {
	name string

	mu      sync.Mutex
	before  map[string]int // by document: times that a process ended while it was running
	running map[string]bool
}

// openAttempts reads the file of the previous process.
func openAttempts(name string) *attempts {
	if name == "" {
		return nil
	}
	a := &attempts{name: name, before: map[string]int{}, running: map[string]bool{}}
	text, err := os.ReadFile(name)
	if err != nil {
		return a // without a readable file, no document is suspect
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		count, path, ok := strings.Cut(line, " ")
		if n, err := strconv.Atoi(count); ok && err == nil && n > 0 {
			a.before[path] = n
		}
	}
	return a
}

// count returns how many times the process ended while it indexed a document.
func (a *attempts) count(path string) int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.before[path]
}

// begin records that documents are being indexed. The caller must call end afterwards.
func (a *attempts) begin(paths ...string) error {
	return a.update(paths, func(p string) { a.running[p] = true })
}

// end records that documents are no longer being indexed. If done, they were indexed
// without a crash, and end clears their counts.
func (a *attempts) end(done bool, paths ...string) error {
	return a.update(paths, func(p string) {
		delete(a.running, p)
		if done {
			delete(a.before, p)
		}
	})
}

// update calls change with each path and replaces the file.
func (a *attempts) update(paths []string, change func(path string)) error {
	if a == nil || len(paths) == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range paths {
		change(p)
	}
	var b bytes.Buffer
	for p, n := range a.before {
		if !a.running[p] {
			fmt.Fprintf(&b, "%d %s\n", n, p)
		}
	}
	for p := range a.running {
		fmt.Fprintf(&b, "%d %s\n", a.before[p]+1, p)
	}
	if b.Len() == 0 {
		if err := os.Remove(a.name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(a.name, b.Bytes(), 0o600)
}
