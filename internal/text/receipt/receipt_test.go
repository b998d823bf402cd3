package receipt

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// folder is a Source in memory.
type folder map[string]string

func (f folder) Text(path string) ([]byte, error) {
	if text, ok := f[path]; ok {
		return []byte(text), nil
	}
	return nil, fmt.Errorf("reading %s: %w", path, fs.ErrNotExist)
}

func (f folder) Documents(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(f)), nil
}

func mustMake(t *testing.T, path, anchor, text string, start, end int) Full {
	t.Helper()
	r, err := Make(path, anchor, []byte(text), start, end)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkOne(t *testing.T, f folder, r Full) Finding {
	t.Helper()
	found, err := Check(context.Background(), f, []Full{r})
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

const guide = `# Guide

## Install

Run the installer with the flag --all and
wait for about twenty seconds.

## Use

Start the server on port 8080 before
the first client connects to it.

## Remove

Delete the folder.
`

func TestCheck(t *testing.T) {
	const path = "docs/guide.md"
	r := mustMake(t, path, "use", guide, 10, 11)
	edit := func(old, new string) folder {
		if !strings.Contains(guide, old) {
			t.Fatalf("no %q", old)
		}
		return folder{path: strings.Replace(guide, old, new, 1)}
	}
	use := "Start the server on port 8080 before\nthe first client connects to it.\n"
	moved := folder{path: strings.Replace(guide, use, "", 1), "docs/server.md": "# Server\n\n" + use}
	for _, test := range []struct {
		name string
		folder
		status  Status
		now     string // place of the present lines in the full form
		spacing bool
	}{
		{"untouched", folder{path: guide}, Same, "", false},
		{"below", edit("Delete", "Remove"), Same, "", false},
		{"insert above", edit("# Guide\n", "# Guide\n\nNew text.\n"), Moved, "docs/guide.md:12-13#use", false},
		{"move within", folder{path: strings.Replace(guide, use, "", 1) + "\n" + use}, Moved, "docs/guide.md:15-16#use", false},
		{"another document", moved, Moved, "docs/server.md:3-4", false},
		{"rename", folder{"docs/manual.md": guide}, Moved, "docs/manual.md:10-11", false},
		{"indent", edit(use, "    Start the server on port 8080 before\n    the first client connects to it.\n"), Moved, "docs/guide.md:10-11#use", true},
		{"reflow", edit(use, "Start the server on port 8080 before the\nfirst client\nconnects to it.\n"), Moved, "docs/guide.md:10-12#use", true},
		{"line ends", folder{path: strings.ReplaceAll(guide, "\n", "\r\n")}, Moved, "docs/guide.md:10-11#use", true},
		{"number", edit("8080", "8081"), Changed, "docs/guide.md:10-11#use", false},
		{"negation", edit("before\nthe", "before\nnot the"), Changed, "docs/guide.md:10-11#use", false},
		{"longer", edit("8080", "8080,\nor another one,"), Changed, "docs/guide.md:10-12#use", false},
		{"delete", edit(use, ""), Removed, "", false},
		{"delete the file", folder{"a.md": "# A\n"}, Removed, "", false},
		{"duplicate", edit(use, use+"\n"+use), Same, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []Full{r, {Receipt: r.Receipt}} {
				got := checkOne(t, test.folder, r)
				place := ""
				if got.Now != nil {
					place = got.Now.Receipt.place()
				}
				full := r.SHA256 != ""
				// The short form has no neighbours: its anchor names the section.
				if !full && (test.status == Changed || test.status == Removed && test.folder[path] != "") {
					if got.Status != Changed || place == "" {
						t.Errorf("short form: %s %s, want changed and the section", got.Status, place)
					}
					continue
				}
				if got.Status != test.status || place != test.now || got.Spacing != test.spacing {
					t.Errorf("full form %v: %s %q %v, want %s %q %v", full, got.Status, place, got.Spacing, test.status, test.now, test.spacing)
				}
				if got.Status == Moved && checkOne(t, test.folder, *got.Now).Status != Same {
					t.Errorf("the receipt of the present lines is not the same: %+v", got.Now)
				}
			}
		})
	}
	got := checkOne(t, edit("8080", "8081"), r)
	if want := "-Start the server on port 8080 before\n+Start the server on port 8081 before\n"; got.Diff != want {
		t.Errorf("diff %q, want %q", got.Diff, want)
	}
}

func TestForms(t *testing.T) {
	r := mustMake(t, "docs/guide.md", "use", guide, 10, 11)
	object, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	short := r.Receipt.String()
	text := fmt.Sprintf("The port is 8080 (%s), see [it](%s).\n<!-- %s -->\n%s trailing@mail:1-2@no\n", short, short, object, short)
	cited := In([]byte(text), 10)
	if len(cited) != 4 {
		t.Fatalf("%d receipts in %s, want 4", len(cited), text)
	}
	for i, c := range cited {
		want := short
		if i == 2 {
			want = string(object)
		}
		if got := text[c.Start:c.End]; got != want || c.Receipt != r.Receipt || (c.SHA256 != "") != (i == 2) {
			t.Errorf("receipt %d is %q, want %q", i, got, want)
		}
	}
	if got := In([]byte(text), 2); len(got) != 2 {
		t.Errorf("%d receipts, want 2", len(got))
	}

	f := folder{"docs/guide.md": "New.\n" + guide}
	list := make([]Full, len(cited))
	for i := range cited {
		list[i] = cited[i].Full
	}
	findings, err := Check(context.Background(), f, list)
	if err != nil {
		t.Fatal(err)
	}
	repaired, n, err := Repair([]byte(text), cited, findings, Moved)
	if err != nil || n != 4 {
		t.Fatalf("repaired %d, %v", n, err)
	}
	for _, c := range In(repaired, 10) {
		if got := checkOne(t, f, c.Full); got.Status != Same {
			t.Errorf("%s is %s after the repair", c.Receipt, got.Status)
		}
	}
	if strings.Count(string(repaired), "docs/guide.md:11-12#use@") != 4 {
		t.Errorf("repaired text: %s", repaired)
	}
}

func TestMakeFails(t *testing.T) {
	for _, lines := range [][2]int{{0, 1}, {3, 2}, {1, 100}, {2, 2}} {
		if r, err := Make("a.md", "", []byte(guide), lines[0], lines[1]); err == nil {
			t.Errorf("lines %v: %v, want an error", lines, r)
		}
	}
}
