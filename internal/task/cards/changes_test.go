package cards

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openMany opens a store with cards t00000 to t00019.
func openMany(t *testing.T) (s *Store, dir string) {
	t.Helper()
	cards := map[string]string{}
	for i := range 20 {
		cards[fmt.Sprintf("t%05d", i)] = card(fmt.Sprintf("Title %05d", i), "")
	}
	return board(t, nil, cards)
}

// same compares the answers of a store with those of a new store.
func same(t *testing.T, what string, s *Store, dir string) {
	t.Helper()
	got, err := s.Board()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	want, err := openStore(t, dir, nil).Board()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	show := func(b *Board) (lines []string) {
		for _, c := range b.Cards {
			lines = append(lines, fmt.Sprint(c.ID, " ", c.Title, " ", c.Created, " ", c.DependsOn))
		}
		for _, p := range b.Unusable {
			lines = append(lines, p.Path+": "+p.Message)
		}
		return lines
	}
	if diff := cmp.Diff(show(want), show(got)); diff != "" {
		t.Errorf("%s: the board lags behind (-files +board):\n%s", what, diff)
	}
	if len(got.byID) != len(got.Cards) {
		t.Errorf("%s: %d ids for %d cards", what, len(got.byID), len(got.Cards))
	}
	for _, c := range got.Cards {
		if got.byID[c.ID] != c {
			t.Errorf("%s: %s is another card by its id", what, c.ID)
		}
	}
}

// TestChanges changes a folder in the ways of common tools. The next answer must reflect each
// change.
func TestChanges(t *testing.T) {
	s, dir := openMany(t)
	folder := filepath.Join(dir, ".cairn", "cards")
	at := func(name string) string { return filepath.Join(folder, name) }
	steps := []struct {
		what string
		do   func() error
	}{
		{"an edit in place", func() error { return os.WriteFile(at("t00001.md"), []byte(card("Changed", "")), 0o644) }},
		{"an edit that keeps size and time", func() error {
			info, err := os.Stat(at("t00002.md"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(at("t00002.md"), []byte(card("Title 99999", "")), 0o644); err != nil {
				return err
			}
			return os.Chtimes(at("t00002.md"), info.ModTime(), info.ModTime())
		}},
		{"a new file in its place", func() error {
			if err := os.WriteFile(at(".swap"), []byte(card("Swapped", "")), 0o644); err != nil {
				return err
			}
			return os.Rename(at(".swap"), at("t00003.md"))
		}},
		{"a card less", func() error { return os.Remove(at("t00004.md")) }},
		{"a card more", func() error {
			return os.WriteFile(at("brandnew.md"), []byte(card("New", "created: 2020-01-01T00:00:00Z\n")), 0o644)
		}},
		{"another name", func() error { return os.Rename(at("t00005.md"), at("renamed.md")) }},
		{"a broken card", func() error { return os.WriteFile(at("t00006.md"), []byte("---\ntitle: [\n---\n"), 0o644) }},
		{"a card that nobody may read", func() error { return os.Chmod(at("t00007.md"), 0) }},
		{"the same, that everybody may read", func() error { return os.Chmod(at("t00007.md"), 0o644) }},
		{"a folder in its place", func() error {
			if err := os.Remove(at("t00008.md")); err != nil {
				return err
			}
			return os.Mkdir(at("t00008.md"), 0o755)
		}},
		{"a further name elsewhere", func() error {
			if err := os.Link(at("t00009.md"), filepath.Join(dir, "elsewhere")); err != nil {
				return err
			}
			return os.WriteFile(at("t00009.md"), []byte(card("Has two names", "")), 0o644)
		}},
		{"an edit by that name", func() error {
			return os.WriteFile(filepath.Join(dir, "elsewhere"), []byte(card("Through a link", "")), 0o644)
		}},
		{"another folder in its place", func() error {
			if err := os.Rename(folder, folder+".away"); err != nil {
				return err
			}
			if err := os.Mkdir(folder, 0o755); err != nil {
				return err
			}
			return os.WriteFile(at("alone1.md"), []byte(card("Alone", "")), 0o644)
		}},
		{"the old folder again", func() error {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
			return os.Rename(folder+".away", folder)
		}},
		{"nothing", func() error { return nil }},
		{"an edit after that", func() error { return os.WriteFile(at("t00010.md"), []byte(card("Late", "")), 0o644) }},
		{"no folder", func() error { return os.RemoveAll(folder) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		same(t, step.what, s, dir)
	}
}

// TestRandomChanges changes some cards at random between answers.
func TestRandomChanges(t *testing.T) {
	s, dir := openMany(t)
	folder := filepath.Join(dir, ".cairn", "cards")
	r := rand.New(rand.NewPCG(7, 7))
	for step := range 40 {
		for range r.IntN(12) {
			name := filepath.Join(folder, fmt.Sprintf("t%05d.md", r.IntN(30)))
			text := card(fmt.Sprintf("Step %d", step), fmt.Sprintf("created: 2026-01-%02dT00:00:00Z\n", 1+r.IntN(28)))
			switch r.IntN(4) {
			case 0:
				_ = os.Remove(name) // it may be gone
			case 1:
				text = "---\n: {\n---\n"
				fallthrough
			default:
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		same(t, fmt.Sprintf("step %d", step), s, dir)
	}
}

// TestRename: a rename is noticed although the number of cards is the same.
func TestRename(t *testing.T) {
	s, dir := board(t, nil, map[string]string{"aaaaaa": card("A", ""), "bbbbbb": card("B", "")})
	same(t, "at first", s, dir)
	folder := filepath.Join(dir, ".cairn", "cards")
	if err := os.Rename(filepath.Join(folder, "aaaaaa.md"), filepath.Join(folder, "cccccc.md")); err != nil {
		t.Fatal(err)
	}
	same(t, "after a rename", s, dir)
}
