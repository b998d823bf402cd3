package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArgumentSchemas compares the argument schemas of all tools with
// testdata/arguments.txt, a tool a line.
func TestArgumentSchemas(t *testing.T) {
	const golden = "testdata/arguments.txt"
	var b strings.Builder
	for _, tool := range everyTool() {
		fmt.Fprintf(&b, "%s %s\n", tool.name, schemaJSON(argumentSchema(tool.args)))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the argument schemas differ (-want +got); rewrite with -update if that is right:\n%s", diff)
	}
}

func TestDecodeBounds(t *testing.T) {
	type Size struct {
		Tokens *integer `json:"tokens,omitempty" schema:"min=200"`
	}
	type args struct {
		Size
		Limit  integer  `json:"limit,omitempty" schema:"default=10,min=1,max=50"`
		Budget *integer `json:"budget,omitempty" schema:"min=200"`
	}
	for text, want := range map[string]string{
		`{}`:               `{"limit":10}`,
		``:                 `{"limit":10}`,
		`{"limit":null}`:   `{"limit":10}`,
		`{"limit":50.0}`:   `{"limit":50}`,
		`{"budget":200}`:   `{"limit":10,"budget":200}`,
		`{"limit":0}`:      "limit: 0, want 1 to 50",
		`{"limit":51}`:     "limit: 51, want 1 to 50",
		`{"budget":199}`:   "budget: 199, want at least 200",
		`{"budget":"200"}`: "budget: got string, want integer",
		`{"tokens":"200"}`: "Invalid params: tokens: got string, want integer",
		`{"tokens":199}`:   "tokens: 199, want at least 200",
	} {
		var a args
		got := ""
		if err := decode(json.RawMessage(text), &a); err != nil {
			got = err.Error()
		} else if out, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		} else {
			got = string(out)
		}
		if !strings.Contains(got, want) {
			t.Errorf("decode(%s) = %s, want %s", text, got, want)
		}
	}
}
