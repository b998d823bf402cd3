//go:build unix && !linux

package client

import "syscall"

// endWithParent does nothing: a server ends when its input ends.
func endWithParent(*syscall.SysProcAttr) {}
