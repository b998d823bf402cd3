//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A search by keyword works although the vectors of a folder cannot be written, as on a full
// disk. A limit on the size of files simulates the disk.
func TestSearchWithoutRoomForVectors(t *testing.T) {
	cairn := binary(t)
	root := t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cairn, "index", "--no-embed", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command("sh", "-c", `ulimit -f 8 && exec "$0" search -C "$1" rotate a token`, cairn, root)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Errorf("searching: %v, %s", err, &said)
	}
	if !strings.Contains(out.String(), "rotate-a-token.md") {
		t.Errorf("the answer is %q, want rotate-a-token.md in it", &out)
	}
	if !strings.Contains(said.String(), "answering from the indexed files, because indexing the rest failed") || !strings.Contains(said.String(), "file too large") {
		t.Errorf("standard error is %q, want it to say what failed", &said)
	}
}
