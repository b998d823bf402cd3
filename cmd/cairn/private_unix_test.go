//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/home"
)

// TestPrivateFiles runs commands that write every kind of private file, with a umask that
// forbids nothing. Other users can read none of them.
func TestPrivateFiles(t *testing.T) {
	top, cairn := t.TempDir(), binary(t)
	root, place, list := filepath.Join(top, "folder"), filepath.Join(top, "home"), filepath.Join(top, "tools")
	var tools strings.Builder
	for i := range 2100 { // as many as have an index of their own
		fmt.Fprintf(&tools, `{"server":"s","name":"tool%d","description":"Deploys the thing."}`+"\n", i)
	}
	if err := errors.Join(os.CopyFS(root, handbook()), os.WriteFile(list, []byte(tools.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"index"}, {"config", "set", "core.token_limit", "7000"}, {"tools", "import", list}, {"tools", "search", "deploy"}, {"ask", "why do tokens rotate?"}, {"card", "new", "first"},
		{"trust", root}, {"token", "new", "first"}, {"search", "rotate a token"}, {"roots", "add", "further", t.TempDir()}, {"backup", filepath.Join(place, "backup")}, {"status"},
	} {
		cmd := exec.Command("sh", append([]string{"-c", `umask 0; exec "$0" "$@"`, cairn}, append(args, "-C", root)...)...)
		cmd.Env = append(os.Environ(), home.Variable+"="+place, "XDG_CONFIG_HOME="+filepath.Join(place, "config"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("cairn %v: %v %s", args, err, out)
		}
	}
	files := 0
	err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		files++
		return err
	})
	if err != nil || files < 20 {
		t.Errorf("%d files, %v", files, err)
	}
}
