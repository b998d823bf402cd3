//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// arenas is the address space in bytes that the Go runtime may reserve and not use, since
// it reserves 64 MiB at a time. Without it, a child fails at 180 MiB of 256.
const arenas = 128 << 20

// restrict limits this process for its remaining life.
func restrict(limits Limits) error {
	if err := closeInherited(); err != nil {
		return err
	}
	if err := setLimit(unix.RLIMIT_CPU, uint64((limits.Time+time.Second-1)/time.Second)); err != nil {
		return err
	}
	// The Go runtime reserves address space that it never uses, so the limits are relative
	// to the present sizes. Systems other than Linux do not report them.
	var all, resident, shared, code, unused, data uint64 // pages
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		if _, err := fmt.Sscan(string(statm), &all, &resident, &shared, &code, &unused, &data); err == nil {
			page, memory := uint64(os.Getpagesize()), uint64(limits.Memory)
			if err := setLimit(unix.RLIMIT_DATA, data*page+memory+stacks); err != nil {
				return err
			}
			if err := setLimit(unix.RLIMIT_AS, all*page+memory+stacks+arenas); err != nil {
				return err
			}
		}
	}
	return confine()
}

// closeInherited closes the descriptors that the program's own parent left open. All that
// Go opens are closed by exec.
func closeInherited() error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
	return nil
}

// setLimit lowers the soft and the hard limit of a resource to n.
func setLimit(resource int, n uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil {
		return err
	}
	lower(&limit.Cur, n)
	lower(&limit.Max, n)
	return unix.Setrlimit(resource, &limit)
}

// lower reduces a limit, whose type depends on the system, to n. An unlimited resource has
// the largest value of the type.
func lower[T int64 | uint64](limit *T, n uint64) {
	if uint64(*limit) > n {
		*limit = T(n)
	}
}
