package benchmarks

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
)

// leastArguments are the precision and the recall of TestArguments on the even questions, on which
// package suggest was tuned, and on the odd ones, which it was not.
var leastArguments = [2][2]float64{{.8, .4}, {.75, .35}}

// argumentCount counts the inputs of one kind: those filled, those filled correctly, and of the
// required ones those with an accepted value and those filled correctly.
type argumentCount struct{ filled, right, needed, found float64 }

// TestArguments fills the inputs of the right tools of bfcl from the questions, and compares them
// with the accepted values. CAIRN_ODD selects the odd questions.
func TestArguments(t *testing.T) {
	dir := toolSets(t)
	half := 0
	if os.Getenv("CAIRN_ODD") != "" {
		half = 1
	}
	model, cache := toolModel(t)
	p := &planRun{t: t, options: &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache}}
	counts, all, n := map[string]*argumentCount{}, argumentCount{}, 0
	readJSONLines(t, filepath.Join(dir, "bfcl", "tasks.jsonl"), func(line []byte) {
		var q argumentQuestion
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		if len(q.Calls) == 0 {
			return
		}
		if n++; n%2 == half {
			return
		}
		batch, err := catalog.Read(t.Context(), bytes.NewReader(q.Tools), "")
		if err != nil {
			t.Fatal(err)
		}
		b := p.open(batch.Tools)
		defer b.close()
		for _, tool := range batch.Tools {
			if accepted := q.accepted(tool.Name); accepted != nil {
				plan, err := suggest.Suggest(t.Context(), b.index, suggest.Request{Intent: q.Intent, Tools: []string{tool.ID}})
				if err != nil {
					t.Fatal(err)
				}
				countArguments(&tool, plan.Tasks[0].Arguments, accepted, counts)
			}
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		c := counts[kind]
		t.Logf("%-14s filled %3.0f, precision %.3f, required %3.0f, recall %.3f", kind, c.filled, c.right/max(1, c.filled), c.needed, c.found/max(1, c.needed))
		all.filled, all.right, all.needed, all.found = all.filled+c.filled, all.right+c.right, all.needed+c.needed, all.found+c.found
	}
	precision, recall := all.right/all.filled, all.found/all.needed
	t.Logf("all: filled %.0f, precision %.3f, required %.0f, recall %.3f", all.filled, precision, all.needed, recall)
	if least := leastArguments[half]; precision < least[0] || recall < least[1] {
		t.Errorf("precision %.3f, recall %.3f, want %v", precision, recall, least)
	}
}

// argumentQuestion is a question of bfcl. Each argument has the accepted values.
type argumentQuestion struct {
	Intent string
	Tools  json.RawMessage
	Calls  []struct {
		Tool      string
		Arguments map[string][]any
	}
}

// accepted returns the accepted values of the inputs in the calls of a tool, nil if it is not
// called.
func (q *argumentQuestion) accepted(tool string) map[string][]any {
	var values map[string][]any
	for _, c := range q.Calls {
		if c.Tool != tool {
			continue
		}
		if values == nil {
			values = map[string][]any{}
		}
		for name, list := range c.Arguments {
			values[name] = append(values[name], list...)
		}
	}
	return values
}

func countArguments(tool *catalog.Tool, got map[string]any, accepted map[string][]any, counts map[string]*argumentCount) {
	var schema struct {
		Properties map[string]struct{ Enum []any }
	}
	_ = json.Unmarshal(tool.Input, &schema)
	for _, in := range tool.Takes {
		if strings.ContainsAny(in.Path, ".[") {
			continue
		}
		kind := strings.Join(in.Types, "|")
		if len(schema.Properties[in.Name].Enum) > 0 {
			kind += " enum"
		}
		if counts[kind] == nil {
			counts[kind] = &argumentCount{}
		}
		c, values := counts[kind], accepted[in.Name]
		needed := in.Required && len(values) > 0
		if needed {
			c.needed++
		}
		v, ok := got[in.Name]
		if !ok {
			continue
		}
		c.filled++
		if slices.ContainsFunc(values, func(a any) bool { return a != "" && alike(a) == alike(v) }) {
			c.right++
			if needed {
				c.found++
			}
		} else if os.Getenv("CAIRN_WRONG") != "" {
			println(tool.Name, in.Name, alike(v), "want", alike(values))
		}
	}
}

// alike returns a value as text without case, blanks and punctuation.
func alike(v any) string {
	b, _ := json.Marshal(v)
	if _, text := v.(string); text {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, string(b))
	}
	return strings.ToLower(string(b))
}
