package doctask

import (
	"strings"
	"testing"
)

func TestBuiltinWorkflows(t *testing.T) {
	d := open(t, t.TempDir(), nil, nil)
	for _, name := range []string{"multi-option-tradeoff", "spec-first-integration", "failure-triage-repro", "code-review-issue-based", "simplicity-gate", "tdd-incremental-orchestration", "manual-verification-orchestration"} {
		w, err := d.workflow(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w.Name != name || w.Description == "" || len(w.WhenToUse) < 2 || len(w.Content) < 500 || strings.Contains(w.Content, "whenToUse") {
			t.Errorf("%s lacks something: %+v", name, w)
		}
	}
}

func TestWorkflowOverrides(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, ".cairn/workflows/simplicity-gate.md", "---\ndescription: ours\nwhenToUse: always, of course\n---\nAsk.\n")
	write(t, dir, ".cuedeck/workflows/own.md", "Just text.\n")
	write(t, dir, ".cairn/workflows/empty.md", "---\ntitle: x\n---\n\n")
	write(t, dir, ".cairn/workflows/Bad Name.md", "x")
	d := open(t, dir, nil, nil)
	w, err := d.workflow("simplicity-gate")
	if err != nil || w.Description != "ours" || w.Content != "Ask." || len(w.WhenToUse) != 1 || w.WhenToUse[0] != "always, of course" {
		t.Errorf("override: %+v, %v", w, err)
	}
	if w, err := d.workflow("own"); err != nil || w.Content != "Just text." || w.WhenToUse == nil {
		t.Errorf("own: %+v, %v", w, err)
	}
	for _, name := range []string{"nope", "../own", "Own", "", "a/b", "Bad Name", strings.Repeat("a", 101)} {
		if _, err := d.workflow(name); err == nil || !strings.HasSuffix(err.Error(), " does not exist") {
			t.Errorf("workflow(%q): %v, want that it does not exist", name, err)
		}
	}
	if _, err := d.workflow("empty"); err == nil || !strings.Contains(err.Error(), "empty.md has no text") {
		t.Errorf("empty: %v", err)
	}
}
