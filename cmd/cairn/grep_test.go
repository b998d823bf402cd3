package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestGrep: the lines around matches, the place and the exit code are those of ripgrep.
func TestGrep(t *testing.T) {
	t.Setenv("CAIRN_HOME", t.TempDir())
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.md":      "# Title\none\ntwo ERR_42\nthree\nfour\nfive err_42 ERR_42\nsix\nERR_42 last",
		"docs/b.md": "ERR_42\r\nnothing\r\nmore\r\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	grep := func(want int, args ...string) string {
		t.Helper()
		var out, notes bytes.Buffer
		if code := run(append([]string{"grep"}, args...), strings.NewReader(""), &out, &notes); code != want {
			t.Errorf("%q: exit %d, want %d: %s", args, code, want, notes.String())
		}
		return out.String()
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"ERR_42", 0, "a.md:3:two ERR_42\na.md:6:five err_42 ERR_42\na.md:8:ERR_42 last\ndocs/b.md:1:ERR_42\n"},
		{"-i ^err_42$", 0, "docs/b.md:1:ERR_42\n"},
		{"-F -B1 ERR_42 docs/", 0, "docs/b.md:1:ERR_42\n"},
		{"-A 1 two|six", 0, "a.md:3:two ERR_42\na.md-4-three\n--\na.md:7:six\na.md-8-ERR_42 last\n"},
		{"-C 1 f(our|ive)", 0, "a.md-4-three\na.md:5:four\na.md:6:five err_42 ERR_42\na.md-7-six\n"},
		{"--limit 1 ERR_42", 0, "a.md:3:two ERR_42\n"},
		{"-F f(our", 1, ""},
		{"absent", 1, ""},
		{"f(our", 2, ""},
	} {
		if got := grep(c.code, strings.Fields(c.args)...); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", c.args, got, c.want)
		}
	}
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not installed: its --json is not compared")
	}
	for _, args := range [][]string{{"ERR_42"}, {"-i", "-C", "1", "err_42|four"}, {"-F", "-B", "2", "last"}} {
		out, err := exec.Command(rg, append([]string{"--no-config", "--json", "--sort=path"}, args...)...).Output()
		if err != nil {
			t.Fatal(args, err)
		}
		got, want := grepEvents(t, grep(0, append([]string{"--json"}, args...)...)), grepEvents(t, string(out))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q --json:\n%v\nrg:\n%v", args, got, want)
		}
	}
}

// grepEvents returns what events of ripgrep say about files, lines and matches.
func grepEvents(t *testing.T, text string) (events []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e struct {
			Type string
			Data map[string]any
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(line, err)
		}
		event := map[string]any{"type": e.Type}
		for _, field := range []string{"path", "line_number", "absolute_offset", "submatches"} {
			event[field] = e.Data[field]
		}
		if lines, ok := e.Data["lines"].(map[string]any); ok {
			event["text"] = strings.TrimRight(lines["text"].(string), "\r\n")
		}
		if e.Type == "summary" {
			stats := e.Data["stats"].(map[string]any)
			event["stats"] = []any{stats["matched_lines"], stats["matches"], stats["searches_with_match"]}
		}
		events = append(events, event)
	}
	return events
}
