package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/testutil"
)

// TestDamagedIndex damages an index: a search answers without it, an index run
// rebuilds it, and standard error holds one line of cairn's and none of a library's.
func TestDamagedIndex(t *testing.T) {
	cairn, root := binary(t), t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (out, said string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(cairn, append(args, "-C", root)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("cairn %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return stdout.String(), stderr.String()
	}
	run("index")
	segments, err := filepath.Glob(filepath.Join(testutil.Place(t, root).Index, "keywords/*.zap"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments: %q, %v", segments, err)
	}
	for _, name := range segments {
		if err := os.WriteFile(name, bytes.Repeat([]byte("damaged "), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, said := run("search", "--json", "rotate a token")
	if !strings.Contains(out, "access/rotate-a-token.md") || !strings.Contains(out, `"degraded":["keywords"]`) || said != "" {
		t.Errorf("searching without the keyword index: %s\nstandard error: %s", out, said)
	}
	_, said = run("index")
	if !strings.Contains(said, "cairn: warning: the keyword index cannot be used") || strings.Contains(said, "snapshot") {
		t.Errorf("indexing says %q, want a warning of ours and no library's", said)
	}
	if out, _ = run("search", "--json", "--mode", "keyword", "rotate a token"); !strings.Contains(out, "access/rotate-a-token.md") || !strings.Contains(out, `"degraded":[]`) {
		t.Errorf("searching after indexing: %s", out)
	}

	if err := os.Truncate(filepath.Join(testutil.Place(t, root).Index, "documents.db"), 0); err != nil {
		t.Fatal(err)
	}
	out, said = run("search", "--json", "rotate a token")
	if !strings.Contains(out, "access/rotate-a-token.md") || strings.Count(said, "documents.db is empty; it is being rebuilt") != 1 {
		t.Errorf("searching with an empty file of documents: %s\nstandard error: %s", out, said)
	}
}
