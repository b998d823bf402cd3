package minilm

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"unsafe"
)

func TestReleasedFilesAreReadAgain(t *testing.T) {
	before := sha256.Sum256(weights)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(weights)))
	if !mapsFile(at, at+uintptr(len(weights))) {
		t.Error("the weights are not in a mapping of the test's file")
	}
	release(weights)
	if sha256.Sum256(weights) != before {
		t.Error("the weights have changed")
	}
}

// TestReleaseKeepsOtherMemory: pages of the heap would be empty afterwards.
func TestReleaseKeepsOtherMemory(t *testing.T) {
	text := bytes.Repeat([]byte("x"), 1<<20)
	release(text)
	if bytes.Count(text, []byte("x")) != len(text) {
		t.Error("memory of the heap was released")
	}
}
