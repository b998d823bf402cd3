//go:build !unix

package benchmarks

// peakRSS returns 0: it is unknown on this system.
func peakRSS() int64 { return 0 }
