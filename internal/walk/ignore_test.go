package walk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckPattern(t *testing.T) {
	for _, p := range []string{"target/", "*.tmp.md", "/docs/old/**", "!keep.md", "\\#a"} {
		if err := CheckPattern(p); err != nil {
			t.Errorf("CheckPattern(%q) = %v, want nil", p, err)
		}
	}
	for _, p := range []string{"", " ", "# no", "/", "[a", "a\nb"} {
		if err := CheckPattern(p); err == nil {
			t.Errorf("CheckPattern(%q) = nil, want an error", p)
		}
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rules, path string
		dir         bool
		want        int
	}{
		{"a.md", "a.md", false, 1},
		{"a.md", "x/a.md", false, 1},
		{"/a.md", "x/a.md", false, 0},
		{"x/a.md", "y/x/a.md", false, 0},
		{"*.md\n!a.md", "a.md", false, -1},
		{"!a.md\n*.md", "a.md", false, 1},
		{"build/", "build", true, 1},
		{"build/", "build", false, 0},
		{"build/", "x/build", true, 1},
		{"# comment\n\\#a", "#a", false, 1},
		{"\\!a", "!a", false, 1},
		{"a ", "a", false, 1},
		{"a\\ ", "a ", false, 1},
		{"a.md\r\n", "a.md", false, 1},
		{"\ufeffa.md", "a.md", false, 1},
		{"**/x", "a/b/x", false, 1},
		{"a/**/x", "a/x", false, 1},
		{"a/**/x", "a/b/c/x", false, 1},
		{"a/**", "a", true, 0},
		{"a/**", "a/b", false, 1},
		{"**/a/b", "a/x/a/b", false, 1},
		{"a**b", "axxb", false, 1},
		{"a*b", "a/b", false, 0},
		{"a?c", "abc", false, 1},
		{"[!a]x", "bx", false, 1},
		{"[!a]x", "ax", false, 0},
		{"[a-c]x", "bx", false, 1},
		{"[]x]y", "]y", false, 1},
		{"[[:digit:]]x", "7x", false, 1},
		{"[ab", "[ab", false, 0},
		{"{a,b}", "a", false, 0},
		{"{a,b}", "{a,b}", false, 1},
		{"", "a", false, 0},
		{"/", "a", true, 0},
		{"*", "a", true, 1},
	} {
		set := parseRules([]byte(c.rules), "", "")
		got := 0
		if set != nil {
			got = set.match(c.path, filepath.Base(c.path), c.dir)
		}
		if got != c.want {
			t.Errorf("rules %q on %q: got %d, want %d", c.rules, c.path, got, c.want)
		}
	}
}

// Random rules over random trees, with git's own answers as the truth.
func TestRulesAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	rng := rand.New(rand.NewPCG(3, 1))
	pick := func(s []string) string { return s[rng.IntN(len(s))] }
	names := []string{"a", "b", "ab", "abc", "x.md", "y.md", "ax.md", "b.txt", "c d", "#h", "!n", "[z]", "{q}", "build", "ü.md"}
	parts := []string{"a", "b", "ab", "*", "**", "?", "a*", "*.md", "*b*", "[ab]", "[!a]*", "[a-b]?", "x.md", "build", "**b", `\#h`, `\!n`, `\[z]`, "{q}", "{a,b}", "c d", "[^b]", "[[:alpha:]]", "ü*", "[", "abc*", `\a`}
	pattern := func() string {
		p := pick(parts)
		for range rng.IntN(3) {
			p += "/" + pick(parts)
		}
		// Not before a slash: git cuts the literal "a" off first and then takes
		// the asterisks for a leading "**/", against its own manual.
		if rng.IntN(12) == 0 {
			p += "/a**"
		}
		return pick([]string{"", "", "", "!"}) + pick([]string{"", "", "/"}) + p + pick([]string{"", "", "", "/", " "})
	}
	asked, hits := 0, 0
	for round := range rounds {
		dir := t.TempDir()
		run := func(stdin string, args ...string) string {
			cmd := exec.Command(git, args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "XDG_CONFIG_HOME="+dir+"/none")
			cmd.Stdin = strings.NewReader(stdin)
			out, err := cmd.Output()
			if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() > 1 || err != nil && !ok {
				t.Fatalf("git %v: %v %s", args, err, exit.Stderr)
			}
			return string(out)
		}
		run("", "init", "-q")
		var dirs []string
		files := map[string]bool{}
		var grow func(at string, depth int)
		grow = func(at string, depth int) {
			dirs = append(dirs, at)
			for range 5 {
				name := filepath.Join(at, pick(names))
				if _, taken := files[name]; taken {
					continue
				}
				if depth < 3 && rng.IntN(2) == 0 {
					files[name] = true
					if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
						t.Fatal(err)
					}
					grow(name, depth+1)
				} else if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
					files[name] = false
					if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		grow(".", 0)
		sets := map[string]*ruleSet{}
		for i, at := range dirs {
			if i > 0 && rng.IntN(4) > 0 {
				continue
			}
			var src strings.Builder
			for range 1 + rng.IntN(6) {
				fmt.Fprintln(&src, pattern())
			}
			if err := os.WriteFile(filepath.Join(dir, at, ".gitignore"), []byte(src.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			rel := ""
			if at != "." {
				rel = at + "/"
			}
			sets[at] = parseRules([]byte(src.String()), rel, "")
		}
		// What a walk asks: each file and folder whose folder is not ignored.
		var ask bytes.Buffer
		mine := map[string]bool{}
		var visit func(at string, stack []*ruleSet)
		visit = func(at string, stack []*ruleSet) {
			if s := sets[at]; s != nil {
				stack = append(stack[:len(stack):len(stack)], s)
			}
			entries, err := os.ReadDir(filepath.Join(dir, at))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Name()[0] == '.' {
					continue
				}
				p := filepath.Join(at, e.Name())
				out := ignored(stack, p, e.Name(), e.IsDir()) > 0
				mine[p] = out
				ask.WriteString(p + "\x00")
				if e.IsDir() && !out {
					visit(p, stack)
				}
			}
		}
		visit(".", nil)
		theirs := map[string]bool{}
		for _, p := range strings.Split(run(ask.String(), "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
			theirs[p] = true
		}
		for p, got := range mine {
			asked++
			if got {
				hits++
			}
			if got != theirs[p] {
				var rules strings.Builder
				for _, at := range dirs {
					if src, err := os.ReadFile(filepath.Join(dir, at, ".gitignore")); err == nil && (at == "." || strings.HasPrefix(p, at+"/")) {
						fmt.Fprintf(&rules, "%s: %q\n", at, src)
					}
				}
				t.Errorf("round %d: %q ignored: got %v, git says %v; rules\n%s", round, p, got, theirs[p], rules.String())
			}
		}
	}
	if hits < asked/20 || hits > asked*19/20 {
		t.Errorf("%d of %d ignored: the rules are too one-sided to show anything", hits, asked)
	}
}
