package benchmarks

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store/kv"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/records"
	"cairn/internal/toolbox/usage"
)

// TestExampleArguments compares two guesses of the arguments of a call with those of the
// call: the required inputs of the schema with their types, and the arguments of the example
// that cairn keeps. Every second task of a set is learnt, and the calls of the others whose
// tools have an example are compared.
func TestExampleArguments(t *testing.T) {
	dir := toolSets(t)
	for _, set := range []string{"seal-tools", "bfcl"} {
		db, err := kv.Open(filepath.Join(t.TempDir(), "usage.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		store, err := usage.Open(records.NewFile(db, usage.Buckets()...), nil)
		if err != nil {
			t.Fatal(err)
		}
		tools := map[string]catalog.Tool{}
		if set == "seal-tools" {
			list, err := readTools(filepath.Join(dir, set, "tools.jsonl"), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range list {
				tools[tool.Name] = tool
			}
		}
		var heldOut []usage.Call
		line := 0
		readJSONLines(t, filepath.Join(dir, set, "tasks.jsonl"), func(b []byte) {
			var raw struct {
				Tools []json.RawMessage
				Calls []struct {
					Tool      string
					Args      map[string]any
					Arguments map[string][]any
				}
			}
			if err := json.Unmarshal(b, &raw); err != nil {
				t.Fatal(err)
			}
			var own strings.Builder
			for _, r := range raw.Tools {
				own.WriteString(string(r) + "\n")
			}
			if own.Len() > 0 {
				batch, err := catalog.Read(t.Context(), strings.NewReader(own.String()), "")
				if err != nil {
					t.Fatal(err)
				}
				for _, tool := range batch.Tools {
					tools[tool.Name] = tool
				}
			}
			var trace usage.Trace
			for _, c := range raw.Calls {
				args := c.Args
				for name, accepted := range c.Arguments {
					if args == nil {
						args = map[string]any{}
					}
					if len(accepted) > 0 && accepted[0] != "" {
						args[name] = first(accepted[0])
					}
				}
				text, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				trace.Calls = append(trace.Calls, usage.Call{Tool: c.Tool, Arguments: text})
			}
			if line++; line%2 == 1 {
				heldOut = append(heldOut, trace.Calls...)
			} else if len(trace.Calls) > 0 {
				if err := store.Learn(t.Context(), trace); err != nil {
					t.Fatal(err)
				}
			}
		})
		var n, namesBefore, namesAfter, kindsBefore, kindsAfter float64
		for _, c := range heldOut {
			example, err := store.Example(t.Context(), c.Tool)
			if err != nil {
				t.Fatal(err)
			}
			if example == nil {
				continue
			}
			var schema []string
			for _, p := range tools[c.Tool].Takes {
				if p.Required && p.Path == p.Name {
					schema = append(schema, p.Name+":"+strings.Join(p.Types, ""))
				}
			}
			want, with := kindsOf(t, c.Arguments), kindsOf(t, example)
			n++
			namesBefore += f1(bare(schema), bare(want))
			namesAfter += f1(bare(with), bare(want))
			kindsBefore += f1(schema, want)
			kindsAfter += f1(with, want)
		}
		t.Logf("%s: %.0f calls held out; F1 of names %.3f by the schema, %.3f by the example; of names with kinds %.3f, %.3f", set, n, namesBefore/n, namesAfter/n, kindsBefore/n, kindsAfter/n)
		if n < 50 || kindsAfter < kindsBefore {
			t.Errorf("%s: %.0f calls; examples have fewer right kinds than the schemas", set, n)
		}
	}
}

// kindsOf returns the names of arguments with their JSON types, sorted.
func kindsOf(t *testing.T, raw json.RawMessage) (list []string) {
	var args map[string]any
	if err := json.Unmarshal(raw, &args); err != nil {
		t.Fatal(err)
	}
	for name, v := range args {
		kind := fmt.Sprintf("%T", v)
		kind = map[string]string{"bool": "boolean", "[]interface {}": "array", "map[string]interface {}": "object", "float64": "number"}[kind]
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			kind = "integer"
		}
		if kind == "" {
			kind = "string"
		}
		list = append(list, name+":"+kind)
	}
	slices.Sort(list)
	return list
}

func bare(kinds []string) (names []string) {
	for _, k := range kinds {
		name, _, _ := strings.Cut(k, ":")
		names = append(names, name)
	}
	return names
}
