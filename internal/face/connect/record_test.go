package connect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layouts are files of users in layouts that an edit does not keep by itself.
var layouts = map[format][]string{
	plain: {
		"", "\n", "{}", "{ }\n", "{\n}\n", "{\"a\": 1}", "{ \"SECTION\": {}, \"b\":[1,2] }", "{\n\t\"SECTION\": {\n\t}\n}\n", "{\r\n  // mine\r\n  \"SECTION\": {\r\n    \"other\": { \"command\": \"x\" },\r\n  },\r\n}\r\n",
		"\ufeff{\n  \"SECTION\": {\"other\": {\"command\": \"x\"}, /* last */ }\n}", "/* head */ {\n\n\n\"a\" : 1 ,\n}\n\n\n", "{\"SECTION\":{\"cairn\":{\"command\":\"mine\"}}}\n",
	},
	tables: {"", "\n\n", "model = \"x\"", "# mine\nmodel = \"x\" # yes\n\n\n", "[mcp_servers.other]\ncommand = 'y'\r\n"},
}

// TestDropRestores: for each client and layout, Drop restores the file byte for byte, also
// when two servers were added and removed in either order, and leaves no copy behind.
func TestDropRestores(t *testing.T) {
	for _, client := range Names() {
		cl := named(t, client)
		kind := plain
		if cl.format == tables {
			kind = tables
		}
		for i, old := range layouts[kind] {
			for _, order := range [][]string{{"cairn", "notes"}, {"notes", "cairn"}}[i%2 : i%2+1] {
				name := fmt.Sprintf("%s, layout %d, %v", client, i, order)
				text := bytes.ReplaceAll([]byte(old), []byte("SECTION"), []byte(cl.section))
				root := t.TempDir()
				at := File{root, filepath.Join(root, "config"), filepath.Join(t.TempDir(), "copies")}
				if err := os.WriteFile(at.Path, text, 0o640); err != nil {
					t.Fatal(err)
				}
				for _, server := range []string{"cairn", "notes"} {
					r, err := write(cl.Add(at, server, cl.Entry("/bin/cairn", root), true))
					if err != nil || !r.Changed {
						t.Fatalf("%s: %+v, %v", name, r, err)
					}
					if kept, err := os.ReadFile(r.Backup); err != nil || !bytes.Equal(kept, text) {
						t.Errorf("%s: the copy is %q, %v", name, kept, err)
					}
					if filepath.Dir(filepath.Dir(r.Backup)) != at.Copies {
						t.Errorf("%s: the copy is %s", name, r.Backup)
					}
				}
				for _, server := range order {
					if r, err := write(cl.Drop(at, server)); err != nil || !r.Changed {
						t.Fatalf("%s: dropping %s: %+v, %v", name, server, r, err)
					}
				}
				got, err := os.ReadFile(at.Path)
				if info, _ := os.Stat(at.Path); err != nil || !bytes.Equal(got, text) || info.Mode().Perm() != 0o640 {
					t.Errorf("%s: %q, %v, want %q", name, got, err, text)
				}
				if left, _ := os.ReadDir(at.Copies); len(left) > 0 {
					t.Errorf("%s: left over: %v", name, left)
				}
			}
		}
	}
}

// TestDropAfterAChange: what a user changed after Add stays, and only the entry and the section
// that Add made go.
func TestDropAfterAChange(t *testing.T) {
	for _, client := range []string{"zed", "codex"} {
		cl := named(t, client)
		root := t.TempDir()
		at := File{root, filepath.Join(root, "config"), filepath.Join(t.TempDir(), "copies")}
		old, from, to := "{\n  \"tabs\": 4\n}\n", "4", "8"
		if client == "codex" {
			old = "tabs = 4\n"
		}
		if err := os.WriteFile(at.Path, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := write(cl.Add(at, "cairn", cl.Entry("/bin/cairn", root), false)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(at.Path)
		if err == nil {
			err = os.WriteFile(at.Path, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := write(cl.Drop(at, "cairn")); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(at.Path); string(got) != string(bytes.Replace([]byte(old), []byte(from), []byte(to), 1)) {
			t.Errorf("%s: %q", client, got)
		}
		if left, _ := os.ReadDir(at.Copies); len(left) > 0 {
			t.Errorf("%s: left over: %v", client, left)
		}
	}
}

// moving are files with servers that cairn takes the place of, by client.
var moving = map[string]string{
	"cursor": "{\n  // mine\n  \"mcpServers\": {\n    \"git\": { \"command\": \"uvx\", \"env\": {\"A\": \"b\"} }, // versions\n    \"time\": {\"command\": \"t\"},\n    \"stays\": {\"command\": \"s\"}\n  },\n  \"tabs\": 4\n}\n",
	"codex":  "tabs = 4\n\n# versions\n[mcp_servers.git]\ncommand = 'uvx' # it\n\n[mcp_servers.git.env]\nA = 'b'\n\n# the clock\n[mcp_servers.time]\ncommand = 't'\n\n[mcp_servers.stays]\ncommand = 's'\n",
}

// TestMoved: cairn takes the place of other servers. Drop restores the file byte for byte, and
// after a change by the user it adds the servers again.
func TestMoved(t *testing.T) {
	for client, old := range moving {
		for _, changed := range []bool{false, true} {
			cl, root := named(t, client), t.TempDir()
			at := File{root, filepath.Join(root, "config"), filepath.Join(t.TempDir(), "copies")}
			if err := os.WriteFile(at.Path, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := write(cl.Add(at, "cairn", cl.Entry("/bin/cairn", root), false, "git", "time")); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(at.Path)
			if left, err := cl.Servers(at); err != nil || len(left) != 1 || left[0].Name != "stays" || len(cl.servers(text)) != 2 {
				t.Errorf("%s: left are %+v, %v in\n%s", client, left, err, text)
			}
			if changed {
				text = bytes.Replace(text, []byte("4"), []byte("8"), 1)
				if err = os.WriteFile(at.Path, text, 0o600); err != nil {
					t.Fatal(err)
				}
				// A second entry after the change must not make the first one forget.
				if _, err = write(cl.Add(at, "notes", cl.Entry("/bin/cairn", root), false)); err == nil {
					_, err = write(cl.Drop(at, "notes"))
				}
			}
			if err == nil {
				_, err = write(cl.Drop(at, "cairn"))
			}
			got, readErr := os.ReadFile(at.Path)
			if want := cl.servers([]byte(old)); err != nil || readErr != nil || !cmp.Equal(cl.servers(got), want) {
				t.Errorf("%s: %v, %v, servers %v, want %v", client, err, readErr, cl.servers(got), want)
			}
			if string(got) != old && !changed || changed != bytes.Contains(got, []byte("8")) {
				t.Errorf("%s: %q, want %q", client, got, old)
			}
			if left, _ := os.ReadDir(at.Copies); len(left) > 0 {
				t.Errorf("%s: left over: %v", client, left)
			}
		}
	}
}

// TestSkill: the skill is written once, renewed and removed; a file that a user wrote or
// changed stays.
func TestSkill(t *testing.T) {
	v1, v2, mine := []byte("# Skill 1\n"), []byte("# Skill 2\n"), []byte("# Mine\n")
	var without []string
	for _, client := range Names() {
		cl := named(t, client)
		if cl.skills == "" {
			without = append(without, client)
			continue
		}
		root := t.TempDir()
		at := File{Root: root, Copies: filepath.Join(t.TempDir(), "copies")}
		path := filepath.Join(root, cl.skills, "skills", "cairn", "SKILL.md")
		for _, c := range []struct {
			text    []byte
			changed bool
		}{{v1, true}, {v1, false}, {v2, true}} {
			if r, err := write(cl.Skill(at, c.text)); err != nil || r.Changed != c.changed || r.Backup != "" {
				t.Errorf("%s: adding %q: %+v, %v", client, c.text, r, err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, c.text) {
				t.Errorf("%s: %q, %v, want %q", client, got, err, c.text)
			}
		}
		if r, err := write(cl.Skill(at, nil)); err != nil || !r.Changed {
			t.Errorf("%s: %+v, %v", client, r, err)
		}
		for _, dir := range []string{root, at.Copies} {
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%s: left over: %v", client, left)
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, mine, 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := write(cl.Skill(at, v1)); err != nil || r.Changed {
			t.Errorf("%s: the user's own skill: %+v, %v", client, r, err)
		}
		if r, err := write(cl.Skill(at, nil)); err != nil || r.Changed {
			t.Errorf("%s: the user's own skill: %+v, %v", client, r, err)
		}
		if got, _ := os.ReadFile(path); !bytes.Equal(got, mine) {
			t.Errorf("%s: the user's own skill is %q", client, got)
		}
	}
	if !slices.Equal(without, []string{"claude-desktop", "zed"}) {
		t.Errorf("without skills: %v", without)
	}
}

// TestAddUpdates connects a folder again with another program and other arguments: the entry
// changes in its place, keeps what the user has added to it, and Drop removes it.
func TestAddUpdates(t *testing.T) {
	for _, c := range []struct{ client, before, after string }{
		{"claude-code", `{"mcpServers": {"cairn": {"command": "/old/cairn", /* mine */ "args": ["mcp", "-C", "ROOT"], "env": {"A": "b"}}, "x": {"command": "y"}}}`, `{"mcpServers": { "x": {"command": "y"}}}`},
		{"opencode", `{"mcp": {"cairn": {"command": ["/old/cairn", "mcp", "-C", "."], "environment": {"A": "b"}}}}`, `{"mcp": {}}`},
		{"codex", "model = 'x'\n\n[mcp_servers.cairn]\ncommand = '/old/cairn'\nargs = [\n  'mcp', '-C', 'ROOT',\n]\ntimeout = 5\n[mcp_servers.cairn.env]\nA = 'b'\n", "model = 'x'\n"},
	} {
		at := File{Root: t.TempDir(), Copies: t.TempDir()}
		at.Path = filepath.Join(at.Root, "file")
		put(t, at.Path, strings.ReplaceAll(c.before, "ROOT", filepath.ToSlash(at.Root)))
		client := named(t, c.client)
		now := func() string { text, _ := os.ReadFile(at.Path); return string(text) }
		for _, further := range [][]string{nil, {"--tools", "core"}} {
			e := client.Entry("cairn", filepath.ToSlash(at.Root), further...)
			if _, err := write(client.Add(at, "cairn", e, false)); err != nil {
				t.Fatalf("%s: %v", c.client, err)
			}
			have := client.servers([]byte(now()))["cairn"].(map[string]any)
			if got, _ := entryOf(have); got.Command != "cairn" || !slices.Equal(got.Args, e.Args) || have["env"] == nil && have["environment"] == nil || strings.Contains(c.before, "timeout") != (have["timeout"] != nil) || strings.Contains(c.before, "mine") != strings.Contains(now(), "mine") {
				t.Errorf("%s: updated to\n%s", c.client, now())
			}
		}
		if _, err := write(client.Drop(at, "cairn")); err != nil || now() != c.after {
			t.Errorf("%s: after disconnect\n%s, %v, want\n%s", c.client, now(), err, c.after)
		}
		if _, err := write(client.Add(at, "cairn", client.Entry("cairn", "/other", "-x"), false)); err != nil {
			t.Fatal(err)
		}
		if client.folder == "" { // the entry is that of another folder
			if _, err := client.Add(at, "cairn", client.Entry("cairn", at.Root), false); err == nil || !strings.Contains(err.Error(), "--force") {
				t.Errorf("%s: the entry of another folder: %v", c.client, err)
			}
		}
	}
}
