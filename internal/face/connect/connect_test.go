package connect

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var entry = Entry{Command: "/bin/cairn", Args: []string{"mcp", "-C", "/w"}}

// write makes a planned change.
func write(f *Change, err error) (*Result, error) {
	if err != nil {
		return nil, err
	}
	return f.Write()
}

func named(t *testing.T, name string) Client {
	t.Helper()
	c, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMerge(t *testing.T) {
	const own = `{
    "cairn": {
      "command": "/bin/cairn",
      "args": [
        "mcp",
        "-C",
        "/w"
      ]
    }
  }`
	for _, c := range []struct{ name, client, old, want string }{
		{"new", "cursor", "", "{\n  \"mcpServers\": " + own + "\n}\n"},
		{"blank", "cursor", " \n", "{\n  \"mcpServers\": " + own + "\n}\n"},
		{"empty object", "gemini", "{}", "{\n  \"mcpServers\": " + own + "\n}"},
		{"beside others", "zed", `{
	// how it looks
	"theme": "one", /* dark */
	"context_servers": {
		"other": { "command": "x" } // keep me
	},
	"tabs": 4,
}
`, `{
	// how it looks
	"theme": "one", /* dark */
	"context_servers": {
		"other": { "command": "x" }, // keep me
		"cairn": {
			"command": "/bin/cairn",
			"args": [
				"mcp",
				"-C",
				"/w"
			]
		}
	},
	"tabs": 4,
}
`},
		{"on one line", "claude-code", `{"mcpServers":{"a":{"command":"x"}}}`, `{"mcpServers":{"a":{"command":"x"},
    "cairn": {
      "command": "/bin/cairn",
      "args": [
        "mcp",
        "-C",
        "/w"
      ]
    }
  }}`},
		{"there already, with more", "claude-code", `{"mcpServers":{"cairn":{"env":{"A":"b"},"command":"/bin/cairn","args":["mcp","-C","/w"]}}}`,
			`{"mcpServers":{"cairn":{"env":{"A":"b"},"command":"/bin/cairn","args":["mcp","-C","/w"]}}}`},
		{"toml", "codex", "# mine\nmodel = \"x\" # yes\n\n[mcp_servers.other]\ncommand = \"y\"", "# mine\nmodel = \"x\" # yes\n\n[mcp_servers.other]\ncommand = \"y\"\n\n[mcp_servers.cairn]\ncommand = \"/bin/cairn\"\nargs = [\"mcp\", \"-C\", \"/w\"]\n"},
		{"toml new", "codex", "", "[mcp_servers.cairn]\ncommand = \"/bin/cairn\"\nargs = [\"mcp\", \"-C\", \"/w\"]\n"},
		{"toml there already", "codex", "[mcp_servers.cairn]\ncommand = '/bin/cairn'\nargs = ['mcp', '-C', '/w']\nenv = {A='b'}\n", "[mcp_servers.cairn]\ncommand = '/bin/cairn'\nargs = ['mcp', '-C', '/w']\nenv = {A='b'}\n"},
	} {
		windows := strings.NewReplacer("\n", "\r\n")
		if got, err := named(t, c.client).Merge("f", []byte(windows.Replace(c.old)), "cairn", entry, false); strings.Contains(c.old, "\n") && (err != nil || string(got) != windows.Replace(c.want)) {
			t.Errorf("%s with line ends of Windows: %q, %v", c.name, got, err)
		}
		got, err := named(t, c.client).Merge("f", []byte(c.old), "cairn", entry, false)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, cmp.Diff(c.want, string(got)))
			continue
		}
		again, err := named(t, c.client).Merge("f", got, "cairn", entry, false)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: a second time: %v\n%s", c.name, err, again)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	for _, c := range []struct {
		name, client, old string
		force             bool
		want              string // part of the error, "" for none
	}{
		{"not JSON", "zed", "{ theme: 1 }", true, "is not JSON"},
		{"half a file", "zed", `{"a": {`, true, "is not JSON"},
		{"an array", "zed", "[]", true, "not a JSON object"},
		{"null", "zed", "null", true, "not a JSON object"},
		{"servers are a list", "cursor", `{"mcpServers": []}`, true, "mcpServers in it is not an object"},
		{"another entry", "cursor", `{"mcpServers": {"cairn": {"command": "other"}}}`, false, "--force"},
		{"another entry, forced", "cursor", `{"mcpServers": {"cairn": {"command": "other"}}}`, true, ""},
		{"an entry twice", "cursor", `{"mcpServers": {"cairn": {"command": "a"}, "cairn": {"command": "b"}}}`, true, "twice"},
		{"servers twice", "cursor", `{"mcpServers": {}, "mcpServers": {"x": {}}}`, true, "twice"},
		{"not TOML", "codex", "= 1", true, "is not TOML"},
		{"inline servers", "codex", "mcp_servers = {}", true, "does not consist of tables"},
		{"another table", "codex", "[mcp_servers.cairn]\ncommand = 'x'\n", false, "--force"},
		{"another table, forced", "codex", "[mcp_servers.cairn]\ncommand = 'x'\n", true, ""},
	} {
		got, err := named(t, c.client).Merge("f", []byte(c.old), "cairn", entry, c.force)
		if c.want == "" {
			if err != nil || !strings.Contains(string(got), "/bin/cairn") || strings.Contains(string(got), "other") {
				t.Errorf("%s: %q, %v", c.name, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v, want an error with %q", c.name, got, err, c.want)
		}
	}
	if _, err := ByName("emacs"); err == nil || !strings.Contains(err.Error(), "claude-code") {
		t.Errorf("ByName of an unknown client: %v", err)
	}
}

func TestWrite(t *testing.T) {
	dir, copies := t.TempDir(), filepath.Join(t.TempDir(), "copies")
	c := named(t, "zed")
	real := filepath.Join(dir, "dotfiles", "zed.json")
	const old = "{\n  // mine\n  \"a\": 1\n}\n"
	if err := errors.Join(os.Mkdir(filepath.Dir(real), 0o755), os.WriteFile(real, []byte(old), 0o640)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "settings.json")
	if err := os.Symlink(real, path); err != nil {
		t.Skip(err)
	}
	r, err := write(c.Add(File{"", path, copies}, "cairn", entry, false))
	if err != nil || !r.Changed || r.Path != real {
		t.Fatalf("Write = %+v, %v", r, err)
	}
	if kept, err := os.ReadFile(r.Backup); err != nil || string(kept) != old {
		t.Errorf("the copy is %q, %v", kept, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "// mine") || !strings.Contains(string(text), `"cairn"`) {
		t.Errorf("written is %q, %v", text, err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v, want that of before", info.Mode(), err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if r, err := write(c.Add(File{"", path, copies}, "cairn", entry, false)); err != nil || r.Changed || r.Backup != "" {
		t.Errorf("a second Write = %+v, %v, want nothing done", r, err)
	}
	r2, err := write(c.Add(File{"", path, copies}, "notes", entry, false))
	if err != nil || r2.Backup != r.Backup || !r2.Changed {
		t.Errorf("another name: %+v, %v", r2, err)
	}
	if err := os.WriteFile(real, []byte("{ broken"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := write(c.Add(File{"", path, copies}, "cairn", entry, true)); err == nil {
		t.Error("a broken file was written over")
	}
	if text, err := os.ReadFile(real); err != nil || string(text) != "{ broken" {
		t.Errorf("after a refusal the file is %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "dotfiles", ".*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	fresh := filepath.Join(dir, "new", "deep", "mcp.json")
	if r, err := write(named(t, "cursor").Add(File{"", fresh, copies}, "cairn", entry, false)); err != nil || !r.Changed || r.Backup != "" {
		t.Errorf("a new file: %+v, %v", r, err)
	}
}

// TestWriteInAFolderFollowsNoLink: the file of a client in the workspace may be a link
// that came with it.
func TestWriteInAFolderFollowsNoLink(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "victim.json")
	if err := os.WriteFile(outside, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{outside, filepath.Join(filepath.Dir(outside), "missing.json"), "other.json"} {
		root := t.TempDir()
		path := filepath.Join(root, ".mcp.json")
		if err := errors.Join(os.WriteFile(filepath.Join(root, "other.json"), []byte("{}\n"), 0o600), os.Symlink(target, path)); err != nil {
			t.Skip(err)
		}
		if r, err := write(named(t, "claude-code").Add(File{root, path, t.TempDir()}, "cairn", entry, true)); err == nil {
			t.Errorf("a link to %s: %+v", target, r)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link to %s was replaced: %v", target, err)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "{}\n" {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(outside)); len(left) != 1 {
		t.Errorf("outside there is %v", left)
	}
}

func TestPaths(t *testing.T) {
	place := Place{Root: "/w", Home: "/h", OS: "linux", Env: func(string) string { return "" }}
	env := func(key, value string) func(string) string {
		return func(k string) string {
			if k == key {
				return value
			}
			return ""
		}
	}
	for _, c := range []struct {
		client string
		os     string
		env    func(string) string
		want   string
	}{
		{"claude-code", "linux", nil, "/w/.mcp.json"},
		{"claude-desktop", "linux", nil, "/h/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", "linux", env("XDG_CONFIG_HOME", "/x"), "/x/Claude/claude_desktop_config.json"},
		{"claude-desktop", "darwin", nil, "/h/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-desktop", "windows", env("APPDATA", "/r"), "/r/Claude/claude_desktop_config.json"},
		{"codex", "linux", nil, "/h/.codex/config.toml"},
		{"codex", "linux", env("CODEX_HOME", "/c"), "/c/config.toml"},
		{"cursor", "linux", nil, "/w/.cursor/mcp.json"},
		{"gemini", "linux", nil, "/w/.gemini/settings.json"},
		{"vscode", "linux", nil, "/w/.vscode/mcp.json"},
		{"zed", "darwin", env("XDG_CONFIG_HOME", "/x"), "/h/.config/zed/settings.json"},
		{"zed", "windows", env("APPDATA", "/r"), "/r/Zed/settings.json"},
		{"cline", "linux", nil, "/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
		{"cline", "darwin", nil, "/h/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"},
		{"kiro", "linux", nil, "/w/.kiro/settings/mcp.json"},
		{"opencode", "linux", nil, "/w/opencode.json"},
		{"roo", "linux", nil, "/w/.roo/mcp.json"},
		{"windsurf", "linux", nil, "/h/.codeium/windsurf/mcp_config.json"},
	} {
		p := place
		p.OS = c.os
		if c.env != nil {
			p.Env = c.env
		}
		if got, err := named(t, c.client).File(p); err != nil || filepath.ToSlash(got) != c.want {
			t.Errorf("%s on %s: %s, %v, want %s", c.client, c.os, got, err, c.want)
		}
	}
	if got := named(t, "vscode").Text("cairn", named(t, "vscode").Entry("cairn", "/w")); !strings.Contains(got, `"servers"`) || !strings.Contains(got, `"type": "stdio"`) || !strings.Contains(got, "${workspaceFolder}") {
		t.Errorf("VS Code's text is %s", got)
	}
}

// TestTomlText: a path with control characters is valid TOML.
func TestTomlText(t *testing.T) {
	const root = "/a\ab\vc\x01d\x7fe\t\"é\u2028"
	c := named(t, "codex")
	text := c.Text("cairn", Entry{Command: "cairn", Args: []string{"mcp", "-C", root}})
	if e, ok := entryOf(c.servers([]byte(text))["cairn"]); !ok || !slices.Equal(e.Args, []string{"mcp", "-C", root}) {
		t.Errorf("%s\nhas the arguments %q", text, e.Args)
	}
}
