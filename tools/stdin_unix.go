//go:build unix

package tools

import (
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// pollable makes reading from a pipe or a socket wait in the runtime's poller, and
// returns the reader and a function that restores in. Clients of MCP start a
// server with such a standard input, and it comes as a blocking file: a goroutine
// that reads it waits inside a system call and holds one of the runtime's
// processors until the monitor takes that away, up to 10 ms later. With two
// processors a search that is split among both runs on one of them for that long.
//
// It does not change other input, such as a terminal that is shared with a shell.
func pollable(in io.Reader) (io.Reader, func()) {
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
	// Duplicate the descriptor, so that closing one does not close the other.
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
