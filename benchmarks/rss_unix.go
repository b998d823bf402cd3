//go:build unix

package benchmarks

import (
	"runtime"
	"syscall"
)

// peakRSS returns the largest resident set of this process so far in bytes.
func peakRSS() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" { // it counts bytes, other systems kilobytes
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10
}
