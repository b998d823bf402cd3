package catalog

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParameters(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		want   []Parameter
	}{
		"plain": {`{"type":"object","properties":{"b":{"type":"integer","default":3},"a":{"type":"string","description":"The a."}},"required":["a"]}`,
			[]Parameter{{Name: "a", Path: "a", Types: []string{"string"}, Required: true, Description: "The a."},
				{Name: "b", Path: "b", Types: []string{"integer"}, Settled: true}}},
		"nothing":    {`{"type":"object"}`, nil},
		"any type":   {`{"properties":{"x":{}}}`, []Parameter{{Name: "x", Path: "x"}}},
		"type array": {`{"properties":{"x":{"type":["string","null"]}}}`, []Parameter{{Name: "x", Path: "x", Types: []string{"string"}}}},
		"nested, required all the way": {`{"properties":{"o":{"type":"object","properties":{"i":{"type":"string"},"j":{}},"required":["i"]}},"required":["o"]}`,
			[]Parameter{{Name: "o", Path: "o", Types: []string{"object"}, Required: true},
				{Name: "i", Path: "o.i", Types: []string{"string"}, Required: true}, {Name: "j", Path: "o.j"}}},
		"array of objects": {`{"properties":{"l":{"type":"array","items":{"properties":{"id":{"type":"string"}},"required":["id"]}}},"required":["l"]}`,
			[]Parameter{{Name: "l", Path: "l", Types: []string{"array"}, Required: true}, {Name: "id", Path: "l[].id", Types: []string{"string"}}}},
		"reference": {`{"properties":{"u":{"$ref":"#/$defs/user"}},"$defs":{"user":{"type":"object","properties":{"name":{"type":"string"}}}}}`,
			[]Parameter{{Name: "u", Path: "u", Types: []string{"object"}}, {Name: "name", Path: "u.name", Types: []string{"string"}}}},
		"any of": {`{"properties":{"x":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`,
			[]Parameter{{Name: "x", Path: "x", Types: []string{"integer", "string"}}}},
		"one of requires what all do": {`{"oneOf":[{"properties":{"a":{},"b":{}},"required":["a","b"]},{"properties":{"a":{}},"required":["a"]}]}`,
			[]Parameter{{Name: "a", Path: "a", Required: true}, {Name: "b", Path: "b"}}},
		"all of": {`{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"number"}}}]}`,
			[]Parameter{{Name: "a", Path: "a", Types: []string{"string"}, Required: true}, {Name: "b", Path: "b", Types: []string{"number"}}}},
		"constant":     {`{"properties":{"k":{"const":"v"},"e":{"enum":["one"]},"f":{"enum":["one","two"]}}}`, []Parameter{{Name: "e", Path: "e", Settled: true}, {Name: "f", Path: "f"}, {Name: "k", Path: "k", Settled: true}}},
		"holds itself": {`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},"properties":{"n":{"$ref":"#/$defs/n"}}}`, []Parameter{{Name: "n", Path: "n", Types: []string{"object"}}, {Name: "next", Path: "n.next", Types: []string{"object"}}, {Name: "next", Path: "n.next.next", Types: []string{"object"}}}},
	} {
		got, err := Parameters([]byte(c.schema))
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v\n%s", name, err, cmp.Diff(c.want, got))
		}
	}
}

func TestParametersRefuses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte(`{"properties":{"password":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, schema := range map[string]string{
		"not JSON":            `{`,
		"not an object":       `[1]`,
		"wrong type":          `{"type":17}`,
		"dangling reference":  `{"$ref":"#/$defs/none"}`,
		"out by http":         `{"$ref":"http://127.0.0.1:1/x.json"}`,
		"out by file":         `{"$ref":"file://` + secret + `"}`,
		"out by path":         `{"$ref":"` + secret + `"}`,
		"properties not one":  `{"properties":3}`,
		"required not a list": `{"required":"a"}`,
	} {
		if got, err := Parameters([]byte(schema)); err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
}

func TestNew(t *testing.T) {
	tool, err := New(Tool{Server: "git hub", Name: " create_issue ", Description: "a\xffb", Input: json.RawMessage(`{"type":3}`), Output: json.RawMessage(`null`)})
	if err != nil || tool.ID != "git hub:create_issue" || tool.Description != "a\uFFFDb" || tool.SchemaError == "" || tool.Output != nil {
		t.Errorf("New = %+v, %v", tool, err)
	}
	if tool, _ := New(Tool{Server: "fetch", Name: "fetch:fetch"}); tool.ID != "fetch:fetch" {
		t.Errorf("ID = %q, want fetch:fetch", tool.ID)
	}
	for name, bad := range map[string]Tool{
		"no name": {Server: "s"}, "long": {Name: strings.Repeat("x", MaxName+1)}, "control": {Name: "a\nb"}, "not text": {Name: "a\xff"},
		"documents": {Server: "doc", Name: "x"}, "documents by name": {Name: "doc:x"},
	} {
		if tool, err := New(bad); err == nil {
			t.Errorf("%s: %v, want an error", name, tool)
		}
	}
}

// FuzzParameters holds that no schema makes the reader fail or run away.
func FuzzParameters(f *testing.F) {
	for _, s := range []string{`{"properties":{"a":{"type":"string"}}}`, `{"$ref":"#"}`, `{"anyOf":[{"$ref":"#"}]}`, `{"items":[{}]}`, `true`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		params, err := Parameters(schema)
		if err != nil && params != nil || len(params) > maxParameters {
			t.Errorf("%d parameters, error %v", len(params), err)
		}
	})
}

// TestRealCatalogues reads every tool of the folder named by CAIRN_DATA.
func TestRealCatalogues(t *testing.T) {
	dir := os.Getenv("CAIRN_DATA")
	if dir == "" {
		t.Skip("CAIRN_DATA names no folder of evaluation data")
	}
	files, err := filepath.Glob(filepath.Join(dir, "catalogues", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalogues in %s: %v", dir, err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var tools, broken, params int
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var raw Tool
			if err := json.Unmarshal(lines.Bytes(), &raw); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			tool, err := New(raw)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			tools++
			params += len(tool.Takes) + len(tool.Gives)
			if tool.SchemaError != "" {
				broken++
				t.Logf("%s: %s", tool.ID, tool.SchemaError)
			}
		}
		t.Logf("%s: %d tools, %d parameters, %d with a broken schema", filepath.Base(file), tools, params, broken)
	}
}
