package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Folder watches the files of one folder. Unlike a Watcher, which reports changes some time
// after they happen, its method Changed returns every change made before the call. It is
// safe for concurrent use.
type Folder struct {
	dir    string
	info   fs.FileInfo
	notify *fsnotify.Watcher
	// probe is a removed file that is still open. The kernel keeps all events in one
	// queue, so that an event of the probe follows those of all earlier changes.
	probe  *os.File
	probed chan struct{} // receives a value for each event of the probe
	ended  chan struct{} // closed when the queue ends or overflows

	asking sync.Mutex // held during Changed
	mu     sync.Mutex
	names  map[string]bool
}

// OpenFolder starts to watch dir. It fails with errors.ErrUnsupported on operating systems
// other than Linux, and on file systems that other machines can change.
func OpenFolder(dir string) (*Folder, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("watching %s: %w", dir, errors.ErrUnsupported)
	}
	if kind := remote(dir); kind != "" {
		return nil, fmt.Errorf("watching %s: file system %s: %w", dir, kind, errors.ErrUnsupported)
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: filepath.Clean(dir), notify: notify, probed: make(chan struct{}), ended: make(chan struct{}), names: map[string]bool{}}
	if f.probe, err = os.CreateTemp("", "cairn-probe"); err == nil {
		err = errors.Join(notify.Add(f.probe.Name()), os.Remove(f.probe.Name()), notify.Add(dir))
	}
	if err == nil {
		f.info, err = os.Stat(dir)
	}
	if err != nil {
		notify.Close()
		f.probe.Close()
		return nil, err
	}
	go f.collect()
	return f, nil
}

// collect reads events until Close, or until events were lost.
func (f *Folder) collect() {
	defer close(f.ended)
	for {
		select {
		case e, ok := <-f.notify.Events:
			switch {
			case !ok:
				return
			case e.Name == f.dir:
				if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
					return // fsnotify no longer watches it
				}
			case e.Name != f.probe.Name():
				f.mu.Lock()
				f.names[filepath.Base(e.Name)] = true
				f.mu.Unlock()
			case e.Has(fsnotify.Write):
				f.probed <- struct{}{}
			}
		case <-f.notify.Errors: // an overflow, or the end
			return
		}
	}
}

// Of reports whether info describes the watched folder. Another folder of the same name may
// have replaced it.
func (f *Folder) Of(info fs.FileInfo) bool { return os.SameFile(f.info, info) }

// Changed returns the names of the files that changed since the last call, in no particular
// order. If ok is false, events were lost: the caller must close the Folder and look at
// every file.
func (f *Folder) Changed() (names []string, ok bool) {
	f.asking.Lock()
	defer f.asking.Unlock()
	if _, err := f.probe.WriteAt([]byte{0}, 0); err != nil {
		return nil, false
	}
	select {
	case <-f.probed:
	case <-f.ended:
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.names {
		names = append(names, name)
	}
	clear(f.names)
	return names, true
}

// Close stops watching.
func (f *Folder) Close() error {
	err := errors.Join(f.notify.Close(), f.probe.Close())
	<-f.ended
	return err
}
