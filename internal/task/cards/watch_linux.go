package cards

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watch is told by the kernel which files of a folder change (inotify(7)). An
// event is queued before the system call that caused it returns, so that whoever
// asks afterwards hears of it. A library that reads the events in a goroutine
// of its own cannot promise that, which is why none is used here.
type watch struct {
	fd       int
	dev, ino uint64
	stop     runtime.Cleanup
}

// local are the file systems on which nobody changes files behind the kernel's
// back, as the other machines of a network file system do.
var local = map[uint32]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true,
	unix.TMPFS_MAGIC: true, unix.F2FS_SUPER_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true,
}

// Whatever makes a file's content or its place in the folder another.
const watched = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// newWatch watches a folder. The error says why that cannot be done here.
func newWatch(dir string) (*watch, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	var where unix.Statfs_t
	var what unix.Stat_t
	if err := unix.Fstatfs(int(folder.Fd()), &where); err != nil {
		return nil, err
	}
	if !local[uint32(where.Type)] {
		return nil, fmt.Errorf("file system %#x may change without notice", where.Type)
	}
	if err := unix.Fstat(int(folder.Fd()), &what); err != nil {
		return nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	// By its descriptor, lest it is another folder of that name by now.
	if _, err := unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", folder.Fd()), watched|unix.IN_ONLYDIR); err != nil {
		unix.Close(fd)
		return nil, err
	}
	w := &watch{fd: fd, dev: what.Dev, ino: what.Ino}
	w.stop = runtime.AddCleanup(w, func(fd int) { unix.Close(fd) }, fd)
	return w, nil
}

// of reports whether it is that folder that is watched.
func (w *watch) of(folder fs.FileInfo) bool {
	st, ok := folder.Sys().(*syscall.Stat_t)
	return ok && st.Dev == w.dev && st.Ino == w.ino
}

// changed returns the names of the files that changed since it was last called.
// complete is false when there may be more: then every file is to be looked at.
func (w *watch) changed() (names []string, complete bool) {
	var buf [16 << 10]byte
	for {
		n, err := unix.Read(w.fd, buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return names, true
		case err != nil || n < unix.SizeofInotifyEvent:
			return nil, false
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			mask := binary.NativeEndian.Uint32(b[unsafe.Offsetof(unix.InotifyEvent{}.Mask):])
			size := int(binary.NativeEndian.Uint32(b[unsafe.Offsetof(unix.InotifyEvent{}.Len):])) + unix.SizeofInotifyEvent
			if mask&(unix.IN_Q_OVERFLOW|unix.IN_IGNORED|unix.IN_UNMOUNT|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0 || size > len(b) {
				return nil, false
			}
			if name := string(bytes.TrimRight(b[unix.SizeofInotifyEvent:size], "\x00")); name != "" {
				names = append(names, name)
			}
			b = b[size:]
		}
	}
}

func (w *watch) close() {
	w.stop.Stop()
	unix.Close(w.fd)
}
