//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestInheritedDescriptorIsClosed gives this process a descriptor that exec does not close,
// as a shell can.
func TestInheritedDescriptorIsClosed(t *testing.T) {
	fd, err := syscall.Dup(int(os.Stderr.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	fresh := New(pool.name, limits, act)
	response, err := fresh.Call(fmt.Append(nil, "descriptor ", fd))
	if err != nil || !strings.Contains(string(response), "bad file descriptor") {
		t.Errorf("%q, %v", response, err)
	}
}
