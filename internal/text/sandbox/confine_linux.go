package sandbox

import (
	"runtime"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// denied names the system calls that open or change files, use the network, or affect
// other processes. A name may be missing on some architectures.
var denied = []string{
	"open", "openat", "openat2", "open_by_handle_at", "creat", "unlink", "unlinkat", "rename", "renameat", "renameat2",
	"link", "linkat", "symlink", "symlinkat", "mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "truncate",
	"chmod", "fchmodat", "chown", "fchownat", "mount", "umount2", "pivot_root", "chroot", "chdir",
	"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "io_uring_setup",
	"execve", "execveat", "fork", "vfork", "ptrace", "kill", "tkill", "process_vm_readv", "process_vm_writev",
	"pidfd_open", "pidfd_getfd", "unshare", "setns", "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key",
	"init_module", "finit_module", "prlimit64", "setrlimit",
}

// confine denies the system calls that a function without side effects never needs. It
// does nothing where the kernel has no seccomp.
func confine() error {
	system, err := arch.GetInfo("")
	if err != nil || !seccomp.Supported() {
		return nil
	}
	names := slices.DeleteFunc(slices.Clone(denied), func(name string) bool {
		_, known := system.SyscallNames[name]
		return !known
	})
	runtime.LockOSThread() // the filter needs the attribute no_new_privs of the same thread
	defer runtime.UnlockOSThread()
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls: []seccomp.SyscallGroup{
				{Action: seccomp.ActionErrno, Names: names},
				{Action: seccomp.ActionErrno, NamesWithCondtions: []seccomp.NameWithConditions{{
					Name:       "clone",
					Conditions: []seccomp.Condition{{Argument: 0, Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD}},
				}}},
				// The C library then calls clone, whose flags a filter can read.
				{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
			},
		},
	})
}
