package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
)

// hostileLinks are the places in a folder at which a repository may bring a link: those
// that cairn writes, reads or once wrote.
var hostileLinks = []string{
	".cairn", ".cairn/.gitignore", ".cairn/config.toml", ".cairn/cards", ".cairn/cards/aaa111.md", ".cairn/docs", ".cairn/workflows",
	".cairn/index", ".cairn/index/lock", ".cairn/index/sock", ".cairn/index/gate", ".cairn/index/documents.db", ".cairn/index/documents.db.lock",
	".cairn/index/documents.db.gate", ".cairn/index/keywords", ".cairn/index/keywords/root.bolt", ".cairn/index/keywords/state", ".cairn/index/keywords/store",
	".cairn/index/vectors", ".cairn/index/vectors/vectors.cairn", ".cairn/index/embeddings", ".cairn/index/tool-embeddings", ".cairn/index/tools.lock",
	".cairn/index/tools.sock", ".cairn/index/catalog.db", ".cairn/index/usage.db", ".cairn/index/usage.log", ".cairn/index/usage.log.lock",
	".cairn/index/stages.db", ".cairn/index/stages.db.turn", ".cairn/index/tool-vectors", ".cairn/index/tool-keywords", ".cairn/index/tool-keywords/new",
	".cairn/index/folder", ".cuedeck", ".cuedeck/config.toml", ".cuedeck/cards", ".cuedeck/cards/aaa111.md", ".gitignore", ".cairnignore", ".mcp.json",
	".claude", ".claude/skills", ".claude/skills/cairn/SKILL.md", ".cursor", ".cursor/mcp.json", ".gemini", ".gemini/settings.json", ".vscode", ".vscode/mcp.json", "notes.md", "docs",
	"docs/plan.md", "node_modules",
}

// hostileCommands are run in each folder, most of which refuse some of its links.
var hostileCommands = [][]string{
	{"status"}, {"index", "--no-embed"}, {"search", "--mode", "keyword", "token"}, {"read", "notes.md"}, {"init"}, {"init", "--force"},
	{"config", "set", "core.token_limit", "77"}, {"doctor"}, {"doctor", "--repair"}, {"card", "new", "Title"}, {"card", "edit", "aaa111", "--title", "Other"},
	{"task", "complete", "/docs/plan.md", "first"}, {"tools", "learn", "LEARNT"}, {"connect", "claude-code", "--force"}, {"connect", "cursor"},
	{"connect", "gemini"}, {"connect", "vscode"}, {"mcp", "--no-index"}, {"plan", "list"}, {"backup", "-"}, {"restore", "--overwrite", "BACKUP"}, {"verify", "--repair"}, {"clean", "--all"},
}

// TestLinksOfARepositoryLeadNowhere: whatever link a folder brings, to a file, a folder or
// to nothing, no command creates, truncates or changes a file outside the folder.
func TestLinksOfARepositoryLeadNowhere(t *testing.T) {
	files := map[string]string{"LEARNT": filepath.Join(t.TempDir(), "learnt.jsonl"), "BACKUP": filepath.Join(t.TempDir(), "backup")}
	if err := os.WriteFile(files["LEARNT"], []byte(`{"intent":"copy","calls":[{"tool":"a"},{"tool":"b"}]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clean := t.TempDir()
	linkedFolder(t, clean, filepath.Join(clean, "clone"), "link", "victim.txt")
	var said bytes.Buffer
	if code := run([]string{"backup", files["BACKUP"], "-C", filepath.Join(clean, "clone")}, strings.NewReader(""), &said, &said); code != 0 {
		t.Fatal(said.String())
	}
	links := hostileLinks
	if testing.Short() {
		links = []string{".cairn", ".cairn/index/lock", ".cairn/config.toml", ".mcp.json"}
	}
	for i, link := range links {
		targets := []string{"victim.txt", "folder", "missing"}
		if strings.HasPrefix(link, ".cairn/index/") { // no command reads these
			targets = targets[i%3:][:1]
		}
		for _, target := range targets {
			t.Run(link+" to "+target, func(t *testing.T) {
				top := t.TempDir()
				root := filepath.Join(top, "clone")
				before := linkedFolder(t, top, root, link, target)
				for _, args := range hostileCommands {
					args = slices.Clone(args)
					for i, arg := range args {
						args[i] = cmp.Or(files[arg], arg)
					}
					var said bytes.Buffer
					stdin := `{"jsonrpc":"2.0","id":1,"method":"create_task","params":{"title":"t"}}` + "\n" +
						`{"jsonrpc":"2.0","id":2,"method":"read_context","params":{"query":"token","mode":"keyword"}}` + "\n"
					run(append(args, "-C", root), strings.NewReader(stdin), &said, &said)
					if after := outsideOf(t, top, root); after != before {
						t.Fatalf("cairn %s changed what is outside: before\n%s\nafter\n%s\nand said %s", strings.Join(args, " "), before, after, &said)
					}
				}
			})
		}
	}
}

// linkedFolder makes a folder with a link to a target next to it, and returns
// outsideOf it.
func linkedFolder(t *testing.T, top, root, link, target string) string {
	t.Helper()
	for name, text := range map[string]string{
		"victim.txt": "precious\n", "folder/precious.md": "# Precious\n", "clone/notes.md": "# Notes\n\nA token.\n",
		"clone/docs/plan.md": "# Plan\n\n## Tasks\n\n### First {#first}\n\n- [ ] do it\n", "clone/.cairn/cards/aaa111.md": "---\ntitle: One\nstatus: todo\n---\nText\n",
	} {
		name = filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(root, filepath.FromSlash(link))
	relative, err := filepath.Rel(filepath.Dir(at), filepath.Join(top, target))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(relative, at); err != nil {
		t.Skipf("this system does not let the user make a link: %v", err)
	}
	return outsideOf(t, top, root)
}

// outsideOf is every file and folder below top, root aside.
func outsideOf(t *testing.T, top, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == root {
			return filepath.SkipDir
		}
		var text []byte
		if d.Type().IsRegular() {
			text, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %q\n", strings.TrimPrefix(path, top), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestIndexShippedInARepositoryIsNotBelieved: an index that comes with a folder, whose
// text no file has, is in no answer, neither before nor after indexing.
func TestIndexShippedInARepositoryIsNotBelieved(t *testing.T) {
	answers := func(root string, args ...string) string {
		t.Helper()
		var said bytes.Buffer
		run(append(args, "-C", root), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"read_context","params":{"query":"the new token","mode":"keyword"}}`+"\n"), &said, &said)
		return said.String()
	}
	origin, clone := t.TempDir(), t.TempDir()
	note := func(root, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "note.md"), []byte("# Tokens\n\n"+text+" the new token with care.\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	note(origin, "DELETE")
	if said := answers(origin, "index"); !strings.Contains(said, "indexed 1 file") {
		t.Fatal(said)
	}
	if said := answers(origin, "search", "--mode", "keyword", "the new token"); !strings.Contains(said, "DELETE") {
		t.Fatalf("the index to ship answers %s", said)
	}
	note(clone, "Create")
	info, err := os.Stat(filepath.Join(origin, "note.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(clone, "note.md"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(clone, ".cairn", "index"), os.DirFS(testutil.Place(t, origin).Index)); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][]string{{"search", "--mode", "keyword", "the new token"}, {"mcp", "--no-index"}, {"index"}, {"search", "the new token"}, {"mcp"}, {"read", "note.md"}} {
		if said := answers(clone, step...); strings.Contains(said, "DELETE") {
			t.Errorf("cairn %s answers from the index that came with the folder: %s", strings.Join(step, " "), said)
		}
	}
	if said := answers(clone, "search", "the new token"); !strings.Contains(said, "Create") {
		t.Errorf("after indexing the answer is %s", said)
	}
}
