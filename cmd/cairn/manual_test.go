package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestManualAnswersQuestions asks the manual twenty questions through cairn's own
// search. At least eighteen of them must find their page first, and all of them
// must find it among the first three.
func TestManualAnswersQuestions(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("../../docs")); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"index", "-C", root}, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}); code != 0 {
		t.Fatalf("cairn index: exit %d", code)
	}
	first := 0
	for _, q := range []struct{ question, page string }{
		{"how do I connect Claude Code", "agents.md"},
		{"which tools does the core group have", "agents.md"},
		{"turn off rate limits", "agents.md"},
		{"call a tool as a bare JSON-RPC method", "agents.md"},
		{"search only below one path", "cli.md"},
		{"exclude a word from a query", "cli.md"},
		{"print only some lines of a document", "cli.md"},
		{"which file types are indexed", "formats.md"},
		{"remove the index", "cli.md"},
		{"what happens when the owner process hangs", "cli.md"},
		{"how does cairn choose the folder", "configuration.md"},
		{"change the weight of keyword search", "configuration.md"},
		{"create an access token with write scope", "serve.md"},
		{"where are Prometheus metrics", "serve.md"},
		{"how do I write tasks inside a document", "tasks.md"},
		{"which cards can start now", "tasks.md"},
		{"import the tools of an MCP server", "tools.md"},
		{"format of a trace to learn from", "tools.md"},
		{"run workers on other machines with RabbitMQ", "questions.md"},
		{"what happens when Qdrant is unavailable", "qdrant.md"},
	} {
		var out, stderr bytes.Buffer
		if code := run([]string{"search", "-C", root, "--json", "--limit", "3", q.question}, strings.NewReader(""), &out, &stderr); code != 0 {
			t.Fatalf("cairn search %q: exit %d: %s", q.question, code, stderr.String())
		}
		var answer struct {
			Results []struct{ Path string }
		}
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, r := range answer.Results {
			paths = append(paths, r.Path)
		}
		switch slices.Index(paths, q.page) {
		case 0:
			first++
		case -1:
			t.Errorf("%q finds %v, want %s", q.question, paths, q.page)
		default:
			t.Logf("%q finds %v, want %s first", q.question, paths, q.page)
		}
	}
	if first < 18 {
		t.Errorf("%d of 20 questions find their page first, want at least 18", first)
	}
}
