package benchmarks

import (
	"os"
	"testing"
)

// TestDAG measures every operation on small boards: each answers as it should,
// and nothing is left behind.
func TestDAG(t *testing.T) {
	dir := t.TempDir()
	told := 0
	r, err := DAG(t.Context(), DAGOptions{Cards: 40, Chain: 5, Large: 30, Calls: 2, Dir: dir, Progress: func(string) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	boards := map[string]int{}
	for _, op := range r.Operations {
		boards[op.Board]++
		if op.P50 <= 0 || op.P95 < op.P50 || op.Bytes == 0 || op.Calls == 0 || op.Name == "" {
			t.Errorf("%+v is not measured", op)
		}
		if op.Board == "large" && op.Wanted != 300 {
			t.Errorf("%s on the large board wants %v ms, want 300", op.Name, op.Wanted)
		}
	}
	if boards["cards"] == 0 || boards["large"] != boards["cards"] || boards["chain"] == 0 || told < len(r.Operations) {
		t.Errorf("operations by board: %v, told %d times", boards, told)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, o := range []DAGOptions{{Cards: 3, Chain: 5, Calls: 1}, {Cards: 40, Chain: 1, Calls: 1}, {Cards: 40, Chain: 5, Large: 7, Calls: 1}, {Cards: 40, Chain: 5, Calls: -1}} {
		if _, err := DAG(t.Context(), o); err == nil {
			t.Errorf("%+v is measured", o)
		}
	}
	if r, err = DAG(t.Context(), DAGOptions{Cards: 20, Chain: 2, Large: -1, Calls: 1, Dir: dir, Progress: func(string) {}}); err != nil || r.Operations[len(r.Operations)-1].Board != "chain" {
		t.Errorf("without a large board: %+v, %v", r, err)
	}
}
