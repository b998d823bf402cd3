package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// broken is a stream that takes nothing.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// Whatever cannot be written fails the command that wrote it, unless its reader
// has left.
func TestOutputThatCannotBeWritten(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, handbook()); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := run([]string{"index", "--no-embed", "-C", root}, strings.NewReader(""), &said, &said); code != exitDone {
		t.Fatalf("cairn index: %d, %s", code, &said)
	}
	for _, line := range []string{
		"status", "status --json", "read index.md", "search --mode keyword token", "search --mode keyword --json token", "explain --mode keyword token",
		"config", "config get core.token_limit", "card new A card", "card list", "doctor", "open --list", "scene --no-copy index.md", "version", "version --json",
		"help", "help read", "read --help", "tools list --json", "graph", "dag order --json", "connect --print claude-code",
	} {
		for _, c := range []struct {
			err  error
			says string
		}{{syscall.ENOSPC, syscall.ENOSPC.Error()}, {syscall.EPIPE, ""}} {
			said.Reset()
			code := run(append(strings.Fields(line), "-C", root), strings.NewReader(""), broken{&os.PathError{Op: "write", Path: "out", Err: c.err}}, &said)
			told := said.String()
			if c.says != "" && (code != exitFailed || strings.Count(told, c.says) != 1) {
				t.Errorf("cairn %s, with %v: %d and %q, want 1 and a line on it", line, c.err, code, told)
			}
			if c.says == "" && strings.Contains(told, syscall.EPIPE.Error()) {
				t.Errorf("cairn %s, whose reader has left, says %q", line, told)
			}
		}
	}
}

// Text comes in pieces of any length; a terminal is shown the same.
func TestOutputInPieces(t *testing.T) {
	const text = "a\r\nb\rc \x1b[1mbold\x1b[0m \x1b[1;33mmatch\x1b[0m \x1b[2Jé日\u009b\u202e\xe9\xff\x1b[2mto the end\nnext \x1b["
	const want = "a\nb\\u000dc " + bold + "bold" + reset + " " + match + "match" + reset + ` \u001b[2Jé日\u009b\u202e\xe9\xff` + dim + "to the end" + reset + "\nnext \\u001b["
	for n := 1; n <= len(text); n++ {
		var b bytes.Buffer
		o := &output{w: &b, tty: true, colour: true}
		for rest := text; rest != ""; rest = rest[min(n, len(rest)):] {
			if _, err := o.Write([]byte(rest[:min(n, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.end(); err != nil || b.String() != want {
			t.Fatalf("in pieces of %d: %v,\n%q, want\n%q", n, err, &b, want)
		}
	}
	var b bytes.Buffer
	o := &output{w: &b, tty: true}
	if _, err := o.Write([]byte(bold + "x")); err != nil || b.String() != `\u001b[1mx` {
		t.Errorf("without colour: %q, %v, want no sequence", &b, err)
	}
	b.Reset()
	o = &output{w: &b}
	if _, err := o.Write([]byte(text)); err != nil || b.String() != text {
		t.Errorf("where no terminal is: %q, want %q", &b, text)
	}
}

// The first error stays, and nothing is written after it.
func TestOutputKeepsItsError(t *testing.T) {
	first := errors.New("the first")
	o := &output{w: broken{first}}
	o.Write([]byte("x"))
	var b bytes.Buffer
	o.w = &b
	o.Write([]byte("y"))
	if err := o.end(); !errors.Is(err, first) || b.Len() > 0 {
		t.Errorf("afterwards: %v and %q, want %v and nothing", err, &b, first)
	}
}
