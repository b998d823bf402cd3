package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
)

// TestDamagedIndex damages an index: a search answers without it, an index run
// rebuilds it, and standard error has one line of cairn and none of a library.
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
	damage := func() {
		segments, err := filepath.Glob(filepath.Join(testutil.Place(t, root).Index, "keywords/*.zap"))
		if err != nil || len(segments) == 0 {
			t.Fatalf("segments: %q, %v", segments, err)
		}
		for _, name := range segments {
			if err := os.WriteFile(name, bytes.Repeat([]byte("damaged "), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, command := range [][]string{{"search", "--json", "rotate a token"}, {"index"}} {
		damage()
		if _, said := run(command...); strings.Count(said, "cairn: warning: the keyword index cannot be used") != 1 || strings.Contains(said, "snapshot") {
			t.Errorf("%s says %q, want one warning of ours and no library's", command[0], said)
		}
	}
	out, _ := run("search", "--json", "rotate a token")
	if !strings.Contains(out, "access/rotate-a-token.md") {
		t.Errorf("searching after the repair: %s", out)
	}
	if out, _ = run("search", "--json", "--mode", "keyword", "rotate a token"); !strings.Contains(out, "access/rotate-a-token.md") || !strings.Contains(out, `"degraded":[]`) {
		t.Errorf("searching after indexing: %s", out)
	}

	if err := os.Truncate(filepath.Join(testutil.Place(t, root).Index, "documents.db"), 0); err != nil {
		t.Fatal(err)
	}
	out, said := run("search", "--json", "rotate a token")
	if !strings.Contains(out, "access/rotate-a-token.md") || strings.Count(said, "documents.db is empty; it is being rebuilt") != 1 {
		t.Errorf("searching with an empty file of documents: %s\nstandard error: %s", out, said)
	}
}

// TestVerify damages each of cairn's own files: verify names it, verify --repair rebuilds or
// recovers it, and then all answers are the same as before.
func TestVerify(t *testing.T) {
	cairn, root := binary(t), t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(cairn, append(args, "-C", root)...)
		out, err := cmd.Output()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	tools, traces := filepath.Join(t.TempDir(), "tools.json"), filepath.Join(t.TempDir(), "traces")
	if err := errors.Join(
		os.WriteFile(tools, []byte(`{"server":"fs","name":"read"}`+"\n"+`{"server":"fs","name":"write"}`), 0o600),
		os.WriteFile(traces, []byte(`{"intent":"copy a file","calls":[{"tool":"read"},{"tool":"write"}]}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"index"}, {"tools", "import", "--source", "list", tools}, {"tools", "learn", traces}, {"ask", "why do tokens rotate?"}} {
		if out, code := run(args...); code != 0 {
			t.Fatalf("cairn %s: exit %d, %s", strings.Join(args, " "), code, out)
		}
	}
	answers := func() string {
		var all strings.Builder
		for _, args := range [][]string{{"search", "rotate a token"}, {"tools", "list"}, {"tools", "graph"}} {
			out, code := run(args...)
			fmt.Fprintln(&all, code, out)
		}
		return all.String()
	}
	want := answers()
	if out, code := run("verify"); code != 0 || strings.Contains(out, "DAMAGED") {
		t.Fatalf("cairn verify of whole files: exit %d\n%s", code, out)
	}
	place := testutil.Place(t, root)
	for _, file := range []struct{ pattern, text string }{
		{filepath.Join(place.Index, "documents.db"), "Rotating an access token"}, {filepath.Join(place.Index, "keywords/*.zap"), ""}, {filepath.Join(place.Index, "vectors/vectors.cairn"), ""},
		{filepath.Join(place.Records, "catalog.db"), "fs:write"}, {filepath.Join(place.Records, "usage.db"), "fs:write"}, {filepath.Join(place.Records, "stages.db"), "rotate?"},
		{filepath.Join(place.Records, "usage.db.snapshot"), ""},
	} {
		names, err := filepath.Glob(file.pattern)
		if err != nil || len(names) == 0 {
			t.Errorf("no %s: %v", file.pattern, err)
			continue
		}
		content, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		if file.text == "" {
			content[len(content)*2/3] ^= 1
		} else { // everywhere, since some pages are free
			content = bytes.ReplaceAll(content, []byte(file.text), []byte(strings.ToUpper(file.text)))
		}
		if err := os.WriteFile(names[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file.pattern)
		out, code := run("verify", "--json")
		if recovered := strings.HasSuffix(name, ".db") && name != "documents.db"; code != 1 && !(recovered && strings.Contains(out, `"repaired":`)) {
			t.Errorf("%s: verify exits %d: %s", name, code, out)
		}
		if out, code := run("verify", "--repair"); code != 0 || strings.Contains(out, "DAMAGED") {
			t.Errorf("%s: verify --repair exits %d\n%s", name, code, out)
		}
		if out, code := run("verify"); code != 0 || strings.Contains(out, "DAMAGED") {
			t.Errorf("%s: verify after the repair exits %d\n%s", name, code, out)
		}
		if got := answers(); got != want {
			t.Errorf("%s: answers after the repair:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestVerifyReportsLostFiles empties the file of the documents and removes a file of records:
// verify names both. The records come from their snapshot.
func TestVerifyReportsLostFiles(t *testing.T) {
	cairn, root := binary(t), t.TempDir()
	tools := filepath.Join(t.TempDir(), "tools.json")
	if err := errors.Join(os.CopyFS(root, handbook()), os.WriteFile(tools, []byte(`{"server":"fs","name":"read"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		out, err := exec.Command(cairn, append(args, "-C", root)...).CombinedOutput()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !(exited && args[0] == "verify") {
			t.Fatalf("cairn %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("index")
	run("tools", "import", "--source", "list", tools)
	place := testutil.Place(t, root)
	if err := errors.Join(os.Truncate(filepath.Join(place.Index, "documents.db"), 0), os.Remove(filepath.Join(place.Records, "catalog.db"))); err != nil {
		t.Fatal(err)
	}
	out := run("verify")
	for _, want := range []string{"documents.db is empty", "it is missing, its snapshot is not"} {
		if !strings.Contains(out, want) {
			t.Errorf("verify: %s\nwant %q", out, want)
		}
	}
	if out := run("tools", "list"); !strings.Contains(out, "read") {
		t.Errorf("tools list: %s", out)
	}
	if out := run("verify", "--repair"); strings.Contains(out, "DAMAGED") {
		t.Errorf("verify --repair: %s", out)
	}
}

// TestServersStartWithDamagedRecords: a server starts and searches although the files of the
// tools are damaged, even if a file cannot be opened.
func TestServersStartWithDamagedRecords(t *testing.T) {
	cairn, root := binary(t), t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cairn, "index", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	records := testutil.Place(t, root).Records
	ask := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_context","arguments":{"query":"rotate a token"}}}` + "\n"
	for name, damage := range map[string]func(path string) error{
		"a byte":   func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	} {
		for _, file := range []string{"usage.db", "catalog.db", "stages.db"} {
			path := filepath.Join(records, file)
			if err := errors.Join(os.RemoveAll(path), damage(path)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(cairn, "mcp", "-C", root)
			cmd.Stdin = strings.NewReader(ask)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), "access/rotate-a-token.md") {
				t.Errorf("%s instead of %s: %v\n%.400s\n%s", name, file, err, out, stderr.String())
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}
