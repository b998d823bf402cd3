package usage

import (
	"encoding/json"
	"strings"
	"testing"

	"cairn/internal/text/secret"
)

// TestExample checks that the shortest arguments of a successful call are kept, with
// secrets masked, until they are forgotten.
func TestExample(t *testing.T) {
	db := openDB(t)
	masks, err := secret.New()
	if err != nil {
		t.Fatal(err)
	}
	open := func() *Store {
		t.Helper()
		s, err := Open(file(db), &Options{Masks: masks})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	failed := false
	call := func(args string, success *bool) Trace {
		return Trace{Calls: []Call{{Tool: "mail", Arguments: json.RawMessage(args), Success: success}}}
	}
	err = s.Learn(t.Context(), call(`{"to": "a@b.example", "text": "a longer text than that of the others"}`, nil), call(`{}`, nil), call(`"x"`, nil),
		call(`{"x":1}`, &failed), call(`{"to":"c","n":{"api_key":"k"},"u":"http://me:pw@host"}`, nil), call(`{"text":"`+strings.Repeat("x", MaxExample)+`"}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"n":{"api_key":"***"},"to":"c","u":"http://me:***@host"}`
	for _, s := range []*Store{s, open()} {
		if got, err := s.Example(t.Context(), "mail"); err != nil || string(got) != want {
			t.Errorf("example %s, %v, want %s", got, err, want)
		}
	}
	if _, err := s.ForgetNode("mail"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Example(t.Context(), "mail"); err != nil || got != nil {
		t.Errorf("forgotten example %s, %v", got, err)
	}
}
