//go:build !linux

package bert

// permitAMX reports that this process may not use AMX.
func permitAMX() bool { return false }
