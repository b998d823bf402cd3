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

	"github.com/google/go-cmp/cmp"
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
		{"/*", "a", true, 1},
		{"/*", "x/a", false, 0},
		{"**/**/x", "a/x", false, 1},
	} {
		sets, _ := ruleSets(nil).with([]byte(c.rules), "", "")
		if got := sets.match(c.path, c.dir); got != c.want {
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
		rules := map[string]string{}
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
			rules[at] = src.String()
		}
		// What a walk asks: each file and folder whose folder is not ignored.
		var ask bytes.Buffer
		mine := map[string]bool{}
		var visit func(at string, stack ruleSets)
		visit = func(at string, stack ruleSets) {
			rel := strings.TrimPrefix(at+"/", "./")
			stack, _ = stack[:len(stack):len(stack)].with([]byte(rules[at]), rel, "")
			entries, err := os.ReadDir(filepath.Join(dir, at))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Name()[0] == '.' {
					continue
				}
				p := filepath.Join(at, e.Name())
				out := stack.match(p, e.IsDir()) > 0
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
				var all strings.Builder
				for _, at := range dirs {
					if at == "." || strings.HasPrefix(p, at+"/") {
						fmt.Fprintf(&all, "%s: %q\n", at, rules[at])
					}
				}
				t.Errorf("round %d: %q ignored: got %v, git says %v; rules\n%s", round, p, got, theirs[p], all.String())
			}
		}
	}
	if hits < asked/20 || hits > asked*19/20 {
		t.Errorf("%d of %d ignored: the rules are too one-sided to show anything", hits, asked)
	}
}

// A repository's ignore file is untrusted: matching must cost the length of the path
// and of the rules, whatever they are, and a walk must not read more rules than it has
// states for.
func TestHostileIgnoreFileCostsNoMoreThanAnHonestOne(t *testing.T) {
	hostile := strings.Repeat("**/a*a*/**/a*a*a*a*z\n", 45_000)
	honest := strings.Repeat("docs/old/2019-01-01\n", 47_000)
	steps := func(rules string) int {
		sets, cut := ruleSets(nil).with([]byte(rules), "", "")
		if !cut {
			t.Error("945 KB of rules were read to the end")
		}
		if got := sets.match(strings.Repeat("a", 200)+"/"+strings.Repeat("a", 200), false); got != 0 {
			t.Errorf("match: got %d, want 0", got)
		}
		n := 0
		for _, s := range sets {
			n += len(s.rules.words)
		}
		return n
	}
	if a, b := steps(hostile), steps(honest); a > 2*b || a > maxStates/64 {
		t.Errorf("a step of the hostile rules takes %d words, of the honest ones %d, want at most %d", a, b, maxStates/64)
	}

	dir := t.TempDir()
	write(t, dir, map[string]string{".gitignore": "x.md\n" + hostile, "x.md": "x", "y.md": "y", "deep/.cairnignore": strings.Repeat("b", maxIgnoreFile+1)})
	got := map[string]Reason{}
	if err := open(t, Root{"", dir}).Walk(t.Context(), documents, func(e Entry) error {
		if _, told := got[e.Path]; !told {
			got[e.Path] = e.Reason
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]Reason{".gitignore": ManyRules, "deep/.cairnignore": TooLarge, "x.md": Ignored, "y.md": None}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the walk (-want +got):\n%s", diff)
	}
}

// Rules of a folder and of those above it share the states.
func TestRulesOfNestedFoldersShareTheStates(t *testing.T) {
	var sets ruleSets
	cut := false
	for range 128 {
		sets, cut = sets.with([]byte(strings.Repeat("a*b*c*d*e*f*g*h*\n", 1000)), "", "")
	}
	states := 0
	for _, s := range sets {
		states += len(s.rules.classes)
	}
	if !cut || states > maxStates {
		t.Errorf("128 files of rules have %d states, want at most %d", states, maxStates)
	}
}
