//go:build !linux

package minilm

// release does nothing: only Linux drops pages on request without a change of their
// content.
func release([]byte) {}
