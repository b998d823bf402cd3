package catalog

import (
	"encoding/json"
	"testing"
)

// members agrees with encoding/json on every document that is valid.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{` { "a" : 1 , "b":[1,"]",{"}":null}], "c\"\\":"x\\" }`, `[]`, `{}`, `[1, true ,null,"a,b",-1e5]`, `7`, `{"a":1,"a":2}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		got := map[string]json.RawMessage{}
		list := []json.RawMessage{}
		for key, value := range members(text) {
			got[key] = value
			list = append(list, value)
		}
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case json.Unmarshal(text, &object) == nil:
			if len(object) != len(got) {
				t.Errorf("%s has %d members, want %d", text, len(got), len(object))
			}
			for key, want := range object {
				if string(got[key]) != string(want) {
					t.Errorf("%s: %q is %s, want %s", text, key, got[key], want)
				}
			}
		case json.Unmarshal(text, &array) == nil:
			if len(array) != len(list) {
				t.Fatalf("%s has %d elements, want %d", text, len(list), len(array))
			}
			for i, want := range array {
				if string(list[i]) != string(want) {
					t.Errorf("%s: element %d is %s, want %s", text, i, list[i], want)
				}
			}
		}
	})
}
