package finder

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"cairn/internal/text/highlight"
)

var places = []Place{
	{Kind: "file", Path: "docs/auth.md", Line: 1, Text: "docs/auth.md"},
	{Kind: "heading", Path: "docs/auth.md", Line: 7, Text: "docs/auth.md > Login flow"},
	{Kind: "file", Path: "docs/backup.md", Line: 1, Text: "docs/backup.md"},
	{Kind: "card", Path: ".cairn/cards/abc123.md", Line: 1, Text: "abc123 Implement login API"},
}

func preview(p Place) string { return "# Preview of " + p.Path + "\n\ttext\x1b[31m red\n" }

// press drives the model with keys: names as Bubble Tea has them, or text.
func press(t *testing.T, m *Model, keys ...string) (quit bool) {
	t.Helper()
	named := map[string]tea.Key{"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "backspace": {Code: tea.KeyBackspace},
		"ctrl+u": {Code: 'u', Mod: tea.ModCtrl}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}}
	for _, k := range keys {
		msg := tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		if key, ok := named[k]; ok {
			msg = tea.KeyPressMsg(key)
		}
		_, cmd := m.Update(msg)
		if cmd != nil && m.search == nil {
			if _, ok := cmd().(tea.QuitMsg); ok {
				return true
			}
		}
	}
	return false
}

func TestChoosing(t *testing.T) {
	for _, c := range []struct {
		keys string // separated by commas
		want string // path:line, "" for nothing
	}{
		{"enter", "docs/auth.md:1"},
		{"down,enter", "docs/auth.md:7"},
		{"down,down,up,enter", "docs/auth.md:7"},
		{"down,down,down,down,down,enter", ".cairn/cards/abc123.md:1"},
		{"up,enter", "docs/auth.md:1"},
		{"b,k,u,p,enter", "docs/backup.md:1"},
		{"l,o,g,i,n, ,f,enter", "docs/auth.md:7"},
		{"a,b,c,1,enter", ".cairn/cards/abc123.md:1"},
		{"z,z,z,enter", ""},
		{"z,z,backspace,backspace,enter", "docs/auth.md:1"},
		{"z,z,ctrl+u,down,down,enter", "docs/backup.md:1"},
		{"esc", ""},
		{"ctrl+c", ""},
	} {
		m := New(places, "", preview, nil)
		if !press(t, m, strings.Split(c.keys, ",")...) {
			t.Errorf("%s: the finder did not end", c.keys)
		}
		got := ""
		if p := m.chosen; p != nil {
			got = fmt.Sprintf("%s:%d", p.Path, p.Line)
		}
		if got != c.want {
			t.Errorf("%s chose %q, want %q", c.keys, got, c.want)
		}
	}
}

func TestView(t *testing.T) {
	many := []Place{}
	for i := range 100 {
		many = append(many, Place{Kind: "file", Path: fmt.Sprintf("%d.md", i), Line: 1, Text: fmt.Sprintf("document 漢字 number %d %s", i, strings.Repeat("long ", 40))})
	}
	for _, size := range []tea.WindowSizeMsg{{Width: 120, Height: 30}, {Width: 40, Height: 10}, {Width: 10, Height: 3}, {Width: 1, Height: 1}} {
		m := New(many, "", preview, nil)
		m.Update(size)
		press(t, m, "pgdown", "pgdown", "down")
		v := m.View().Content
		if !strings.Contains(v, ">") {
			t.Errorf("%+v shows\n%s", size, v)
		}
		for n, line := range strings.Split(v, "\n") {
			if w := ansi.StringWidth(line); n > 0 && w > max(size.Width, 8) {
				t.Errorf("%+v: line %d has %d cells: %q", size, n, w, line)
			}
		}
		if size.Width >= minPreview && (!strings.Contains(v, "# Preview of") || strings.Contains(v, "\x1b[31m")) {
			t.Errorf("%+v: the preview is not there, or not made harmless:\n%s", size, v)
		}
		if size.Height == 30 && !strings.Contains(v, "number 55") {
			t.Errorf("after two pages and one down the list shows\n%s", v)
		}
	}
	m := New(places, "", preview, nil)
	press(t, m, "z", "z", "z")
	if v := m.View().Content; !strings.Contains(v, "0 of 4") {
		t.Errorf("without a match the view is\n%s", v)
	}
}

// TestRun drives the whole program through its input.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	p, err := Run(New(places, "", preview, nil), tea.WithInput(strings.NewReader("backup\r")), tea.WithOutput(&out))
	if err != nil || p == nil || p.Path != "docs/backup.md" {
		t.Errorf("Run = %+v, %v", p, err)
	}
}

func TestFitLeavesNothingThatSteers(t *testing.T) {
	if got := fit("a\x1b[31m\tb\u009b\u202e\u2066\u061c\u200e\u200fc\r\x7f", 80); got != "a[31m bc" {
		t.Errorf("fit leaves %q, want %q", got, "a[31m bc")
	}
}

// A heading is shown whole before its path, in a list as narrow as the terminals in use.
func TestHeadingsAreShownWhole(t *testing.T) {
	m := New([]Place{{Kind: "heading", Path: "docs/standard-library/unique-ptr-class.md", Line: 7, Name: "unique_ptr::release", Where: "unique_ptr class  docs/standard-library/unique-ptr-class.md",
		Text: "docs/standard-library/unique-ptr-class.md > unique_ptr class > unique_ptr::release"}}, "", preview, nil)
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 10})
	if v := ansi.Strip(m.View().Content); !strings.Contains(v, "heading unique_ptr::release  unique_ptr class") {
		t.Errorf("the view is\n%s", v)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		filter string
		want   []int // of places
	}{
		{"", []int{0, 1, 2, 3}},
		{"login auth", []int{1}},
		{"auth", []int{0, 1}},
		{"zzzzqq", nil},
	} {
		var want []string
		for _, i := range c.want {
			want = append(want, places[i].Text)
		}
		var got []string
		for _, p := range Match(places, c.filter) {
			got = append(got, p.Text)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q matches %q, want %q", c.filter, got, want)
		}
	}
}

// After a pause the places that a search found are listed below those with all words
// of the filter; an answer to an earlier filter is not.
func TestSearchAfterAPause(t *testing.T) {
	var asked []string
	m := New(places, "", nil, func(query string) []Place {
		asked = append(asked, query)
		return []Place{{Kind: "meaning", Path: "docs/backup.md", Line: 9, Text: "Restoring"}, {Kind: "meaning", Path: "docs/auth.md", Line: 7, Text: "again"}}
	})
	press(t, m, "l", "o", "g", "i", "n")
	_, early := m.Update(paused{m.typed - 1})
	_, search := m.Update(paused{m.typed})
	if early != nil || search == nil {
		t.Fatal("a search begins after each pause of the last filter, and of no other")
	}
	answer := search()
	m.Update(answer)
	var got []string
	for _, p := range m.matches {
		got = append(got, p.Text)
	}
	if want := "docs/auth.md > Login flow|abc123 Implement login API|Restoring"; strings.Join(got, "|") != want || strings.Join(asked, "|") != "login" {
		t.Errorf("asked for %q, listed %q, want %q", asked, got, want)
	}
	press(t, m, "x")
	m.Update(answer)
	if len(m.found) != 0 {
		t.Errorf("an answer to an earlier filter is listed: %v", m.found)
	}
}

func TestPreviewHasColours(t *testing.T) {
	got := painted("a.md", "# One\nUse `code` now\n```go\n// a\treturn\x1b[31m\nreturn 12\n```\nrest", 6, 12)
	want := []string{
		colours[highlight.Heading].Styled("# One"), "Use " + colours[highlight.String].Styled("`code`") + " n",
		colours[highlight.Comment].Styled("```go"), colours[highlight.Comment].Styled("// a return["),
		colours[highlight.Keyword].Styled("return") + " " + colours[highlight.Number].Styled("12"), colours[highlight.Comment].Styled("```"),
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("line %d of %q, want %q", i, got, want[i])
		}
	}
	want = []string{colours[highlight.Keyword].Styled("func") + " f() {", " " + colours[highlight.Keyword].Styled("return") + " " + colours[highlight.Number].Styled("1")}
	if got := painted("a.go", "func f() {\n\treturn 1", 2, 20); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("code: %q, want %q", got, want)
	}
}
