package workflow

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/text/walk"
)

func TestBuiltin(t *testing.T) {
	all, errs := New(nil).List()
	if len(all) != 7 || len(errs) != 0 {
		t.Fatalf("%d workflows, %v, want 7", len(all), errs)
	}
	for _, name := range []string{"multi-option-tradeoff", "spec-first-integration", "failure-triage-repro", "code-review-issue-based", "simplicity-gate", "tdd-incremental-orchestration", "manual-verification-orchestration"} {
		w, err := New(nil).Get(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w.Name != name || w.Description == "" || len(w.WhenToUse) < 2 || len(w.Content) < 500 || strings.Contains(w.Content, "whenToUse") {
			t.Errorf("%s lacks something: %+v", name, w)
		}
	}
}

func TestWorkspaceOverrides(t *testing.T) {
	dir := t.TempDir()
	write := func(p, text string) {
		p = filepath.Join(dir, p)
		os.MkdirAll(filepath.Dir(p), 0o755)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(".cairn/workflows/simplicity-gate.md", "---\ndescription: ours\nwhenToUse: always, of course\n---\nAsk.\n")
	write(".cuedeck/workflows/own.md", "Just text.\n")
	write(".cairn/workflows/empty.md", "---\ntitle: x\n---\n\n")
	write(".cairn/workflows/Bad Name.md", "x")
	tree, err := walk.Open(walk.Root{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	s := New(tree)
	w, err := s.Get("simplicity-gate")
	if err != nil || w.Description != "ours" || w.Content != "Ask." || len(w.WhenToUse) != 1 || w.WhenToUse[0] != "always, of course" {
		t.Errorf("override: %+v, %v", w, err)
	}
	if w, err := s.Get("own"); err != nil || w.Content != "Just text." || w.WhenToUse == nil {
		t.Errorf("own: %+v, %v", w, err)
	}
	for _, name := range []string{"nope", "../own", "Own", "", "a/b", strings.Repeat("a", 101)} {
		if _, err := s.Get(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("Get(%q): %v, want ErrUnknown", name, err)
		}
	}
	all, errs := s.List()
	if len(all) != 8 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "empty.md has no text") {
		t.Errorf("%d workflows, %v, want 8 and one complaint", len(all), errs)
	}
}
