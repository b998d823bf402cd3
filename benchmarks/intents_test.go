package benchmarks

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// leastWhole is the share of the intents in testdata/intents for which a plan with
// nothing learnt must have the expected tools in the expected order.
const leastWhole = 0.699

// TestIntents plans the intents in testdata/intents over the catalogues in the folder
// that CAIRN_DATA names. How they were labelled is in testdata/intents/README.md.
func TestIntents(t *testing.T) {
	data := os.Getenv("CAIRN_DATA")
	if data == "" {
		t.Skip("CAIRN_DATA names no folder of evaluation data")
	}
	model, cache := toolModel(t)
	var whole, intents float64
	for _, name := range []string{"github-mcp-server", "docker-registry", "toucan"} {
		r, err := Tools(context.Background(), ToolsOptions{Data: intentSet(t, data, name), Embedder: model, Reader: toolReader, Cache: cache, Rows: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d tools, %d intents, plans %+v", name, r.Tools, r.Intents, r.Plan)
		whole, intents = whole+r.Plan.Whole*float64(r.Intents), intents+float64(r.Intents)
	}
	if intents != 60 || whole/intents < leastWhole {
		t.Errorf("%.0f of %.0f plans are whole, want %.0f %%", whole, intents, 100*leastWhole)
	}
}

// intentSet makes a folder with the intents and the tools of a catalogue, of
// which a file NAME.servers selects the servers.
func intentSet(t *testing.T, data, name string) string {
	t.Helper()
	dir := t.TempDir()
	tasks, err := os.ReadFile(filepath.Join("testdata", "intents", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var servers []string
	if b, err := os.ReadFile(filepath.Join("testdata", "intents", name+".servers")); err == nil {
		servers = strings.Fields(string(b))
	}
	catalogue, err := os.Open(filepath.Join(data, "catalogues", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer catalogue.Close()
	var tools strings.Builder
	lines := bufio.NewScanner(catalogue)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var tool struct{ Server string }
		if err := json.Unmarshal(lines.Bytes(), &tool); err != nil {
			t.Fatal(err)
		}
		if servers == nil || slices.Contains(servers, tool.Server) {
			tools.WriteString(lines.Text() + "\n")
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"tasks.jsonl": string(tasks), "tools.jsonl": tools.String()} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
