package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	probe  *probe
	ended  chan struct{} // closed when the queue ends or overflows

	mu    sync.Mutex
	names map[string]bool
}

// OpenFolder starts to watch dir. It fails with errors.ErrUnsupported on operating systems
// other than Linux, and on file systems that other machines can change.
func OpenFolder(dir string) (*Folder, error) {
	if kind := remote(dir); kind != "" {
		return nil, fmt.Errorf("watching %s: file system %s: %w", dir, kind, errors.ErrUnsupported)
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: filepath.Clean(dir), notify: notify, ended: make(chan struct{}), names: map[string]bool{}}
	if f.probe, err = newProbe(notify); err == nil {
		err = notify.Add(dir)
	}
	if err == nil {
		f.info, err = os.Stat(dir)
	}
	if err != nil {
		notify.Close()
		f.probe.close()
		return nil, err
	}
	go f.collect()
	return f, nil
}

// collect reads events until Close, or until events were lost.
func (f *Folder) collect() {
	defer close(f.ended)
	defer f.probe.end()
	for {
		select {
		case e, ok := <-f.notify.Events:
			switch {
			case !ok:
				return
			case f.probe.takes(e):
			case e.Name == f.dir:
				if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
					return // fsnotify no longer watches it
				}
			default:
				f.mu.Lock()
				f.names[filepath.Base(e.Name)] = true
				f.mu.Unlock()
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
	if !f.probe.pass() {
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
	err := errors.Join(f.notify.Close(), f.probe.close())
	<-f.ended
	return err
}
