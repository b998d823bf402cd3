//go:build unix

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInheritedDescriptorIsClosed gives this process a descriptor that exec does not close,
// as a shell can.
func TestInheritedDescriptorIsClosed(t *testing.T) {
	const high = 100 // the child opens descriptors of its own below
	fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD, high)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	fresh := New(pool.name, limits, act)
	response, err := fresh.Call(fmt.Append(nil, "descriptor ", fd))
	if err != nil || !strings.Contains(string(response), "bad file descriptor") {
		t.Errorf("%q, %v", response, err)
	}
}
