package cards

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRepair: a repair changes only what has a single obvious repair, and a second repair
// changes nothing.
func TestRepair(t *testing.T) {
	in := map[string]string{
		"aaaaa1": card("A", "priority: Urgent # why\nstatus: someday\ncreated: 2026/01/05 10:11:12\nupdated: never\nx: y\n"),
		"aaaaa2": "---\nid: aaaaa1\nstatus: done\n---\n\n## From the heading ##\n\nText\n",
		"aaaaa3": "# No front: matter\r\n\r\nBody\r\n",
		"aaaaa4": "---\ntitle: a: b\n---\n",
		"aaaaa5": card("Fine", "created: 1767225600\n"),
		"aaaaa6": card("Untouched", "depends_on: [ghost1]\n"),
	}
	s, dir := board(t, nil, in)
	done, err := s.Repair(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"aaaaa1": card("A", "priority: critical # why\nstatus: todo\ncreated: 2026-01-05T10:11:12Z\nupdated: 2026-01-15T12:00:00Z\nx: y\n"),
		"aaaaa2": "---\nstatus: done\ntitle: From the heading\n---\n\n## From the heading ##\n\nText\n",
		"aaaaa3": "---\r\ntitle: 'No front: matter'\r\nstatus: todo\r\npriority: medium\r\ncreated: 2026-01-15T12:00:00Z\r\n---\r\n# No front: matter\r\n\r\nBody\r\n",
		"aaaaa4": in["aaaaa4"],
		"aaaaa5": card("Fine", "created: 2026-01-01T00:00:00Z\n"),
		"aaaaa6": in["aaaaa6"],
	} {
		if diff := cmp.Diff(want, strings.ReplaceAll(read(t, dir, id), `"No front: matter"`, `'No front: matter'`)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	if len(done) != 8 {
		t.Errorf("%d repairs, want 8:\n%s", len(done), strings.Join(done, "\n"))
	}
	problems, err := s.Check()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if Repairable(p.Kind) {
			t.Errorf("left over: %+v", p)
		}
	}
	if again, err := s.Repair(t.Context()); err != nil || len(again) > 0 {
		t.Errorf("a second repair does %v, %v", again, err)
	}
}
