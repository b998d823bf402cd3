//go:build !linux

package minilm

// release does nothing. Only Linux can release pages and keep their content.
func release([]byte) {}
