//go:build unix

package main

import (
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// parked makes reading from a pipe or a socket, which is how clients of MCP
// start a server, wait in the runtime's poller, and returns what to read and how
// to undo it. Standard input comes as a blocking file: a goroutine that reads it
// waits inside a system call and holds one of the runtime's processors until the
// monitor takes that away, up to 10 ms later. With two processors a search that
// is split among both runs on one of them for that long.
//
// Anything else, such as a terminal that is shared with a shell, stays as it is.
func parked(in io.Reader) (io.Reader, func()) {
	same := func() {}
	f, ok := in.(*os.File)
	if !ok {
		return in, same
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 || f.SetReadDeadline(time.Time{}) == nil {
		return in, same // no pipe, or one that the poller has
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return in, same
	}
	// A descriptor of its own, so that closing one does not close the other.
	own := -1
	if conn.Control(func(fd uintptr) { own, err = syscall.Dup(int(fd)) }) != nil || err != nil {
		return in, same
	}
	syscall.CloseOnExec(own)
	if err := syscall.SetNonblock(own, true); err != nil {
		syscall.Close(own)
		return in, same
	}
	p := os.NewFile(uintptr(own), f.Name())
	return p, func() {
		p.Close()
		// Both descriptors name one open pipe, and so share the flag.
		_ = conn.Control(func(fd uintptr) { _ = syscall.SetNonblock(int(fd), false) })
	}
}
