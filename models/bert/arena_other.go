//go:build !linux

package bert

func adviseHuge([]byte) {}
