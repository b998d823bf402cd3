package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/cards"
	"cairn/retriever"
)

// folder makes a folder from path → content.
func folder(t *testing.T, files map[string]string) config.Selection {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return config.Selection{Root: root}
}

// found shows findings in short.
func found(r *Report) (lines []string) {
	for _, f := range r.Findings {
		mark := "warning"
		if f.Error {
			mark = "error"
		}
		place := strings.TrimPrefix(f.Path, ".cairn/cards/")
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprint(mark, " ", f.Check, " ", f.Kind, " ", place)), " "))
	}
	return lines
}

func check(t *testing.T, sel config.Selection, o Options) *Report {
	t.Helper()
	r, err := Check(t.Context(), sel, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Message == "" || f.Fix == "" {
			t.Errorf("%+v does not say what is wrong and what to do", f)
		}
	}
	return r
}

// TestManual: the comment of Finding.Check, the help and docs/cli.md name every check, and a
// test of this file shows every kind of finding, except for the checks that need a whole
// workspace: those have tests in cmd/cairn.
func TestManual(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	code := read("doctor.go") + read("links.go")
	_, help, _ := strings.Cut(read("../../../cmd/cairn/help.txt"), "\n# cairn doctor\n")
	help, _, _ = strings.Cut(help, "\n# ")
	_, page, _ := strings.Cut(read("../../../docs/cli.md"), "`cairn doctor --json` names the check: ")
	page, _, _ = strings.Cut(page, ". ")
	_, comment, _ := strings.Cut(code, "`json:\"check\"` // ")
	comment, _, _ = strings.Cut(comment, "\n")
	tests := read("doctor_test.go")
	checks := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:Check: |r\.problems\()"(\w+)"(?:, Kind: "([a-z-]+)")?`).FindAllStringSubmatch(code, -1) {
		check, kind := m[1], m[2]
		checks[check] = true
		if kind != "" && check != "files" && check != "plans" && !strings.Contains(tests, " "+check+" "+kind) {
			t.Errorf("no test here shows the finding %s %s", check, kind)
		}
	}
	if len(checks) < 7 {
		t.Errorf("found the checks %v", checks)
	}
	for check := range checks {
		for where, text := range map[string]string{"the comment of Finding.Check": comment, "cmd/cairn/help.txt": help, "docs/cli.md": page} {
			if !strings.Contains(text, check) {
				t.Errorf("%s does not name the check %s", where, check)
			}
		}
	}
}

// TestBrokenCards: cards broken by hand in every way stop none of the others,
// and each is named.
func TestBrokenCards(t *testing.T) {
	const card = "---\ntitle: %s\nstatus: todo\n%s---\n"
	files := map[string]string{
		".cairn/config.toml":     "",
		".cairn/cards/badyml.md": "---\ntitle: [open\nstatus: todo\n---\n",
		".cairn/cards/colons.md": "---\ntitle: a: b: c\n---\n",
		".cairn/cards/notitl.md": "---\nstatus: todo\n---\n",
		".cairn/cards/nofmat.md": "Just text.\n",
		".cairn/cards/twinaa.md": fmt.Sprintf(card, "Twin", "id: twinbb\n"),
		".cairn/cards/twinbb.md": fmt.Sprintf(card, "Twin", ""),
		".cairn/cards/ringaa.md": fmt.Sprintf(card, "Ring", "depends_on: [ringbb]\n"),
		".cairn/cards/ringbb.md": fmt.Sprintf(card, "Ring", "depends_on: [ringaa]\n"),
		".cairn/cards/dangle.md": fmt.Sprintf(card, "Dangling", "depends_on: [ghost1]\n"),
		".cairn/cards/bigbig.md": fmt.Sprintf(card, "Big", "") + strings.Repeat("word ", 1_000_000),
		".cairn/cards/binary.md": "---\ntitle: x\n---\n\x00\x01",
		".cairn/cards/latin1.md": "---\ntitle: \xe4\xf6\n---\n",
		".cairn/cards/empty0.md": "",
		".cairn/cards/endles.md": "---\ntitle: never closed\n",
		".cairn/cards/Odd Na.md": fmt.Sprintf(card, "Odd", ""),
		".cairn/cards/prioty.md": fmt.Sprintf(card, "Priority", "priority: urgent\n"),
		".cairn/cards/goodaa.md": fmt.Sprintf(card, "Good", ""),
		".cairn/cards/goodbb.md": fmt.Sprintf(card, "Also good", "depends_on: [goodaa]\n"),
	}
	sel := folder(t, files)
	if err := os.Symlink("/etc/passwd", filepath.Join(sel.Root, ".cairn", "cards", "linked.md")); err != nil {
		t.Fatal(err)
	}
	r := check(t, sel, Options{})
	want := []string{
		"error cards unreadable Odd Na.md", "error cards bad-yaml badyml.md", "error cards unreadable binary.md", "error cards bad-yaml colons.md",
		"error cards missing-dependency dangle.md:4", "error cards no-front-matter empty0.md", "error cards no-front-matter endles.md",
		"error cards unreadable latin1.md", "error cards unreadable linked.md", "error cards no-front-matter nofmat.md", "error cards cycle ringaa.md",
		"error cards duplicate-id twinaa.md", "error cards duplicate-id twinbb.md",
		"warning cards large bigbig.md", "warning cards no-title notitl.md", "warning cards priority prioty.md", "warning cards other-id twinaa.md",
	}
	got := found(r)
	for i, line := range got {
		got[i] = strings.Replace(line, "name Odd Na.md", "unreadable Odd Na.md", 1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if r.Healthy || r.Errors != 13 || r.Warnings != 4 {
		t.Errorf("healthy %v, %d errors, %d warnings", r.Healthy, r.Errors, r.Warnings)
	}

	// The others answer as if nothing were wrong.
	tasks, err := workspace.OpenTasks(sel, config.Default(), &workspace.TaskOptions{Person: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	list, _, err := tasks.Cards.List(cards.ListRequest{})
	ids := map[string]bool{}
	for _, c := range list {
		ids[c.ID] = true
	}
	for _, id := range []string{"goodaa", "goodbb", "bigbig", "notitl", "twinaa", "twinbb", "ringaa", "dangle", "prioty"} {
		if !ids[id] {
			t.Errorf("%s is not listed beside broken cards: %v", id, err)
		}
	}
	if _, err := tasks.Cards.Update(t.Context(), cards.UpdateRequest{ID: "goodaa", Updates: map[string]json.RawMessage{"status": json.RawMessage(`"done"`)}}); err != nil {
		t.Errorf("a good card beside broken ones is not updated: %v", err)
	}
}

// TestRepair: what can be repaired is, what cannot is still named, and a second
// repair does nothing.
func TestRepair(t *testing.T) {
	sel := folder(t, map[string]string{
		".cairn/cards/notitl.md": "---\nstatus: someday\npriority: urgent\ncreated: 2026-01-05\n---\n\n# Heading\n",
		".cairn/cards/nofmat.md": "# Loose\n",
		".cairn/cards/badyml.md": "---\ntitle: [open\n---\n",
	})
	before := check(t, sel, Options{})
	if len(before.Findings) != 7 {
		t.Errorf("findings before: %q", found(before))
	}
	r := check(t, sel, Options{Repair: true})
	if len(r.Repaired) != 6 {
		t.Errorf("repaired: %q", r.Repaired)
	}
	if diff := cmp.Diff([]string{"error cards bad-yaml badyml.md"}, found(r)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	again := check(t, sel, Options{Repair: true})
	if len(again.Repaired) > 0 {
		t.Errorf("a second repair does %q", again.Repaired)
	}
	for _, f := range again.Findings {
		if f.Repairable {
			t.Errorf("%+v is said to be repairable and was not repaired", f)
		}
	}
}

func TestLinks(t *testing.T) {
	sel := folder(t, map[string]string{
		"docs/a.md": "# A\n\n[good](b.md) [good](b.md#part-two) [good](#a) [good](../img/x.png) [good](sub/) [out](https://x.y/z.md) [out](mailto:a@b.c)\n" +
			"[gone](bb.md)\n[no part](b.md#part-tow)\n[own](#nowhere)\n[escape](../../etc/passwd)\n[coded](my%20file.md) [line](../main.go#L7)\n\n" +
			"```\n[code](nowhere.md)\n```\n\n[[b]] [[Nobody]] [site](/docs/b) [site](/no/page)\n\nSee @/docs/b.md#part-two, @/docs/none.md and @#a.\n",
		"docs/b.md":         "# B\n\n## Part two\n\n<a name=\"old\"></a>\n",
		"docs/my file.md":   "# M\n\n[b](b.md#old) ![image](../img/x.png) ![none](none.png)\n",
		"docs/sub/index.md": "# S\n\n[up](../a.md)\n",
		"img/x.png":         "\x89PNG\x00",
		"main.go":           "package main\n",
		"binary.md":         "# B\x00\n\n[gone](nowhere.md)\n",
		"latin1.md":         "# B\xfc\n\n[gone](nowhere.md)\n",
	})
	r := check(t, sel, Options{})
	want := []string{
		"error links broken-link docs/a.md:4", "error links broken-link docs/a.md:16", "error links broken-link docs/my file.md:3", "error links broken-link latin1.md:3",
		"error links broken-anchor docs/a.md:5", "error links broken-anchor docs/a.md:6",
		"warning links outside-link docs/a.md:7", "warning links broken-link docs/a.md:14", "warning links broken-link docs/a.md:14",
	}
	if diff := cmp.Diff(want, found(r)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if r.Documents != 5 || r.Links < 15 {
		t.Errorf("%d documents, %d links", r.Documents, r.Links)
	}
	for _, f := range r.Findings {
		switch {
		case strings.Contains(f.Message, "bb.md") && f.Fix != "did you mean docs/b.md?",
			strings.Contains(f.Message, "part-tow") && f.Fix != "did you mean #part-two?":
			t.Errorf("%q: fix %q", f.Message, f.Fix)
		}
	}
}

// TestLanguage: doctor repeats what the status of the index says of the language.
func TestLanguage(t *testing.T) {
	for percent, want := range map[int]bool{0: false, 72: true} {
		r := &Report{}
		r.index(&index.Status{IndexState: retriever.IndexState{State: "ready"}, NotEnglish: percent}, nil)
		if got := strings.Contains(strings.Join(found(r), "\n"), "warning index language"); got != want {
			t.Errorf("%d %%: warned %v, want %v: %q", percent, got, want, found(r))
		}
	}
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		env   []string
		want  []string
	}{
		"none wanted": {map[string]string{"a.md": "# A\n"}, nil, nil},
		"missing":     {map[string]string{".cairn/cards/aaaaaa.md": "---\ntitle: A\n---\n"}, nil, []string{"warning config no-config .cairn/config.toml"}},
		"broken":      {map[string]string{".cairn/config.toml": "[core\n"}, nil, []string{"error config bad-config .cairn/config.toml"}},
		"out of range": {map[string]string{".cuedeck/config.toml": "[core]\ntoken_limit = 0\n"}, nil,
			[]string{"error config bad-config .cuedeck/config.toml"}},
		"unknown key": {map[string]string{".cairn/config.toml": "[core]\ntoken_limits = 5\n"}, nil, []string{"warning config no-effect .cairn/config.toml"}},
		"environment": {map[string]string{".cairn/config.toml": ""}, []string{"TASK_DAG_ENABLED=perhaps"}, []string{"warning config no-effect .cairn/config.toml"}},
		"no channel":  {map[string]string{".cairn/config.toml": "[dag]\nchannel = \"plans/none.md\"\n"}, nil, []string{"error config no-channel .cairn/config.toml"}},
		"a channel":   {map[string]string{".cairn/config.toml": "[dag]\nchannel = \"plans/a.md\"\n", "plans/a.md": "# A\n## Tasks\n### One\n"}, nil, nil},
		"two folders": {map[string]string{".cairn/config.toml": "", ".cuedeck/cards/aaaaaa.md": "---\ntitle: A\n---\n", ".cairn/cards/bbbbbb.md": "---\ntitle: B\n---\n"}, nil,
			[]string{"error cards two-folders"}},
		"a file for a folder": {map[string]string{".cairn/config.toml": "", ".cairn/cards": ""}, nil, []string{"error cards unreadable"}},
	} {
		r := check(t, folder(t, c.files), Options{Environ: c.env})
		got := found(r)
		for i, line := range got {
			got[i] = strings.Replace(line, "two-folders .cairn/cards", "two-folders", 1)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDocumentTasks: dependencies that are no task are named with their line.
func TestDocumentTasks(t *testing.T) {
	sel := folder(t, map[string]string{
		".cairn/config.toml": "",
		"plan.md":            "# Plan\n## Tasks\n### One\n- Dependencies: None.\n### Two\n- Status: perhaps\n- Dependencies: One, [Three](#three)\n",
	})
	r := check(t, sel, Options{})
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%v %s %s %s:%d", f.Error, f.Check, f.Kind, f.Path, f.Line))
	}
	want := []string{"true tasks missing-dependency plan.md:7", "true links broken-anchor plan.md:7", "false tasks status plan.md:6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestIndex(t *testing.T) {
	sel := folder(t, map[string]string{"a.md": "# A\n"})
	for name, c := range map[string]struct {
		status index.Status
		err    error
		want   []string
	}{
		"ready":    {index.Status{IndexState: retriever.IndexState{State: "ready"}}, nil, nil},
		"missing":  {index.Status{IndexState: retriever.IndexState{State: "missing"}}, nil, []string{"warning index missing"}},
		"partial":  {index.Status{IndexState: retriever.IndexState{State: "partial", Pending: 3}}, nil, []string{"warning index partial"}},
		"degraded": {index.Status{IndexState: retriever.IndexState{State: "ready"}, Degraded: []string{"vectors"}, Problem: "damaged"}, nil, []string{"warning index degraded"}},
		"failed": {index.Status{IndexState: retriever.IndexState{State: "ready"}, Problem: "disk full", Skipped: map[string]int{"unreadable": 2}}, nil,
			[]string{"error index failed", "warning index unreadable"}},
		"damaged": {index.Status{}, &index.RebuildError{Reason: "damaged"}, []string{"error index unusable"}},
		"locked":  {index.Status{}, &owner.LockError{}, []string{"error index unusable"}},
	} {
		r := &Report{}
		r.index(&c.status, c.err)
		if diff := cmp.Diff(c.want, found(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, sel, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestLinksToLinks: links to symbolic links, and to files behind them, are not broken.
func TestLinksToLinks(t *testing.T) {
	sel := folder(t, map[string]string{"docs/a.md": "# A\n\n[b](b.md) [b](b.md#t) [c](sub/x.png) [d](sub) [e](none.md)\n", "real/t.md": "# T\n", "real/x.png": "p"})
	for name, to := range map[string]string{"docs/b.md": "../real/t.md", "docs/sub": "../real"} {
		if err := os.Symlink(to, filepath.Join(sel.Root, filepath.FromSlash(name))); err != nil {
			t.Skip(err)
		}
	}
	if got := found(check(t, sel, Options{})); len(got) != 1 || got[0] != "error links broken-link docs/a.md:3" {
		t.Errorf("findings %v, want one of none.md", got)
	}
}
