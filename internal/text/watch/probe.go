package watch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// probe is a removed file that is still open and watched. The kernel keeps all events in one
// queue, so that an event of the probe follows those of all earlier changes. A nil probe
// never passes.
type probe struct {
	file   *os.File
	passed chan struct{} // receives a value for each event of the probe
	ended  chan struct{} // closed when events are no longer read
	once   sync.Once     // closes ended
	asking sync.Mutex    // held during pass
}

// newProbe watches a probe. It fails with errors.ErrUnsupported on operating systems other
// than Linux.
func newProbe(notify *fsnotify.Watcher) (*probe, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("watching in order: %w", errors.ErrUnsupported)
	}
	file, err := os.CreateTemp("", "cairn-probe")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(notify.Add(file.Name()), os.Remove(file.Name())); err != nil {
		file.Close()
		return nil, err
	}
	return &probe{file: file, passed: make(chan struct{}), ended: make(chan struct{})}, nil
}

// takes reports whether an event is of the probe, and lets pass return. The reader of the
// events calls it for each.
func (p *probe) takes(e fsnotify.Event) bool {
	if p == nil || e.Name != p.file.Name() {
		return false
	}
	if e.Has(fsnotify.Write) {
		p.passed <- struct{}{}
	}
	return true
}

// pass waits until the events of all earlier changes were read. It reports false if they are
// not read any more.
func (p *probe) pass() bool {
	if p == nil {
		return false
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	if _, err := p.file.WriteAt([]byte{0}, 0); err != nil {
		return false
	}
	select {
	case <-p.passed:
		return true
	case <-p.ended:
		return false
	}
}

// end makes pass report false. The reader of the events calls it at its end.
func (p *probe) end() {
	if p != nil {
		p.once.Do(func() { close(p.ended) })
	}
}

func (p *probe) close() error {
	if p == nil {
		return nil
	}
	return p.file.Close()
}
