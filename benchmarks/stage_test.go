package benchmarks

import (
	"os"
	"testing"
)

// TestStage measures a few tasks: all end complete, and nothing is left behind.
func TestStage(t *testing.T) {
	dir := t.TempDir()
	told := 0
	r, err := Stage(t.Context(), StageOptions{Tasks: 30, Workers: 2, Clients: 1, Dir: dir, Progress: func(string) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Tasks != 30 || r.Stages != 150 || r.TasksPerSecond <= 0 || r.Create.P50 <= 0 || r.IdleCreate.P95 <= 0 || told == 0 {
		t.Errorf("measured %+v, told %d times", r, told)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
