//go:build darwin || freebsd || netbsd

package walk

import "syscall"

func changed(st *syscall.Stat_t) int64 { return st.Ctimespec.Nano() }
