package client

import "syscall"

// endWithParent makes the kernel end a server when this process is killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
