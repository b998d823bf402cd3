package tools

import (
	"context"
	"encoding/json"
	"testing"
)

// TestExamples checks that a failure for invalid arguments has the shortest arguments of
// the same client's successful calls.
func TestExamples(t *testing.T) {
	s := New((&fake{}).folder(), nil)
	status, _ := s.find("status")
	status.call = func(_ context.Context, args json.RawMessage) (any, error) {
		if string(args) == "{}" {
			return nil, invalid("x is missing")
		}
		return nil, nil
	}
	for _, args := range []string{`{"x": "longer"}`, `{"x":"a"}`, `{"x":"also longer"}`} {
		if _, f := s.do(t.Context(), "a", status, call{args: json.RawMessage(args)}); f != nil {
			t.Fatal(f)
		}
	}
	for client, want := range map[string]string{"a": `{"x":"a"}`, "b": ""} {
		_, f := s.do(t.Context(), client, status, call{args: json.RawMessage(`{}`)})
		got, _ := f.Data["example"].(json.RawMessage)
		if string(got) != want {
			t.Errorf("client %s: example %s, want %s", client, got, want)
		}
	}
}
