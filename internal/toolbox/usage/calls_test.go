package usage

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCalledSeesTheFlowOfData: an edge leads from the last result that has a value to a call
// with it, unless an argument had the value first.
func TestCalledSeesTheFlowOfData(t *testing.T) {
	var got []Trace
	s := NewSession(func(c Change) { got = append(got, c.Traces...) }, nil)
	failed := false
	s.Searched("write it", []string{"a", "b"})
	for _, c := range []struct{ tool, arguments, result string }{
		{"a", `{"path":"plan.md"}`, `made note-4711 of plan.md, 7 lines, number 12345, on main: true, 1000 bytes, id 9987654`},
		{"b", `{"path":"plan.md","lines":7}`, `nothing`}, // the user's path, and a number that is too short
		{"c", `{"list":[{"id":"note-4711"}],"n":12345}`, `note-4711 again`},
		{"d", `{"id":"note-4711"}`, " main\n"},                                                 // an argument of c, but first a result of a
		{"e", `{"branch":"main","draft":"true","limit":1000,"near":"note-471","n":98765}`, ``}, // the result of d, and coincidences
	} {
		s.Called(Call{Tool: c.tool, Success: &failed, Arguments: json.RawMessage(c.arguments)}, c.result)
	}
	s.Searched("something else", nil)
	if len(got) != 1 || got[0].Intent != "write it" || len(got[0].Calls) != 5 || got[0].Calls[0].OK() {
		t.Fatalf("traces %+v, want one of five calls", got)
	}
	if want := [][2]int{{0, 2}, {0, 3}, {3, 4}}; !cmp.Equal(got[0].Edges, want) {
		t.Errorf("edges %v, want %v", got[0].Edges, want)
	}
	for range MaxCalls + 1 {
		s.Called(Call{Tool: "a"}, strings.Repeat("x", 1<<20))
	}
	if s.Close(); len(got) != 3 || len(got[1].Calls) != MaxCalls {
		t.Errorf("%d traces, want the long one in two parts", len(got))
	}
}
