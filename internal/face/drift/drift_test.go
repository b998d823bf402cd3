package drift

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/cards"
)

// project is a folder with a git history.
type project struct {
	*testing.T
	dir string
}

func newProject(t *testing.T, files map[string]string) project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	p := project{t, t.TempDir()}
	p.git("init", "-q", "-b", "main")
	p.commit("first", files)
	return p
}

func (p project) git(args ...string) {
	p.Helper()
	c := exec.Command("git", append([]string{"-C", p.dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	if out, err := c.CombinedOutput(); err != nil {
		p.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// write writes files, and removes those without text.
func (p project) write(files map[string]string) {
	p.Helper()
	for name, text := range files {
		path := filepath.Join(p.dir, filepath.FromSlash(name))
		if text == "" {
			os.Remove(path)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			p.Fatal(err)
		}
	}
}

func (p project) commit(subject string, files map[string]string) {
	p.Helper()
	p.write(files)
	p.git("add", "-A")
	p.git("commit", "-q", "--allow-empty", "-m", subject)
}

func (p project) tasks() *workspace.Tasks {
	p.Helper()
	t, err := workspace.OpenTasks(config.Selection{Root: p.dir}, config.Config{}, &workspace.TaskOptions{Person: true})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { t.Close() })
	return t
}

func (p project) check(o Options) *Report {
	p.Helper()
	r, err := Check(p.Context(), p.dir, p.tasks(), o)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// lines returns the findings in short.
func lines(r *Report) (lines []string) {
	for _, f := range r.Findings {
		line := fmt.Sprintf("%s:%d %s %s", f.Path, f.Line, f.Kind, f.Says)
		if f.Now != "" {
			line += " > " + f.Now
		}
		if f.Since != nil {
			line += " since " + f.Since.Subject
		}
		lines = append(lines, line)
	}
	return lines
}

func (p project) want(r *Report, want ...string) {
	p.Helper()
	if got := lines(r); !slices.Equal(got, want) {
		p.Errorf("findings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

var before = map[string]string{
	"go.mod": "module example.org/ferry\n",
	"cmd/ferry/main.go": `package main

import (
	"flag"
	"os"
)

// LoadHarbour reads a harbour.
func LoadHarbour(path string) string { return os.Getenv("FERRY_HOME") + path }

func main() {
	flag.Int("max-boats", 10, "boats at once")
	flag.Bool("quiet", false, "print nothing")
	switch os.Args[1] {
	case "depart":
	case "arrive":
	}
	LoadHarbour("x")
}
`,
	"internal/tide/tide.go": "package tide\n",
	"ferry.yaml":            "dockTimeout: 3\n",
}

const guide = `# Guide

Run ` + "`ferry depart --max-boats 3`" + ` with ` + "`FERRY_HOME`" + ` set; ` + "`LoadHarbour()`" + ` reads the file
` + "`internal/tide/tide.go`" + `. The library ` + "`SomeoneElse.doThis()`" + ` and ` + "`--their-flag`" + ` are not ours.

` + "```yaml\ndockTimeout: 5\n```" + `

See [the tide](tide.md#high) and [ours](#guide).
`

func TestCheck(t *testing.T) {
	doc := map[string]string{"guide.md": guide, "tide.md": "# Tide\n\n## High\n\nText.\n"}
	all := map[string]string{}
	for _, files := range []map[string]string{before, doc} {
		for name, text := range files {
			all[name] = text
		}
	}
	main := before["cmd/ferry/main.go"]
	tests := []struct {
		name  string
		after map[string]string
		want  []string
	}{
		{"nothing", nil, nil},
		{"flag", map[string]string{"cmd/ferry/main.go": strings.ReplaceAll(main, "max-boats", "boat-limit")},
			[]string{"guide.md:3 flag --max-boats > boat-limit since change"}},
		{"environment", map[string]string{"cmd/ferry/main.go": strings.ReplaceAll(main, "FERRY_HOME", "FERRY_DIR")},
			[]string{"guide.md:3 environment FERRY_HOME > FERRY_DIR since change"}},
		{"symbol", map[string]string{"cmd/ferry/main.go": strings.ReplaceAll(main, "LoadHarbour", "ReadHarbour")},
			[]string{"guide.md:3 symbol LoadHarbour > ReadHarbour since change"}},
		{"command", map[string]string{"cmd/ferry/main.go": strings.ReplaceAll(main, `"depart"`, `"leave"`)},
			[]string{"guide.md:3 command ferry depart > leave since change"}},
		{"moved file", map[string]string{"internal/tide/tide.go": "", "internal/sea/tide.go": "package tide\n"},
			[]string{"guide.md:4 path internal/tide/tide.go > internal/sea/tide.go since change"}},
		{"key", map[string]string{"ferry.yaml": "mooringTimeout: 3\n"},
			[]string{"guide.md:7 key dockTimeout > mooringTimeout since change"}},
		{"link", map[string]string{"tide.md": ""},
			[]string{"guide.md:10 link tide.md#high leads to tide.md, which does not exist since change"}},
		{"anchor", map[string]string{"tide.md": "# Tide\n\n## Low\n"},
			[]string{"guide.md:10 anchor tide.md#high: tide.md has no section #high since change"}},
		{"a common word", map[string]string{"guide.md": guide + "\nThe `quiet` is ours.\n", "cmd/ferry/main.go": strings.ReplaceAll(main, `"quiet"`, `"silent"`)}, nil},
		{"a path in prose", map[string]string{"guide.md": guide + "\nRead internal/tide/tide.go or https://example.org/internal/tide/sea.go.\n", "internal/tide/tide.go": "", "internal/sea.go": "package sea\n"},
			[]string{"guide.md:4 path internal/tide/tide.go > tide.md since change"}},
		{"anchor of a tag", map[string]string{"tide.md": "# Tide\n\n<h2 name=\"high\">High</h2>\n"}, nil},
		{"a record of the past", map[string]string{"cmd/ferry/main.go": strings.ReplaceAll(main, "FERRY_HOME", "FERRY_DIR"),
			"guide.md": strings.ReplaceAll(guide, "set; ", "set (renamed to `FERRY_DIR`); ")}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t, all)
			p.commit("change", tt.after)
			p.commit("later", map[string]string{"internal/other.go": "package internal\n"})
			p.want(p.check(Options{}), tt.want...)
		})
	}
}

// The declarations of all languages are evidence, in prose, directives and samples.
func TestDeclared(t *testing.T) {
	ship := "package ferry\n\ntype Deck struct{}\n\n// BoardAll boards.\nfunc (d *Deck) BoardAll(n int) {}\n\nconst (\n\tMaxSeats = 3\n)\n"
	p := newProject(t, map[string]string{"deck.go": ship, "boat.d.ts": "export interface Boat {\n  keelDepth?: number;\n}\n",
		"guide.md": "# Guide\n\nUse `BoardAll()`, `keelDepth` and `deck`.\n\n```go\nconst MaxSeats = 3\nconst ownName = 4\n```\n",
		"a.md":     "The `BoardAll` is before any heading.\n\n# A\n",
		"api.rst":  "API\n===\n\n.. autoclass:: BoardAll\n"})
	p.commit("change", map[string]string{"deck.go": "package ferry\n", "boat.d.ts": "export interface Boat {\n}\n"})
	p.want(p.check(Options{}), "a.md:1 symbol BoardAll since change", "api.rst:4 symbol BoardAll since change", "guide.md:3 symbol BoardAll since change", "guide.md:3 symbol keelDepth since change", "guide.md:6 symbol MaxSeats since change")
}

// A statement that was written after the name was removed is about something else.
func TestWrittenLater(t *testing.T) {
	p := newProject(t, before)
	p.commit("rename", map[string]string{"cmd/ferry/main.go": strings.ReplaceAll(before["cmd/ferry/main.go"], "LoadHarbour", "ReadHarbour")})
	p.commit("write", map[string]string{"guide.md": "# Guide\n\nAnother project has `LoadHarbour()`.\n"})
	p.want(p.check(Options{}))
}

func TestSince(t *testing.T) {
	all := map[string]string{"guide.md": guide, "tide.md": "# Tide\n\n## High\n"}
	for name, text := range before {
		all[name] = text
	}
	p := newProject(t, all)
	main := strings.ReplaceAll(before["cmd/ferry/main.go"], "FERRY_HOME", "FERRY_DIR")
	p.commit("rename the variable", map[string]string{"cmd/ferry/main.go": main})
	p.git("tag", "-a", "v1", "-m", "v1")
	p.commit("rename the function", map[string]string{"cmd/ferry/main.go": strings.ReplaceAll(main, "LoadHarbour", "ReadHarbour")})
	for _, ref := range []string{"v1", "HEAD~1"} {
		p.want(p.check(Options{Since: ref}), "guide.md:3 symbol LoadHarbour > ReadHarbour since rename the function")
	}
	if _, err := Check(t.Context(), p.dir, p.tasks(), Options{Since: "v9"}); err == nil {
		t.Error("no error for an unknown commit")
	}
	p.write(map[string]string{"ferry.yaml": "mooringTimeout: 3\n"})
	p.want(p.check(Options{Since: "HEAD"}), "guide.md:7 key dockTimeout > mooringTimeout")
}

func TestVerdicts(t *testing.T) {
	p := newProject(t, map[string]string{"a.md": "# A\n\n[one](one.md) and [two](two.md)\n"})
	if r := p.check(Options{}); len(r.Findings) != 0 {
		t.Error("links that never led to something:", lines(r))
	}
	all := Options{All: true}
	r := p.check(all)
	tasks := p.tasks()
	if n, err := r.Cards(t.Context(), tasks); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := r.Cards(t.Context(), tasks); n != 0 || err != nil {
		t.Error("cards for the same findings:", n, err)
	}
	if list, _, err := tasks.Cards.List(cards.ListRequest{}); err != nil || len(list) != 2 {
		t.Error(list, err)
	}
	if err := r.Judge(t.Context(), p.dir, tasks, Ignored, []string{"none"}, "x"); err == nil {
		t.Error("no error for an unknown ID")
	}
	if err := r.Judge(t.Context(), p.dir, tasks, Accepted, []string{r.Findings[0].ID}, "written\nsoon"); err != nil {
		t.Fatal(err)
	}
	r = p.check(all)
	p.want(r, "a.md:3 link two.md does not exist")
	if r.Accepted != 1 {
		t.Error("accepted:", r.Accepted)
	}
	// A verdict ends when the statement changes.
	p.write(map[string]string{"a.md": "# A\n\n[one](one2.md) and [two](two.md)\n"})
	if r = p.check(all); len(r.Findings) != 2 {
		t.Error(lines(r))
	}
}

// TestLongLine: the claims of a document in one line cost no more than those of many lines.
func TestLongLine(t *testing.T) {
	var text strings.Builder
	text.WriteString("# A\n\n")
	for i := range 2 * maxClaims {
		fmt.Fprintf(&text, "`some_name_%dx` and ", i)
	}
	all := claims("a.md", []byte(text.String()), nil)
	size := 0
	for _, c := range all {
		size += len(c.full)
	}
	if len(all) != maxClaims || size > 2*maxAround*maxClaims || all[0].line != 3 || all[maxClaims-1].line != 3 {
		t.Errorf("%d claims with lines of %d bytes in all, the first in line %d", len(all), size, all[0].line)
	}
}
