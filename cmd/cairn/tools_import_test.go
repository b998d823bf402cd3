//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImportFromARunningServer imports the tools of a server over HTTP, this
// program's own, and imports them again.
func TestImportFromARunningServer(t *testing.T) {
	s := startServe(t, "--no-index", "-C", t.TempDir())
	box := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(binary(t), append(args, "-C", box)...).CombinedOutput()
		if err != nil {
			t.Fatalf("cairn %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run("tools", "import", "--url", s.url+"/mcp"); !strings.Contains(out, s.url+"/mcp: ") || !strings.Contains(out, " 0 changed, 0 removed, 0 unchanged)") {
		t.Errorf("the import says\n%s", out)
	}
	if out := run("tools", "import", "--url", s.url+"/mcp", "--json"); !strings.Contains(out, `"added":[],"changed":[],"removed":[]`) {
		t.Errorf("importing again says\n%s", out)
	}
	if out := run("tools", "show", "read_doc"); !strings.Contains(out, "cairn:read_doc") || !strings.Contains(out, "max_tokens") {
		t.Errorf("the tool is\n%s", out)
	}
	if out := run("tools", "search", "read lines of a document"); !strings.Contains(out, "cairn:read_doc") {
		t.Errorf("it is not found by what it does:\n%s", out)
	}
}
