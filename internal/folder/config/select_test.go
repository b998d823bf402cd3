package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/home"
)

// tree makes the folders the selection table walks about in and returns its
// top, with symlinks resolved.
func tree(t *testing.T) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{
		"home/me/plain/sub/deep", "home/me/.cairn", // a marker in the home folder must not win
		"home/me/proj/.cairn", "home/me/proj/docs/guide", "home/me/proj/nested/.cairn", "home/me/proj/nested/src",
		"home/me/old/.cuedeck", "home/me/old/notes", "home/me/both/.cairn", "home/me/both/.cuedeck", "home/me/both/in/.cuedeck", "home/me/both/in/x",
		"home/me/repo/.git/worktrees/wt", "home/me/repo/.cairn", "home/me/repo/pkg", "home/me/wt/pkg", "home/me/repo/wt/pkg", "home/me/repo/own/.cairn", "home/me/repo/own/pkg",
		"home/me/with space/.cairn", "home/me/with space/a b", "home/me/ünïcode/.cairn", "home/me/ünïcode/日本", "home/me/Applications/x",
		"home/me/.config/tool", "tmp/job/.cairn", "tmp/job/work", "tmp/bare", "srv/wiki/.cairn", "srv/wiki/pages", "srv/plain",
		"home/other/share/.cairn", "home/other/share/x",
	} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"home/me/wt/.git", "home/me/repo/wt/.git", "home/me/repo/own/.git", "home/me/filemark/.cairn", "home/me/plain/a.md"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, file), []byte("gitdir: ../repo/.git/worktrees/wt\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"home/me/link": "proj", "home/me/deeplink": "proj/docs/guide", "srv/out": "../home/me/plain", "srv/tohome": "../home/me", "srv/dangling": "nowhere", "home/me/proj/up": "../plain",
	} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Skipf("symlinks are not available: %v", err)
		}
	}
	return top
}

// choose calls Select in the working folder dir, with the folders of a tree as those of the
// user, and with variables of the environment: a name and a value each.
func choose(t *testing.T, top, dir, flag string, environ ...string) (Selection, error) {
	t.Helper()
	t.Chdir(dir)
	home, temp := filepath.Join(top, "home/me"), filepath.Join(top, "tmp")
	environ = append([]string{
		"HOME", home, "USERPROFILE", home, "TMPDIR", temp, "TMP", temp,
		"CAIRN_WORKSPACE", "", "CUE_WORKSPACE", "", "CAIRN_ROOTS", "", "SUDO_UID", "",
	}, environ...)
	for v := range slices.Chunk(environ, 2) {
		t.Setenv(v[0], v[1])
	}
	return Select(flag)
}

// TestSelect walks sixty working folders. Paths starting with "/" are taken as
// they are, others below the test's own tree; want "!" is a refusal, "?" any other error.
func TestSelect(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the table speaks of Unix folders; windowsWhy has its own test")
	}
	top := tree(t)
	for _, c := range []struct {
		dir, flag, cairn, cue string
		want                  string
		rule                  Rule
	}{
		// Current folder, no marker anywhere above that may count.
		{dir: "home/me/plain", want: "home/me/plain", rule: RuleCurrent},
		{dir: "home/me/plain/sub", want: "home/me/plain/sub", rule: RuleCurrent},
		{dir: "home/me/plain/sub/deep", want: "home/me/plain/sub/deep", rule: RuleCurrent},
		{dir: "home/me/.config/tool", want: "home/me/.config/tool", rule: RuleCurrent},
		{dir: "home/me/Applications/x", want: "home/me/Applications/x", rule: RuleCurrent},
		{dir: "home/me/filemark", want: "home/me/filemark", rule: RuleCurrent}, // a file named .cairn is no marker
		{dir: "srv/plain", want: "srv/plain", rule: RuleCurrent},
		{dir: "tmp/bare", want: "tmp/bare", rule: RuleCurrent},
		// Markers.
		{dir: "home/me/proj", want: "home/me/proj", rule: RuleParent},
		{dir: "home/me/proj/docs", want: "home/me/proj", rule: RuleParent},
		{dir: "home/me/proj/docs/guide", want: "home/me/proj", rule: RuleParent},
		{dir: "home/me/proj/.cairn", want: "home/me/proj", rule: RuleParent},
		{dir: "home/me/old", want: "home/me/old", rule: RuleParent},
		{dir: "home/me/old/notes", want: "home/me/old", rule: RuleParent},
		{dir: "home/me/with space/a b", want: "home/me/with space", rule: RuleParent},
		{dir: "home/me/ünïcode/日本", want: "home/me/ünïcode", rule: RuleParent},
		{dir: "tmp/job/work", want: "tmp/job", rule: RuleParent},
		{dir: "srv/wiki/pages", want: "srv/wiki", rule: RuleParent},
		{dir: "home/other/share/x", want: "home/other/share", rule: RuleParent},
		// Nested workspaces: the nearest wins.
		{dir: "home/me/proj/nested", want: "home/me/proj/nested", rule: RuleParent},
		{dir: "home/me/proj/nested/src", want: "home/me/proj/nested", rule: RuleParent},
		{dir: "home/me/both", want: "home/me/both", rule: RuleParent},
		{dir: "home/me/both/in", want: "home/me/both/in", rule: RuleParent},
		{dir: "home/me/both/in/x", want: "home/me/both/in", rule: RuleParent},
		// Git worktrees: .git is no marker, neither as a folder nor as a file.
		{dir: "home/me/repo/pkg", want: "home/me/repo", rule: RuleParent},
		{dir: "home/me/repo/.git", want: "home/me/repo", rule: RuleParent},
		{dir: "home/me/wt", want: "home/me/wt", rule: RuleCurrent},
		{dir: "home/me/wt/pkg", want: "home/me/wt/pkg", rule: RuleCurrent},
		{dir: "home/me/repo/wt/pkg", want: "home/me/repo", rule: RuleParent},
		{dir: "home/me/repo/own/pkg", want: "home/me/repo/own", rule: RuleParent},
		// Symlinks: the real folder counts.
		{dir: "home/me/link", want: "home/me/proj", rule: RuleParent},
		{dir: "home/me/link/docs", want: "home/me/proj", rule: RuleParent},
		{dir: "home/me/deeplink", want: "home/me/proj", rule: RuleParent},
		{dir: "srv/out", want: "home/me/plain", rule: RuleCurrent},
		{dir: "home/me/proj/up", want: "home/me/plain", rule: RuleCurrent},
		{dir: "srv/tohome", want: "!"},
		// Home, its parents, root, temporary and install folders.
		{dir: "home/me", want: "!"},
		{dir: "home", want: "!"},
		{dir: "tmp", want: "!"},
		{dir: "/", want: "!"},
		{dir: "/usr", want: "!"},
		{dir: "/usr/bin", want: "!"},
		{dir: "/usr/lib", want: "!"},
		{dir: "/bin", want: "!"},
		{dir: "/etc", want: "!"},
		{dir: "/dev", want: "!"},
		{dir: "/proc", want: "!"},
		{dir: "/opt", want: "!"},
		{dir: "/var", want: "!"},
		// The flag and the environment, and their order.
		{dir: "home/me/plain", flag: "home/me/proj", want: "home/me/proj", rule: RuleFlag},
		{dir: "home/me/proj", flag: "home/me/proj/docs", want: "home/me/proj/docs", rule: RuleFlag},
		{dir: "home/me/plain", flag: "home/me/link", want: "home/me/proj", rule: RuleFlag},
		{dir: "home/me/plain", flag: "home/me/old", cairn: "home/me/proj", cue: "srv/wiki", want: "home/me/old", rule: RuleFlag},
		{dir: "home/me/old", cairn: "home/me/proj", cue: "srv/wiki", want: "home/me/proj", rule: RuleCairn},
		{dir: "home/me/old", cue: "srv/wiki", want: "srv/wiki", rule: RuleCue},
		{dir: "/", cairn: "home/me/proj", want: "home/me/proj", rule: RuleCairn},
		{dir: "home/me", flag: "srv/plain", want: "srv/plain", rule: RuleFlag},
		{dir: "home/me/plain", flag: "home/me", want: "!"},
		{dir: "home/me/plain", flag: "/", want: "!"},
		{dir: "home/me/plain", cairn: "/usr", want: "!"},
		{dir: "home/me/plain", cue: "srv/tohome", want: "!"},
		{dir: "home/me/plain", flag: "home/me/missing", want: "?"},
		{dir: "home/me/plain", flag: "home/me/plain/a.md", want: "?"},
		{dir: "home/me/plain", cairn: "srv/dangling", want: "?"},
	} {
		at := func(p string) string {
			if p == "" || filepath.IsAbs(p) {
				return p
			}
			return filepath.Join(top, p)
		}
		if filepath.IsAbs(c.dir) {
			if _, err := os.Stat(c.dir); err != nil {
				continue // this system lacks the folder
			}
		}
		got, err := choose(t, top, at(c.dir), at(c.flag), "CAIRN_WORKSPACE", at(c.cairn), "CUE_WORKSPACE", at(c.cue))
		var refused *RefusedError
		switch {
		case c.want == "!" && !errors.As(err, &refused):
			t.Errorf("Select(%+v) = %v, %v, want a refusal", c, got, err)
		case c.want == "?" && (err == nil || errors.As(err, &refused)):
			t.Errorf("Select(%+v) = %v, %v, want an error that is no refusal", c, got, err)
		case c.want == "!" || c.want == "?":
		case err != nil || got.Root != at(c.want) || got.Rule != c.rule:
			t.Errorf("Select(%+v) = %v, %v, want %s by %s", c, got, err, at(c.want), c.rule)
		}
	}
}

// TestAnotherUsersParentIsNotTrusted: a marker above the working folder that another user
// made is refused until the user trusts its folder; a named folder needs no trust.
func TestAnotherUsersParentIsNotTrusted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	top := tree(t)
	at := func(p string) string { return filepath.Join(top, p) }
	const other = 65534
	if err := errors.Join(os.Chown(at("srv/wiki/.cairn"), other, other), os.Chown(at("tmp/job"), other, other)); err != nil {
		t.Fatal(err)
	}
	choose := func(dir, flag, sudo string) (Selection, error) {
		return choose(t, top, at(dir), flag, "SUDO_UID", sudo)
	}
	for dir, root := range map[string]string{"srv/wiki/pages": at("srv/wiki"), "srv/wiki": at("srv/wiki"), "tmp/job/work": at("tmp/job")} {
		_, err := choose(dir, "", "")
		if err == nil || !strings.Contains(err.Error(), "belongs to another user; ") || !strings.Contains(err.Error(), "`cairn trust "+root+"`") {
			t.Fatalf("below another user's folder, in %s: %v, want an error with the command", dir, err)
		}
		if _, err := choose(dir, "", "65534"); err != nil {
			t.Errorf("for the user of sudo, in %s: %v", dir, err)
		}
		if _, err := choose("srv/plain", root, ""); err != nil {
			t.Errorf("named with -C: %v", err)
		}
		if _, err := Trust(root); err != nil {
			t.Fatal(err)
		}
		if got, err := choose(dir, "", ""); err != nil || got.Root != root {
			t.Errorf("trusted, in %s: %v, %v", dir, got, err)
		}
		if err := home.Distrust(root); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMarkerThatIsALinkIsRefused(t *testing.T) {
	top := tree(t)
	proj := filepath.Join(top, "home/me/plain")
	if err := os.Symlink("../proj/.cairn", filepath.Join(proj, ".cairn")); err != nil {
		t.Skip(err)
	}
	for _, flag := range []string{"", proj} {
		_, err := choose(t, top, proj, flag)
		if err == nil || !strings.Contains(err.Error(), "is a link") {
			t.Errorf("Select(-C %q) = %v, want an error about the link", flag, err)
		}
	}
}

func TestSelectRelativeFlag(t *testing.T) {
	top := tree(t)
	got, err := choose(t, top, filepath.Join(top, "home/me/plain"), "../proj")
	if want := filepath.Join(top, "home/me/proj"); err != nil || got.Root != want {
		t.Errorf("Select(-C ../proj) = %v, %v, want %s", got, err, want)
	}
}

// TestSelectWithoutWorkingFolder: an absolute folder can be selected in a working folder that
// was removed.
func TestSelectWithoutWorkingFolder(t *testing.T) {
	want, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gone := t.TempDir()
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Skip("this system keeps the working folder:", err)
	}
	if sel, err := Select(want); err != nil || sel.Root != want {
		t.Errorf("flag: %+v, %v", sel, err)
	}
	t.Setenv("CAIRN_WORKSPACE", want)
	if sel, err := Select(""); err != nil || sel.Root != want {
		t.Errorf("environment: %+v, %v", sel, err)
	}
	if _, err := Select("docs"); err == nil {
		t.Error("a relative folder is found")
	}
}

func TestWindowsWhy(t *testing.T) {
	for dir, refused := range map[string]bool{
		"C:/Windows": true, "C:/Windows/System32": true, "D:/Program Files (x86)/App": true, "c:/programdata": true, "C:/Users": true,
		"C:/Users/me/proj": false, "D:/work": false,
	} {
		if got := windowsWhy(dir) != ""; got != refused {
			t.Errorf("windowsWhy(%q) refuses: %v, want %v", dir, got, refused)
		}
	}
}

func TestSelectFurtherRoots(t *testing.T) {
	top := tree(t)
	at := func(p string) string { return filepath.Join(top, p) }
	list := string(filepath.ListSeparator)
	for _, c := range []struct {
		roots string
		want  []Root
		bad   bool
	}{
		{"wiki=" + at("srv/wiki") + list + "old=" + at("home/me/old"), []Root{{Name: "old", Dir: at("home/me/old")}, {Name: "wiki", Dir: at("srv/wiki")}}, false},
		{"link=" + at("home/me/link"), []Root{{Name: "link", Dir: at("home/me/proj")}}, false},
		{list, nil, false},
		{at("srv/wiki"), nil, true},
		{"wiki=srv/wiki", nil, true},
		{"=" + at("srv/wiki"), nil, true},
		{"home=" + at("home/me"), nil, true},
		{"gone=" + at("home/me/gone"), nil, true},
	} {
		got, err := choose(t, top, at("home/me/plain"), "", "CAIRN_ROOTS", c.roots)
		if (err != nil) != c.bad || !cmp.Equal(got.Further, c.want) {
			t.Errorf("CAIRN_ROOTS=%s: %v, %v, want %v (an error: %v)", c.roots, got.Further, err, c.want, c.bad)
		}
	}
}
