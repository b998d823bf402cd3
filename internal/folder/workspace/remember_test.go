package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/folder/config"
	"cairn/internal/task"
	"cairn/internal/task/notes"
)

const guide = "# Guide\n\n## Pool\n\nThe pool has 20 connections, and a query waits for one.\n\n## Keys\n\ntoken = \"ghp_abcdefghijklmnopqrstuvwxyz0123456789\"\n\nKeys are rotated every month by the release script.\n"

// openNotes returns the notes of a new folder with the guide.
func openNotes(t *testing.T) (root string, tasks *Tasks) {
	t.Helper()
	root = t.TempDir()
	write(t, filepath.Join(root, "guide.md"), guide)
	now := func() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }
	tasks, err := OpenTasks(config.Selection{Root: root}, config.Default(), &TaskOptions{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tasks.Close() })
	return root, tasks
}

func textOf(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRemember(t *testing.T) {
	root, tasks := openNotes(t)
	made, err := tasks.Notes.Remember(t.Context(), "", notes.Request{
		Text: "Queries wait because the pool is small.\r\nUse ghp_abcdefghijklmnopqrstuvwxyz0123456789.", Tags: []string{"db: pool"}, RestsOn: []string{"guide.md#pool", "guide.md:11"}, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	got := textOf(t, root, made.Path)
	for _, want := range []string{"title: Queries wait because the pool is small.\n", "db: pool", "by: ann\n", "created: 2026-01-15T12:00:00Z\n",
		`- {"receipt":"guide.md:3-5#pool@`, `- {"receipt":"guide.md:11-11@`, "---\n\nQueries wait because the pool is small.\nUse ghp_***.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the note lacks %q:\n%s", want, got)
		}
	}
	if made.Masked != 1 || len(made.Receipts) != 2 || strings.Contains(got, "ghp_a") {
		t.Errorf("%d masked, receipts %q, want 1 and 2", made.Masked, made.Receipts)
	}

	// A person adds a field and a line. To confirm changes neither.
	edited := strings.Replace(got, "by: ann\n", "by: ann # that is me\nmood: calm\n", 1) + "By hand.\n"
	write(t, filepath.Join(root, made.Path), edited)
	write(t, filepath.Join(root, "guide.md"), strings.Replace(guide, "20 connections", "40 connections", 1))
	confirmed, err := tasks.Notes.Remember(t.Context(), "", notes.Request{ID: made.ID})
	if err != nil {
		t.Fatal(err)
	}
	now := textOf(t, root, made.Path)
	if confirmed.Receipts[0] == made.Receipts[0] || confirmed.Receipts[1] != made.Receipts[1] || !strings.Contains(now, "40 connections") || strings.Contains(now, "20 connections") {
		t.Errorf("confirmed receipts %q, before %q", confirmed.Receipts, made.Receipts)
	}
	withoutOurs := func(text string) (kept []string) {
		for line := range strings.Lines(text) {
			if !strings.Contains(line, `{"receipt":`) && !strings.HasPrefix(line, "confirmed: ") {
				kept = append(kept, line)
			}
		}
		return kept
	}
	if !slices.Equal(withoutOurs(now), withoutOurs(edited)) {
		t.Errorf("to confirm changed other lines:\n%s\nbefore:\n%s", now, edited)
	}

	corrected, err := tasks.Notes.Remember(t.Context(), "", notes.Request{ID: made.ID, Text: "Forty are enough.", RestsOn: []string{"guide.md:5"}})
	if err != nil {
		t.Fatal(err)
	}
	now = textOf(t, root, made.Path)
	if len(corrected.Receipts) != 1 || strings.Count(now, `{"receipt":`) != 1 || !strings.HasSuffix(now, "---\n\nForty are enough.\n") || !strings.Contains(now, "mood: calm\n") || !strings.Contains(now, "title: Forty are enough.\n") {
		t.Errorf("corrected %q:\n%s", corrected.Receipts, now)
	}

	// Removed lines cannot be confirmed. The note stays as it is until it is dropped.
	write(t, filepath.Join(root, "guide.md"), "# Guide\n\nNothing else.\n")
	if _, err := tasks.Notes.Remember(t.Context(), "", notes.Request{ID: made.ID}); err == nil || !strings.Contains(err.Error(), "removed") || textOf(t, root, made.Path) != now {
		t.Errorf("confirming removed lines: %v", err)
	}
	if dropped, err := tasks.Notes.Remember(t.Context(), "", notes.Request{ID: made.ID, Drop: true}); err != nil || !dropped.Dropped {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, made.Path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dropped note: %v", err)
	}
}

func TestMarkedLines(t *testing.T) {
	root, tasks := openNotes(t)
	mark, err := tasks.Receipt("guide.md", "pool", 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "guide.md"), "Above.\n\n"+guide)
	made, err := tasks.Notes.Remember(t.Context(), "", notes.Request{Text: "x", RestsOn: []string{mark.Receipt.String()}})
	if err != nil || !strings.HasPrefix(made.Receipts[0], "guide.md:5-7#pool@") {
		t.Errorf("lines that moved after they were read: %v, %v", made, err)
	}
	write(t, filepath.Join(root, "guide.md"), strings.Replace(guide, "20", "30", 1))
	if _, err := tasks.Notes.Remember(t.Context(), "", notes.Request{Text: "x", RestsOn: []string{mark.Receipt.String()}}); err == nil || !strings.Contains(err.Error(), "not what they were") {
		t.Errorf("lines that changed after they were read: %v", err)
	}
}

// TestRefused: a request that is refused writes nothing.
func TestRefused(t *testing.T) {
	root, tasks := openNotes(t)
	write(t, filepath.Join(root, ".env"), "KEY=value of a key\n")
	many := slices.Repeat([]string{"guide.md:1"}, notes.MaxReceipts+1)
	for _, c := range []struct {
		r    notes.Request
		want string
	}{
		{notes.Request{}, "give a text"},
		{notes.Request{Text: " \n"}, "give a text"},
		{notes.Request{Drop: true}, "give a text"},
		{notes.Request{Text: "x", ID: "abcdef", Drop: true}, "drop takes only an id"},
		{notes.Request{Text: "x", ID: "../abc"}, "want six of a-z"},
		{notes.Request{ID: "abcdef"}, "Note Not Found"},
		{notes.Request{ID: "abcdef", Drop: true}, "Note Not Found"},
		{notes.Request{Text: strings.Repeat("x", notes.MaxText+1)}, "at most 4000"},
		{notes.Request{Text: "x\xff"}, "not valid UTF-8"},
		{notes.Request{Text: "Fine.\U000E0041\U000E0042\U000E0043\U000E0044\U000E0045\U000E0046\U000E0047\U000E0048"}, "do not see"},
		{notes.Request{Text: "x", Title: "a\nb"}, "not one line"},
		{notes.Request{Text: "x", Tags: []string{"a\nb: c"}}, "not one line"},
		{notes.Request{Text: "x", RestsOn: many}, "9 places"},
		{notes.Request{Text: "x", RestsOn: []string{"guide.md"}}, "names no lines"},
		{notes.Request{Text: "x", RestsOn: []string{"none.md:1"}}, "cannot be read"},
		{notes.Request{Text: "x", RestsOn: []string{"../guide.md:1"}}, "cannot be read"},
		{notes.Request{Text: "x", RestsOn: []string{".env:1"}}, "cannot be read"},
		{notes.Request{Text: "x", RestsOn: []string{"guide.md:1-99"}}, "has 11 lines"},
		{notes.Request{Text: "x", RestsOn: []string{"guide.md#nothing"}}, "no section"},
		{notes.Request{Text: "x", RestsOn: []string{"guide.md#keys"}}, "have a secret"},
	} {
		_, err := tasks.Notes.Remember(t.Context(), "", c.r)
		if _, ok := errors.AsType[*task.Error](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+.200v: %v, want %q", c.r, err, c.want)
		}
	}
	if found, err := os.ReadDir(filepath.Join(root, notes.Folder)); err == nil {
		t.Errorf("%d files were written", len(found))
	}
}

func TestBoundOfASession(t *testing.T) {
	_, tasks := openNotes(t)
	for n := range notes.PerSession + 1 {
		_, err := tasks.Notes.Remember(t.Context(), "one", notes.Request{Text: "x"})
		if (err == nil) != (n < notes.PerSession) {
			t.Fatalf("write %d: %v", n+1, err)
		}
	}
	if _, err := tasks.Notes.Remember(t.Context(), "two", notes.Request{Text: "x"}); err != nil {
		t.Errorf("another session: %v", err)
	}
}
