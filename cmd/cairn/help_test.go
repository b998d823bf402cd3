package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/connect"
)

// each calls fn with every command but those of cobra itself.
func each(cmd *cobra.Command, fn func(*cobra.Command)) {
	if name := cmd.Name(); name == "help" || name == "completion" || strings.HasPrefix(name, "__") {
		return
	}
	fn(cmd)
	for _, sub := range cmd.Commands() {
		each(sub, fn)
	}
}

func commands() *cobra.Command {
	return newRoot(cli.New("", strings.NewReader(""), io.Discard, io.Discard))
}

// TestHelp: every command has a description, and every command that runs has an example.
func TestHelp(t *testing.T) {
	each(commands(), func(cmd *cobra.Command) {
		var out bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if code := run(args, strings.NewReader(""), &out, &out); code != 0 {
			t.Errorf("%s --help ends with %d", cmd.CommandPath(), code)
		}
		for line := range strings.Lines(cmd.Long) {
			if len(line) > 90 && !strings.HasPrefix(line, "  {") { // a line of JSON stays whole
				t.Errorf("%s --help has a line of %d bytes, want at most 90: %s", cmd.CommandPath(), len(line), line)
			}
		}
		if strings.Contains(out.String(), "(default )") {
			t.Errorf("%s --help shows an empty default:\n%s", cmd.CommandPath(), out.String())
		}
		if cmd.Short == "" {
			t.Errorf("%s does not say what it does", cmd.CommandPath())
		}
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		if cmd.Example != "" && !strings.Contains(out.String(), strings.TrimSpace(cmd.Example)) {
			t.Errorf("%s --help does not show its example:\n%s", cmd.CommandPath(), out.String())
		}
	})
}

// TestHelpText: every part of help.txt is of a command, and connect names all clients.
func TestHelpText(t *testing.T) {
	all := parseHelp(helpText)
	delete(all, "")
	each(commands(), func(cmd *cobra.Command) { delete(all, cmd.CommandPath()) })
	for command := range all {
		t.Errorf("help.txt describes %q, which is no command", command)
	}
	for _, name := range connect.Names() {
		if long := parseHelp(helpText)["cairn connect"].long; !strings.Contains(long, name) {
			t.Errorf("help.txt does not name the client %s", name)
		}
	}
}

func TestArgsOf(t *testing.T) {
	for use, want := range map[string]string{ // for 0 to 3 arguments: which are accepted
		"list": "0", "show ID": "1", "set KEY VALUE": "2", "connect [CLIENT]": "01", "new [flags] TITLE...": "123",
		"view DOCUMENT [TASK...]": "123", "open [WORD...]": "0123", "docs --data DIR [--folds N]": "0", "learn [--skip-bad] FILE...": "123",
	} {
		check, got := argsOf(use), ""
		for n := range 4 {
			if check(&cobra.Command{}, []string{"a", "b", "c"}[:n]) == nil {
				got += strconv.Itoa(n)
			}
		}
		if got != want {
			t.Errorf("%s accepts %s arguments, want %s", use, got, want)
		}
	}
}

// TestExamples parses every line of every example: a line of it runs the command, the flags
// exist, and the number of arguments is right.
func TestExamples(t *testing.T) {
	each(commands(), func(cmd *cobra.Command) {
		own := false
		for line := range strings.Lines(cmd.Example) {
			if _, after, ok := strings.Cut(line, " | "); ok {
				line = after // what it is piped into
			}
			words, err := shellWords(strings.TrimSpace(line))
			if err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
				continue
			}
			for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
				words = words[1:] // a variable of the environment
			}
			if len(words) == 0 || words[0] != "cairn" {
				continue // another program, such as curl
			}
			root := commands()
			found, rest, err := root.Find(words[1:])
			if err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
				continue
			}
			own = own || found.CommandPath() == cmd.CommandPath()
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
				continue
			}
			if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
			}
			if err := found.ValidateRequiredFlags(); err != nil {
				t.Errorf("%s: example %q: %v", cmd.CommandPath(), line, err)
			}
		}
		if cmd.Example != "" && !own {
			t.Errorf("no example of %s is of it", cmd.CommandPath())
		}
	})
}

// shellWords splits a line like a shell, up to a redirection or pipe.
func shellWords(line string) (words []string, err error) {
	var b strings.Builder
	in, quote := false, rune(0)
	end := func() {
		if in {
			words = append(words, b.String())
			b.Reset()
			in = false
		}
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t':
			end()
		case (r == '>' || r == '|' || r == '<') && !in:
			return words, nil
		case r == '#' && !in:
			return words, nil
		default:
			b.WriteRune(r)
			in = true
		}
	}
	end()
	if quote != 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return words, nil
}

func TestManual(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if code := run([]string{"man", dir}, strings.NewReader(""), &out, &out); code != 0 {
		t.Fatalf("man ends with %d: %s", code, out.String())
	}
	each(commands(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, "man1", name))
		if err != nil || !bytes.Contains(page, []byte(".SH NAME")) {
			t.Errorf("%s: %v", name, err)
		}
	})
	for _, name := range []string{"cairn.bash", "_cairn", "cairn.fish", "cairn.ps1"} {
		if text, err := os.ReadFile(filepath.Join(dir, "completions", name)); err != nil || !bytes.Contains(text, []byte("cairn")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
