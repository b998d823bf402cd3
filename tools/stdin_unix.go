//go:build unix

package tools

import (
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// pollable returns a reader of in that waits in the runtime's poller if in is a pipe or a
// socket, and a function that restores in.
//
// MCP clients start a server with a pipe as standard input, which Go opens as a blocking
// file. A goroutine that reads it waits in a system call and occupies one of the runtime's
// processors until the runtime's monitor retakes the processor, up to 10 ms later. With two
// processors, a parallel search would run on only one of them for that time.
//
// pollable returns other input unchanged, such as a terminal that is shared with a shell.
func pollable(in io.Reader) (io.Reader, func()) {
	same := func() {}
	f, ok := in.(*os.File)
	if !ok {
		return in, same
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 || f.SetReadDeadline(time.Time{}) == nil {
		return in, same // not a pipe, or in the poller already
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
		// Both descriptors refer to the same open file, and so share the flag.
		_ = conn.Control(func(fd uintptr) { _ = syscall.SetNonblock(int(fd), false) })
	}
}
