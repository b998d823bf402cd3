package bert

import (
	"sync"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// permitAMX reports whether this process may use AMX. A process has to ask Linux, since
// the tiles enlarge the state that the kernel saves for each thread and signal.
var permitAMX = sync.OnceValue(func() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18     // XFEATURE_XTILEDATA
	)
	if x := &cpu.X86; !x.HasAMXTile || !x.HasAMXInt8 || !x.HasAMXBF16 || !x.HasAVX512BF16 {
		return false
	}
	_, _, err := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return err == 0
})
