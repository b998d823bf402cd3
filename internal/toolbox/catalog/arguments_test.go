package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestChecker(t *testing.T) {
	tool, err := New(Tool{Name: "x", Annotations: []byte(`{"destructiveHint":true}`), Input: []byte(`{"type":"object","properties":{"path":{"type":"string","pattern":"^[a-z]+$"},"depth":{"type":"integer"}},"required":["path"],"additionalProperties":false}`)})
	if err != nil || !tool.Destructive() {
		t.Fatal(tool, err)
	}
	check := tool.Checker()
	for arguments, want := range map[string][]string{
		`{"path":"a"}`: nil, `{"path":"7"}`: {"path: '7' does not match pattern '^[a-z]+$'"}, `[]`: {"want a JSON object"}, `{`: {"want a JSON object"},
		`{"pth":"a"}`: {"missing property 'path'", "additional properties 'pth' not allowed"}, `{"path":"a","depth":"b"}`: {"depth: got string, want integer"},
	} {
		err := check([]byte(arguments))
		bad, ok := errors.AsType[*ArgumentError](err)
		if (want != nil) != ok || ok && !slices.Equal(bad.Problems, want) {
			t.Errorf("%s: %v, want %v", arguments, err, want)
		}
		if arguments == `{"pth":"a"}` && !slices.Equal(bad.Nearest["pth"][:1], []string{"path"}) {
			t.Errorf("nearest names %v", bad.Nearest)
		}
	}
	ahead, err := New(Tool{Name: "x", Input: []byte(`{"type":"object","properties":{"mail":{"type":"string","pattern":"^(?!\\.)[a-z.]+@[a-z.]+$"}},"required":["mail"]}`)})
	if err != nil || len(ahead.Takes) != 1 || ahead.Checker()([]byte(`{"mail":"a@b.c"}`)) != nil || ahead.Checker()([]byte(`{"mail":1}`)) == nil {
		t.Errorf("a pattern with lookahead: %+v, %v", ahead.Takes, err)
	}
	broken, err := New(Tool{Name: "x", Input: []byte(`17`)})
	if err != nil || broken.Checker()([]byte(`{"a":1}`)) != nil {
		t.Errorf("a tool with a broken schema: %v", err)
	}
}

// TestRepairOfNumericNames: a property may have the name of a negative index.
func TestRepairOfNumericNames(t *testing.T) {
	b, err := Read(t.Context(), strings.NewReader(`{"name":"n","server":"s","input_schema":{"properties":{"o":{"type":"object","additionalProperties":{"type":"integer"}}}}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	arguments := map[string]any{"o": map[string]any{"-1": "5"}}
	var bad *ArgumentError
	if err := b.Tools[0].Checker()([]byte(`{"o":{"-1":"5"}}`)); !errors.As(err, &bad) {
		t.Fatalf("error %v", err)
	}
	bad.Repair(arguments, func(any, []string) any { return 5 })
	if got := arguments["o"].(map[string]any)["-1"]; got != 5 {
		t.Errorf("value %v, want 5", got)
	}
}
