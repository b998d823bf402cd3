package connect

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGuideComesAndGoes: the block is added to what people wrote, and removing it
// restores every byte.
func TestGuideComesAndGoes(t *testing.T) {
	for _, c := range []struct{ name, old string }{
		{"new", ""},
		{"text", "# Rules\n\nUse tabs.\n"},
		{"no newline at the end", "# Rules\n\nUse tabs."},
		{"blank lines at the end", "# Rules\n\n\n"},
		{"one newline", "\n"},
		{"a line feed of Windows", "# Rules\r\n\r\nUse tabs.\r\n"},
		{"of Windows without one at the end", "# Rules\r\nUse tabs."},
		{"byte order mark", "\ufeff# Rules\n"},
	} {
		for _, client := range []string{"codex", "cursor"} {
			root := t.TempDir()
			cl := named(t, client)
			path := filepath.Join(root, filepath.FromSlash(cl.Guide))
			if c.old != "" {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(c.old), 0o640)); err != nil {
					t.Fatal(err)
				}
			}
			if r, err := write(cl.AddGuide(root, "notes")); err != nil || !r.Changed || r.Path != path {
				t.Fatalf("%s, %s: %+v, %v", c.name, client, r, err)
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.HasPrefix(string(text), c.old) || !strings.Contains(string(text), "`notes`") || !strings.Contains(string(text), "grep") {
				t.Errorf("%s, %s: %q, %v", c.name, client, text, err)
			}
			if r, err := write(cl.AddGuide(root, "notes")); err != nil || r.Changed {
				t.Errorf("%s, %s, a second time: %+v, %v", c.name, client, r, err)
			}
			if r, err := write(cl.AddGuide(root, "other")); err != nil || !r.Changed {
				t.Errorf("%s, %s, another name: %+v, %v", c.name, client, r, err)
			}
			if r, err := write(cl.DropGuide(root)); err != nil || !r.Changed {
				t.Errorf("%s, %s, removal: %+v, %v", c.name, client, r, err)
			}
			if c.old == "" {
				if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
					t.Errorf("%s, %s: left over: %v, %v", c.name, client, left, err)
				}
			} else if text, err := os.ReadFile(path); err != nil || string(text) != c.old {
				t.Errorf("%s, %s: after removal (-want +got):\n%s", c.name, client, cmp.Diff(c.old, string(text)))
			}
			if r, err := write(cl.DropGuide(root)); err != nil || r.Changed {
				t.Errorf("%s, %s: removal a second time: %+v, %v", c.name, client, r, err)
			}
		}
	}
}

// TestGuideInTheMiddle: people write on after the block.
func TestGuideInTheMiddle(t *testing.T) {
	with, err := addBlock("f", []byte("before\n"), "", Guide("cairn"))
	if err != nil {
		t.Fatal(err)
	}
	with = append(with, "\nafter\n"...)
	if got, err := addBlock("f", with, "", Guide("cairn")); err != nil || string(got) != string(with) {
		t.Errorf("again: %q, %v", got, err)
	}
	if got, err := removeBlock("f", with); err != nil || string(got) != "before\n\nafter\n" {
		t.Errorf("removed: %q, %v", got, err)
	}
}

func TestGuideRefuses(t *testing.T) {
	block := Guide("cairn")
	for _, c := range []struct{ name, old, want string }{
		{"two blocks", block + "text\n" + block, "exactly one block"},
		{"no end", guideBegin + "\ntext\n", "exactly one block"},
		{"no beginning", "text\n" + guideEnd + "\n", "exactly one block"},
		{"end first", guideEnd + "\n" + guideBegin + "\n", "exactly one block"},
		{"UTF-16", "\xff\xfeR\x00", "not UTF-8"},
	} {
		root := t.TempDir()
		path := filepath.Join(root, "AGENTS.md")
		if err := os.WriteFile(path, []byte(c.old), 0o600); err != nil {
			t.Fatal(err)
		}
		cl := named(t, "codex")
		_, added := write(cl.AddGuide(root, "cairn"))
		_, dropped := write(cl.DropGuide(root))
		for _, err := range []error{added, dropped} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
			}
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != c.old {
			t.Errorf("%s: the file is %q, %v", c.name, text, err)
		}
	}
}

// TestGuideAndLinks: CLAUDE.md is often a link to AGENTS.md. A link out of the folder,
// or a folder that is one, is left alone.
func TestGuideAndLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "victim.md")
	if err := os.WriteFile(outside, []byte("# Mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	claude := named(t, "claude-code")

	root := t.TempDir()
	link, file := filepath.Join(root, "CLAUDE.md"), filepath.Join(root, "AGENTS.md")
	if err := errors.Join(os.WriteFile(file, []byte("# Rules\n"), 0o600), os.Symlink("AGENTS.md", link)); err != nil {
		t.Skip(err)
	}
	if r, err := write(claude.AddGuide(root, "cairn")); err != nil || r.Path != file {
		t.Errorf("a link in the folder: %+v, %v", r, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v", err)
	}
	if text, _ := os.ReadFile(file); !bytes.HasPrefix(text, []byte("# Rules\n\n"+guideBegin)) {
		t.Errorf("AGENTS.md is %q", text)
	}

	for _, to := range []string{outside, filepath.Join("..", filepath.Base(filepath.Dir(outside)), "victim.md"), "CLAUDE.md"} {
		root := t.TempDir()
		link := filepath.Join(root, "CLAUDE.md")
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
		if r, err := write(claude.AddGuide(root, "cairn")); err == nil {
			t.Errorf("a link to %s: %+v", to, r)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link to %s was replaced: %v", to, err)
		}
	}
	root = t.TempDir()
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(root, ".cursor")); err != nil {
		t.Skip(err)
	}
	if r, err := write(named(t, "cursor").AddGuide(root, "cairn")); err == nil {
		t.Errorf("a folder that is a link: %+v", r)
	}
	if left, _ := os.ReadDir(filepath.Dir(outside)); len(left) != 1 {
		t.Errorf("outside there is %v", left)
	}
	if text, _ := os.ReadFile(outside); string(text) != "# Mine\n" {
		t.Errorf("the file outside is %q", text)
	}
}

// TestRemove: what Merge adds, Remove removes; comments of people stay.
func TestRemove(t *testing.T) {
	for _, c := range []struct{ name, client, old string }{
		{"others", "zed", "{\n\t// how it looks\n\t\"theme\": \"one\", /* dark */\n\t\"context_servers\": {\n\t\t\"other\": { \"command\": \"x\" } // keep me\n\t},\n\t\"tabs\": 4,\n}\n"},
		{"a comma at the end", "zed", "{\n  \"context_servers\": {\n    \"other\": { \"command\": \"x\" },\n  },\n}\n"},
		{"list of OpenCode", "opencode", "{\n  \"mcp\": {\n    \"other\": { \"type\": \"local\", \"command\": [\"x\"] }\n  }\n}\n"},
		{"byte order mark", "cursor", "\ufeff{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n"},
		{"toml", "codex", "# mine\nmodel = \"x\" # yes\n\n[mcp_servers.other]\ncommand = \"y\"\n"},
	} {
		cl := named(t, c.client)
		with, err := cl.Merge("f", []byte(c.old), "cairn", cl.Entry("/bin/cairn", "/w"), false)
		if err != nil || string(with) == c.old {
			t.Fatalf("%s: %q, %v", c.name, with, err)
		}
		if got, err := cl.Remove("f", with, "cairn", "/w"); err != nil || string(got) != c.old {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, cmp.Diff(c.old, string(got)))
		}
		if got, err := cl.Remove("f", []byte(c.old), "cairn", "/w"); err != nil || string(got) != c.old {
			t.Errorf("%s: nothing to remove: %q, %v", c.name, got, err)
		}
	}
}

func TestRemoveRefuses(t *testing.T) {
	for _, c := range []struct{ name, client, old, want string }{
		{"another server", "cursor", `{"mcpServers": {"cairn": {"command": "other", "args": ["mcp", "-C", "/w"]}}}`, "so it stays"},
		{"another folder", "zed", `{"context_servers": {"cairn": {"command": "/bin/cairn", "args": ["mcp", "-C", "/elsewhere"]}}}`, "so it stays"},
		{"no arguments", "zed", `{"context_servers": {"cairn": {"command": "cairn"}}}`, "so it stays"},
		{"a number", "zed", `{"context_servers": {"cairn": 1}}`, "so it stays"},
		{"not JSON", "zed", `{"context_servers`, "is not JSON"},
		{"twice", "zed", `{"context_servers": {"cairn": {"command": "x"}, "cairn": {"command": "cairn", "args": ["mcp", "-C", "/w"]}}}`, "not supported"},
		{"servers twice", "zed", `{"context_servers": {}, "context_servers": {"cairn": {"command": "cairn", "args": ["mcp", "-C", "/w"]}}}`, "not supported"},
		{"another folder in TOML", "codex", "[mcp_servers.cairn]\ncommand = \"cairn\"\nargs = [\"mcp\", \"-C\", \"/x\"]\n", "so it stays"},
		{"not TOML", "codex", "= 1", "is not TOML"},
	} {
		if got, err := named(t, c.client).Remove("f", []byte(c.old), "cairn", "/w"); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "add this") {
			t.Errorf("%s: %q, %v, want an error with %q", c.name, got, err, c.want)
		}
	}
}

// TestDrop: a file that only cairn has written in is removed, one of people's is not.
func TestDrop(t *testing.T) {
	for _, client := range Names() {
		root, copies := t.TempDir(), filepath.Join(t.TempDir(), "copies")
		cl := named(t, client)
		path := filepath.Join(root, "sub", "config")
		for _, name := range []string{"cairn", "my notes"} {
			if _, err := write(cl.Add(File{root, path, copies}, name, cl.Entry("/bin/cairn", root), false)); err != nil {
				t.Fatal(client, err)
			}
		}
		if r, err := write(cl.Drop(File{root, path, copies}, "my notes")); err != nil || !r.Changed {
			t.Errorf("%s: %+v, %v", client, r, err)
		}
		if text, err := os.ReadFile(path); err != nil || !bytes.Contains(text, []byte("/bin/cairn")) || bytes.Contains(text, []byte("my notes")) {
			t.Errorf("%s: %q, %v", client, text, err)
		}
		if r, err := write(cl.Drop(File{root, path, copies}, "cairn")); err != nil || !r.Changed || r.Backup != "" {
			t.Errorf("%s: %+v, %v", client, r, err)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("%s: left over: %v, %v", client, left, err)
		}
		if left, err := os.ReadDir(copies); err != nil || len(left) > 0 {
			t.Errorf("%s: left of the copies: %v, %v", client, left, err)
		}
	}
}

func TestWriteChangedMeanwhile(t *testing.T) {
	root := t.TempDir()
	f, err := named(t, "codex").AddGuide(root, "cairn")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "AGENTS.md")
	if err := os.WriteFile(path, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := f.Write(); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("%+v, %v", r, err)
	}
	if text, _ := os.ReadFile(path); string(text) != "mine\n" {
		t.Errorf("the file is %q", text)
	}
}

func TestDiff(t *testing.T) {
	f := Change{Path: "f", Old: []byte("a\nb\nc\nd\ne\n"), New: []byte("a\nb\nc\nx\nd\ne\n")}
	if got, want := f.Diff(), "--- f\n+++ f\n@@ -1,5 +1,6 @@\n a\n b\n c\n+x\n d\n e\n"; got != want {
		t.Errorf("inserted:\n%s", got)
	}
	f = Change{Path: "f", New: []byte("a\n")}
	if got, want := f.Diff(), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n"; got != want {
		t.Errorf("new:\n%s", got)
	}
	f = Change{Path: "f", Old: []byte("a\n"), New: []byte("a\n")}
	if got := f.Diff(); got != "" {
		t.Errorf("the same: %q", got)
	}
}

func TestInstalled(t *testing.T) {
	home := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(home, ".codeium", "windsurf"), 0o755),
		os.MkdirAll(filepath.Join(home, ".config", "Code", "User", "globalStorage", "rooveterinaryinc.roo-cline"), 0o755)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range Installed(Place{Root: t.TempDir(), Home: home, OS: "linux", Env: func(string) string { return "" }, LookPath: func(name string) (string, error) {
		if name == "claude" {
			return "/usr/bin/claude", nil
		}
		return "", errors.New("not found")
	}}) {
		names = append(names, c.Name)
	}
	if want := []string{"claude-code", "roo", "vscode", "windsurf"}; !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}
}

// TestEntryFolder: files that a project shares name no folder of this machine; clients
// that start servers elsewhere name it.
func TestEntryFolder(t *testing.T) {
	for client, want := range map[string]string{
		"claude-code": ".", "gemini": ".", "opencode": ".", "roo": ".", "cursor": "${workspaceFolder}", "vscode": "${workspaceFolder}",
		"claude-desktop": "/w", "cline": "/w", "codex": "/w", "kiro": "/w", "windsurf": "/w", "zed": "/w",
	} {
		if e := named(t, client).Entry("cairn", "/w"); e.Args[2] != want {
			t.Errorf("%s: %q, want %q", client, e.Args[2], want)
		}
	}
	if got := named(t, "opencode").Text("cairn", named(t, "opencode").Entry("cairn", "/w")); !strings.Contains(got, `"type": "local"`) || !strings.Contains(got, `"enabled": true`) {
		t.Errorf("OpenCode's text is %s", got)
	}
}
