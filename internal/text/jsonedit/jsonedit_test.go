package jsonedit

import "testing"

func TestSet(t *testing.T) {
	for _, c := range []struct {
		old, name string
		value     any
		want      string // "" for an error
	}{
		{`{"a": 1, "b":"x"}`, "b", "y", `{"a": 1, "b":"y"}`},
		{`{"a": 1, "b":"x"}`, "b", nil, `{"a": 1}`},
		{`{"a": 1.0, "b":"x"}`, "c", nil, `{"a": 1.0, "b":"x"}`},
		{"{\n\t\"a\": {\"b\": 1}\n}\n", "b", "y", "{\n\t\"a\": {\"b\": 1},\n\t\"b\": \"y\"\n}\n"},
		{"\ufeff{\r\n  // why\r\n  \"a\": \"x\",\r\n}", "a", "y", "\ufeff{\r\n  // why\r\n  \"a\": \"y\",\r\n}"},
		{"", "a", "y", "{\n  \"a\": \"y\"\n}\n"},
		{`{"a": "x", "a": "z"}`, "a", "y", ""},
		{`{"a": "x", "a": "z"}`, "a", nil, ""},
		{`["a"]`, "a", "y", ""},
		{`{"a": `, "a", "y", ""},
		{`null`, "a", "y", ""},
	} {
		got, err := Set([]byte(c.old), c.name, c.value)
		if (err != nil) != (c.want == "") || err == nil && string(got) != c.want {
			t.Errorf("Set(%q, %q, %v) = %q, %v; want %q", c.old, c.name, c.value, got, err, c.want)
		}
	}
}
