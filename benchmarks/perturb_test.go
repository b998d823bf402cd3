package benchmarks

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

// leastUnchanged is the least share of the plans that have the same tools, in the same order, after
// each perturbation of the catalogue.
var leastUnchanged = map[string]float64{"camel case": 1, "kebab case": 1, "shuffled": 1, "twenty other tools": .87, "reworded": .92}

// synonyms maps words of descriptions to others with the same meaning.
var synonyms = strings.NewReplacer("Retrieves ", "Fetches ", "Retrieve ", "Fetch ", "Returns ", "Gives ", "Creates ", "Makes ", "Create ", "Make ", "Gets ", "Obtains ", "Get ", "Obtain ",
	"Removes ", "Deletes ", "Remove ", "Delete ", "Lists ", "Enumerates ", "List ", "Enumerate ", "Updates ", "Changes ", "Update ", "Change ", "Finds ", "Locates ", "Find ", "Locate ",
	" specified ", " given ", " the given ", " the specified ", " information ", " details ", " details ", " information ", " multiple ", " several ", " specific ", " particular ",
	" a list of ", " all ", " based on ", " according to ", " using ", " by means of ", " current ", " present ", " users ", " people ", "allows you to ", "lets you ")

// reword replaces words of a description, exchanges its first two sentences, and turns "Verbs x" at
// its beginning into "It verbs x".
func reword(description string) string {
	text := synonyms.Replace(description)
	if first, rest, more := strings.Cut(text, ". "); more {
		second, tail, _ := strings.Cut(rest, ". ")
		text = strings.TrimSuffix(second, ".") + ". " + strings.TrimSuffix(first, ".") + ". " + tail
	}
	if verb, rest, _ := strings.Cut(text, " "); strings.HasSuffix(verb, "s") && !strings.HasSuffix(verb, "ss") {
		return "It " + strings.ToLower(verb) + " " + rest
	}
	return text
}

// renamed returns the tools with names in another style, and the same IDs otherwise.
func renamed(tools []catalog.Tool, style func(words []string) string) []catalog.Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Name = style(toolsearch.Words(tools[i].Name))
	}
	return tools
}

func camelCase(words []string) string {
	name := words[0]
	for _, w := range words[1:] {
		name += strings.ToUpper(w[:1]) + w[1:]
	}
	return name
}

func kebabCase(words []string) string { return strings.Join(words, "-") }

// TestPerturbations plans the development intents and questions of bfcl with several tools again
// after each perturbation of their tools, and reports the share of unchanged plans.
func TestPerturbations(t *testing.T) {
	dir := toolSets(t)
	model, cache := toolModel(t)
	p := &planRun{t: t, options: &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache}}
	others := spread(serverTools(t, os.Getenv("CAIRN_DATA"), []string{"cf_2310.@lifejwang11_alphavantage-mcp"}), 20)
	kinds := map[string]func([]catalog.Tool) []catalog.Tool{
		"camel case": func(tools []catalog.Tool) []catalog.Tool { return renamed(tools, camelCase) },
		"kebab case": func(tools []catalog.Tool) []catalog.Tool { return renamed(tools, kebabCase) },
		"shuffled": func(tools []catalog.Tool) []catalog.Tool {
			tools = slices.Clone(tools)
			slices.Reverse(tools)
			return tools
		},
		"twenty other tools": func(tools []catalog.Tool) []catalog.Tool { return slices.Concat(tools, others) },
		"reworded": func(tools []catalog.Tool) []catalog.Tool {
			tools = slices.Clone(tools)
			for i := range tools {
				tools[i].Description = reword(tools[i].Description)
			}
			return tools
		},
	}
	same, plans := map[string]float64{}, 0.
	compare := func(tools []catalog.Tool, intents []string) {
		before := planNames(p, tools, intents)
		plans += float64(len(intents))
		for kind, change := range kinds {
			for i, after := range planNames(p, change(tools), intents) {
				if after == before[i] {
					same[kind]++
				} else if os.Getenv("CAIRN_WRONG") != "" {
					t.Logf("%s: %q: %s, not %s", kind, intents[i], after, before[i])
				}
			}
		}
	}
	for _, c := range everydayCatalogues(t, "everyday-dev.json") {
		var intents []string
		for i := range c.Intents {
			intents = append(intents, c.Intents[i].Intent)
		}
		compare(serverTools(t, os.Getenv("CAIRN_DATA"), c.Servers), intents)
	}
	var lines [][]byte
	readJSONLines(t, filepath.Join(dir, "bfcl", "tasks.jsonl"), func(line []byte) { lines = append(lines, slices.Clone(line)) })
	for _, line := range spread(lines, 60) {
		var q struct {
			Intent string
			Tools  json.RawMessage
		}
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		batch, err := catalog.Read(t.Context(), bytes.NewReader(q.Tools), "")
		if err != nil {
			t.Fatal(err)
		}
		compare(batch.Tools, []string{q.Intent})
	}
	for kind, least := range leastUnchanged {
		share := same[kind] / plans
		t.Logf("%-20s %.3f of %.0f plans are unchanged", kind, share, plans)
		if share < least {
			t.Errorf("%s: %.3f of the plans are unchanged, want %.3f", kind, share, least)
		}
	}
}

// planNames plans intents, and returns the names of the tools of each plan without their style.
func planNames(p *planRun, tools []catalog.Tool, intents []string) (plans []string) {
	for i := range tools {
		made, err := catalog.New(tools[i])
		if err != nil {
			p.t.Fatal(err)
		}
		tools[i] = made
	}
	b := p.open(tools)
	defer b.close()
	for _, intent := range intents {
		plan, err := suggest.Suggest(p.t.Context(), b.index, suggest.Request{Intent: intent})
		if err != nil {
			p.t.Fatal(err)
		}
		names := []string{}
		for _, task := range plan.Tasks {
			names = append(names, strings.Join(toolsearch.Words(task.Tool), ""))
		}
		plans = append(plans, strings.Join(names, ", "))
	}
	return plans
}
