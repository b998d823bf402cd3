package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/folder/config"
	"cairn/internal/task/cards"
	"cairn/internal/task/taskgraph"
)

// TestDAGSettings: off without a configuration, the file turns it on, the
// environment wins over the file.
func TestDAGSettings(t *testing.T) {
	root := t.TempDir()
	stats := func(environ []string, o *TaskOptions) (enforced bool, message string) {
		t.Helper()
		cfg, err := config.Load(root, environ)
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := OpenTasks(config.Selection{Root: root}, cfg, o)
		if err != nil {
			t.Fatal(err)
		}
		defer tasks.Close()
		return tasks.Enforce, tasks.Graph.Stats(t.Context(), taskgraph.StatsRequest{}).Message
	}
	const off, on = "DAG system is disabled", "No DAG exists for this channel"
	for _, step := range []struct {
		config, environ string
		person, enforce bool
		want            string
	}{
		{"", "", false, false, off},
		{"", "", true, false, on},
		{"", "TASK_DAG_ENABLED=true", false, true, on},
		{"", "TASK_DAG_ENABLED=1", false, true, on},
		{"[dag]\nenabled = true\n", "", false, true, on},
		{"[dag]\nenabled = true\n", "TASK_DAG_ENABLED=", false, true, on},
		{"[dag]\nenabled = true\n", "DAG_ENFORCE_ON_STATUS_CHANGE=false", false, false, on},
		{"[dag]\nenabled = true\n", "TASK_DAG_ENABLED=false", false, false, off},
		{"[dag]\nenabled = true\nchannel = \"-\"\n", "", false, true, "channelId is required but not provided"},
	} {
		write(t, filepath.Join(root, ".cairn/config.toml"), step.config)
		enforced, got := stats([]string{step.environ}, &TaskOptions{Person: step.person})
		if got != step.want || enforced != step.enforce {
			t.Errorf("%q with %q: %q, enforced %v, want %q, %v", step.config, step.environ, got, enforced, step.want, step.enforce)
		}
	}
}

// TestTasksMakeNothingByLooking: a folder without cards stays as it is.
func TestTasksMakeNothingByLooking(t *testing.T) {
	root := t.TempDir()
	tasks, err := OpenTasks(config.Selection{Root: root}, config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	if list, _, err := tasks.Cards.List(cards.ListRequest{}); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v, want none", list, err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".*")); len(left) != 0 {
		t.Errorf("looking made %v", left)
	}
	if _, err := tasks.Cards.Create(t.Context(), cards.CreateRequest{Title: "First"}); err != nil {
		t.Fatal(err)
	}
	if made, _ := filepath.Glob(filepath.Join(root, ".cairn/cards/*.md")); len(made) != 1 {
		t.Errorf("cards in the folder: %v, want one", made)
	}
}

// TestTasksFollowAFolderMadeAgain: task tools work on the folder that has the name now.
func TestTasksFollowAFolderMadeAgain(t *testing.T) {
	sel := config.Selection{Root: filepath.Join(t.TempDir(), "work"), Rule: config.RuleFlag}
	var tasks *Tasks
	for n := range 3 {
		if err := os.MkdirAll(sel.Root, 0o755); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			var err error
			if tasks, err = OpenTasks(sel, config.Default(), nil); err != nil {
				t.Fatal(err)
			}
			defer tasks.Close()
		}
		made, err := tasks.Cards.Create(t.Context(), cards.CreateRequest{Title: "Write"})
		if err != nil {
			t.Fatalf("folder %d: %v", n, err)
		}
		list, _, err := tasks.Cards.List(cards.ListRequest{})
		if err != nil || len(list) != 1 {
			t.Errorf("folder %d has %d cards, %v, want the one that was made in it", n, len(list), err)
		}
		if _, err := os.Stat(filepath.Join(sel.Root, ".cairn", "cards", made.ID+".md")); err != nil {
			t.Errorf("folder %d: %v", n, err)
		}
		document := filepath.Join(sel.Root, "plan.md")
		if err := os.WriteFile(document, []byte("# Plan\n\n## Tasks\n\n### First\n* Status: pending\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if found, err := tasks.Documents.WithTasks(t.Context()); err != nil || len(found) != 1 {
			t.Errorf("folder %d has documents with tasks %v, %v, want plan.md", n, found, err)
		}
		if err := os.RemoveAll(sel.Root); err != nil {
			t.Fatal(err)
		}
	}
}
