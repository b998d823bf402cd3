package indexer

import (
	"bufio"
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
	// setAside is the reason of a file that ended the process.
	setAside = "set aside: the process ended twice while it indexed this file; it is tried again when it changes, or by index --rebuild"
	// maxAttempts is how often a file may be in work when the process ends.
	maxAttempts = 2
	// minAttempted is the size in bytes from which files are recorded. Smaller ones
	// cannot take much.
	minAttempted = 32 << 10
)

// attempts names in a file the documents being indexed, so that the next process knows
// which ones ended this one. The file is not synced: it has to survive the process and
// not the machine. A nil *attempts records nothing.
type attempts struct {
	name string

	mu      sync.Mutex
	before  map[string]int // of documents that were in work when a process ended
	running map[string]bool
}

// openAttempts reads the file that the last process left.
func openAttempts(name string) *attempts {
	if name == "" {
		return nil
	}
	a := &attempts{name: name, before: map[string]int{}, running: map[string]bool{}}
	text, err := os.ReadFile(name)
	if err != nil {
		return a // none, or one that cannot be read
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		count, path, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.Atoi(count); ok && err == nil && n > 0 {
			a.before[path] = n
		}
	}
	return a
}

// count is how often the process ended while it indexed a document.
func (a *attempts) count(path string) int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.before[path]
}

// begin records that documents are in work; end has to follow.
func (a *attempts) begin(paths ...string) error {
	if a == nil || len(paths) == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range paths {
		a.running[p] = true
	}
	return a.write()
}

// end records that documents are not in work any more. done reports that they came to
// their end, which clears what is known of them.
func (a *attempts) end(done bool, paths ...string) error {
	if a == nil || len(paths) == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range paths {
		delete(a.running, p)
		if done {
			delete(a.before, p)
		}
	}
	return a.write()
}

// write replaces the file; the caller holds a.mu.
func (a *attempts) write() error {
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
