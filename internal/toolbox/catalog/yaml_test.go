package catalog

import "testing"

func TestYAMLToJSON(t *testing.T) {
	for _, c := range []struct{ yaml, json string }{
		{"a: b\n", `{"a":"b"}`},
		{"200: {yes: 1, 0x10: 1.50, 'x': ~}\n", `{"200":{"0x10":1.5,"x":null,"yes":1}}`},
		{"a: [0x10, 1_000, .inf, 2020-01-02, on, \"1\", !!str 1, true]\n", `{"a":[16,1000,".inf","2020-01-02","on","1","1",true]}`},
		{"a: |\n  x\n  \"y\"\n", `{"a":"x\n\"y\"\n"}`},
		{"a: &a {b: 1}\nc: *a\n", `{"a":{"b":1},"c":{"b":1}}`},
		{"a: &a {b: 1}\nc: {<<: *a, d: 2}\n", `{"a":{"b":1},"c":{"b":1,"d":2}}`},
		{"a: &a {b: 1}\nc: &c {b: 2}\nd: {b: 3, <<: [*a, *c]}\n", `{"a":{"b":1},"c":{"b":2},"d":{"b":3}}`},
		{"a: &a {b: 1, c: 4}\nc: &c {b: 2, d: 5}\nd: {<<: [*a, *c]}\n", `{"a":{"b":1,"c":4},"c":{"b":2,"d":5},"d":{"b":1,"c":4,"d":5}}`},
		{"a: 1\nb: !x 2\na: .NaN\n", `{"a":".NaN","b":"2"}`},
		{"a: {}\nb: []\nc:\n", `{"a":{},"b":[],"c":null}`},
	} {
		if got, err := yamlToJSON([]byte(c.yaml)); err != nil || string(got) != c.json {
			t.Errorf("%q: %s, %v, want %s", c.yaml, got, err, c.json)
		}
	}
	for _, bad := range []string{"", "a", "- a\n", "{a: b}: c\n", "? [a]\n: b\n", "a: {<<: 1}\n", "a: &a [*a, *a]\n", "a: *b\n", "a: b: c\n"} {
		if got, err := yamlToJSON([]byte(bad)); err == nil {
			t.Errorf("%q: %s, want an error", bad, got)
		}
	}
}
