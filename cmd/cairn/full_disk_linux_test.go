package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cairn/internal/base/testutil"
)

// TestFullDisk puts the files of a folder on a disk with little free space. Commands that write
// report this, and work when there is space again.
func TestFullDisk(t *testing.T) {
	cairn, folder := binary(t), t.TempDir()
	if err := testutil.WriteFolder(folder, 30, 1); err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(tools, []byte(`[{"name":"zip","description":"`+strings.Repeat("Packs files. ", 2000)+`"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kib := range []int{0, 8, 16, 24, 48, 128, 256} {
		t.Run(fmt.Sprint(kib, " KiB left"), func(t *testing.T) {
			disk := t.TempDir()
			if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
				t.Skipf("mounting a small disk needs root: %v", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(disk, 0); err != nil {
					t.Error(err)
				}
			})
			run := func(args ...string) (string, error) {
				cmd := exec.Command(cairn, append(args, "-C", folder)...)
				cmd.Env = append(os.Environ(), "CAIRN_HOME="+disk)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := run("status"); err != nil { // makes the directories
				t.Fatalf("status: %v\n%s", err, out)
			}
			ballast := fill(t, disk, kib<<10)
			for _, args := range [][]string{{"index", "--no-embed"}, {"search", "a word"}, {"tools", "import", "--no-embed", tools}} {
				out, err := run(args...)
				if strings.Contains(out, "damaged") || strings.Contains(out, "rebuil") || err != nil && !strings.Contains(out, "no space left on device") {
					t.Errorf("%s: %v\n%s\nwant an error that says that no space is left", args, err, out)
				}
				if kib == 0 && args[0] != "search" && err == nil {
					t.Errorf("%s succeeds on a full disk:\n%s", args, out)
				}
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"index", "--no-embed"}, {"tools", "import", "--no-embed", tools}, {"verify"}} {
				if out, err := run(args...); err != nil || strings.Contains(out, "damaged") {
					t.Errorf("with room again, %s: %v\n%s", args, err, out)
				}
			}
		})
	}
}

// fill fills a disk except for a number of bytes.
func fill(t *testing.T, disk string, left int) string {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(disk, &s); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(disk, "ballast")
	if err := os.WriteFile(name, make([]byte, int(s.Bavail)*int(s.Bsize)-left), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
