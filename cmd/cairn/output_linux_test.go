package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// hostileText sets the title, clipboard and colour of a terminal, erases the screen in seven
// bits and in eight, moves back in its line, and changes the direction of text.
const hostileText = "bad\x1b]0;title\a\x1b]52;c;ZXZpbA==\x07\x1b[31m\x1b[2J\u009b31m\u009d0;t\u009c\b\b\rover\x7f\u202edlrow\u2066\u200f\u061cend"

// hostileFolder returns an indexed folder with hostileText in its documents, cards and tools.
func hostileFolder(t *testing.T) string {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.md":                    "---\ntags: [\"x" + hostileText + "\"]\n---\n# Walrus " + hostileText + "\n\nA walrus " + hostileText + " and [away](gone" + hostileText + ".md).\n\n## Second " + hostileText + "\n\nIt is \x1b[1mbold\x1b[0m.\n",
		"plan.md":                 "# Plan\n\n## Tasks\n\n### One " + hostileText + "\n* Status: pending\n* Workflow: simplicity-gate\n\nDo " + hostileText + ".\n",
		"name\x1b[31m\u202e.md":   "# A name\n",
		".cairn/cards/aaa111.md":  "---\ntitle: \"Card " + strings.Map(escapable, hostileText) + "\"\nstatus: active\nassignee: \"b" + strings.Map(escapable, hostileText) + "\"\n---\nBody " + hostileText + "\n",
		".cairn/cards/bbb222.md":  "---\ntitle: Other\nstatus: todo\ndepends_on: [aaa111]\n---\nBody " + hostileText + "\n",
		"tools.jsonl":             `{"server":"fs","name":"read","description":` + quoted("Reads a walrus. "+hostileText) + `,"inputSchema":{"type":"object","properties":{"path":{"type":"string","description":` + quoted(hostileText) + `}},"required":["path"]}}` + "\n",
		"latin1.txt":              "caf\xe9\n",
		"folder " + "\u202e/b.md": "# B\n",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"index", "--no-embed"}, {"tools", "import", "--no-embed", filepath.Join(root, "tools.jsonl")}} {
		var said bytes.Buffer
		if code := run(append(args, "-C", root), strings.NewReader(""), io.Discard, &said); code != exitDone {
			t.Fatalf("cairn %s: %d, %s", strings.Join(args, " "), code, &said)
		}
	}
	return root
}

// quoted is s as a JSON string, and escapable keeps what YAML takes in quotes.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			b.WriteString(`\u00` + string("0123456789abcdef"[r>>4]) + string("0123456789abcdef"[r&15]))
			continue
		}
		b.WriteRune(r)
	}
	return b.String() + `"`
}

func escapable(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}

// foreign are the commands that print untrusted text.
var foreign = [][]string{
	{"read", "a.md"}, {"read", "a.md", "plan.md"}, {"read", "a.md:1-4"}, {"read", "--json", "a.md"}, {"read", "a.md#none"}, {"read", "none\x1b[31m.md"},
	{"search", "--mode", "keyword", "walrus"}, {"search", "--mode", "keyword", "--json", "walrus"}, {"search", "--mode", "keyword", "--max-tokens", "500", "walrus"},
	{"explain", "--mode", "keyword", "walrus"}, {"status"}, {"status", "--json"}, {"doctor"}, {"doctor", "--json"},
	{"card", "list"}, {"card", "list", "--json"}, {"card", "show", "aaa111"}, {"card", "show", "--json", "aaa111"}, {"list"}, {"graph"}, {"graph", "--stats"},
	{"dag", "order"}, {"dag", "unblocks"},
	{"task", "view", "/plan.md"}, {"task", "view", "--json", "/plan.md"}, {"task", "start", "/plan.md", "one"},
	{"tools", "list"}, {"tools", "list", "--json"}, {"tools", "list", "--sources"}, {"tools", "show", "read"}, {"tools", "show", "--json", "read"}, {"tools", "search", "walrus"},
	{"tools", "graph"}, {"suggest", "read a walrus"}, {"open", "--list"}, {"open", "--list", "--json"}, {"scene", "--no-copy"}, {"scene", "--dry-run"}, {"scene", "--json"},
	{"config"}, {"index", "--no-embed"}, {"nonesuch\x1b[31m"}, {"read", "--x\x1b[31m", "a.md"}, {"help"},
}

// ownStyle matches the sequences that cairn may send: colours, and links to files of the folder.
var ownStyle = regexp.MustCompile("\x1b\\[(1|1;33|2|0)m|\x1b\\]8;;(file://[^/]*/[[:graph:]]*/001/[a-z]+\\.md#[0-9]+)?\x1b\\\\")

// Untrusted text does not control the terminal: only line ends, tabs and cairn's own styles
// pass.
func TestForeignTextOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	root := hostileFolder(t)
	shown := 0
	for _, args := range foreign {
		name := strings.Join(args, " ")
		screen, end := terminal(t)
		seen := make(chan []byte)
		go func() {
			all, _ := io.ReadAll(screen) // reading gives EIO when the other end is closed
			seen <- all
		}()
		code := run(append([]string{"-C", root}, args...), strings.NewReader(""), end, end)
		if code == exitUsage && !strings.Contains(name, "\x1b") && !strings.Contains(name, "#none") {
			t.Errorf("cairn %s is taken for wrong usage", name)
		}
		end.Close()
		text := strings.ReplaceAll(string(<-seen), "\r\n", "\n") // the terminal driver's
		if text == "" {
			t.Errorf("cairn %q prints nothing", name)
		}
		if strings.Contains(text, "dlrow") || strings.Contains(text, "walrus") {
			shown++
		}
		for i, r := range ownStyle.ReplaceAllString(text, "") {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar) {
				t.Errorf("cairn %q sends the terminal %U at %d:\n%q", name, r, i, text)
				break
			}
		}
	}
	if shown < len(foreign)/2 {
		t.Errorf("%d of %d commands show anything of the documents", shown, len(foreign))
	}
}

// Without a terminal, text passes unchanged.
func TestForeignTextInAPipe(t *testing.T) {
	root := hostileFolder(t)
	want, err := os.ReadFile(filepath.Join(root, "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	if code := run([]string{"-C", root, "read", "a.md"}, strings.NewReader(""), &out, &said); code != exitDone || strings.TrimRight(out.String(), "\n") != strings.TrimRight(string(want), "\n") {
		t.Errorf("cairn read: %d, %s\n%q, want\n%q", code, &said, &out, want)
	}
}
