package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHook connects and disconnects with settings of several layouts: the settings become what
// they were, byte for byte, and what someone else writes meanwhile stays.
func TestHook(t *testing.T) {
	const foreign = `{"hooks":[{"type":"command","command":"make hello"}]}`
	for name, before := range map[string]string{
		"none":     "",
		"empty":    "{}",
		"settings": "{\n\t\"model\": \"opus\", // mine\n\t\"env\": {}\n}\n",
		"hooks":    `{"hooks": {"PreToolUse": []}}`,
		"sessions": `{"hooks": {"SessionStart": [` + foreign + `]}, "x": 1.50}`,
		"strange":  `{"hooks": {"SessionStart": ["x", null, {"hooks": ["y"]}, {"hooks": [{"command": 5}]}, {"hooks": 1}]}}`,
		"crlf":     "\ufeff{\r\n  \"hooks\": {\r\n    \"SessionStart\": [\r\n      " + foreign + ",\r\n    ],\r\n  },\r\n}",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ByName("claude-code")
			if err != nil {
				t.Fatal(err)
			}
			at := File{Root: t.TempDir(), Copies: t.TempDir()}
			path := filepath.Join(at.Root, ".claude", "settings.json")
			if before != "" {
				put(t, path, before)
			}
			now := func() string { text, _ := os.ReadFile(path); return string(text) }
			change := func(program string) {
				t.Helper()
				f, err := c.Hook(at, program)
				if err == nil {
					_, err = f.Write()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			change("cairn")
			added := now()
			if !strings.Contains(added, `"cairn status --brief -C \"$CLAUDE_PROJECT_DIR\""`) || strings.Contains(before, foreign) != strings.Contains(added, "make hello") {
				t.Fatalf("%s", added)
			}
			if change("cairn"); now() != added {
				t.Errorf("a second hook: %s", now())
			}
			if change("/opt/a b/cairn"); strings.Count(now(), "status --brief") != 1 || !strings.Contains(now(), `"\"/opt/a b/cairn\" status --brief`) {
				t.Errorf("another program: %s", now())
			}
			if change(""); now() != before {
				t.Errorf("after disconnect:\n%s\nwant\n%s", now(), before)
			}
			if _, err := os.Stat(filepath.Dir(path)); before == "" && !os.IsNotExist(err) {
				t.Error("an empty folder stays")
			}
			if entries, _ := os.ReadDir(at.Copies); len(entries) > 0 {
				t.Errorf("%d records stay", len(entries))
			}

			change("cairn")
			put(t, path, strings.Replace(now(), "{", `{"new": true, `, 1))
			if change(""); strings.Contains(now(), "cairn") || !strings.Contains(now(), `"new": true`) || strings.Contains(before, foreign) != strings.Contains(now(), "make hello") {
				t.Errorf("after an edit: %s", now())
			}
		})
	}
	for _, bad := range []string{"no JSON", "[]", `{"hooks": []}`, `{"hooks": {"SessionStart": {}}}`} {
		if text, err := setHook("settings.json", []byte(bad), "cairn"); err == nil {
			t.Errorf("%s becomes %s", bad, text)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
