package benchmarks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
)

// everydayFigures are the figures of testdata/everyday.json with nothing learnt.
type everydayFigures struct {
	whole   float64 // share of all intents: the expected tools in order, or no tool if none fits
	multi   float64 // whole of the intents with two or more tools
	nodeF1  float64 // mean over the intents that a tool fits
	refused float64 // share of the intents that no tool fits
	// auc is the share of the pairs of a right and a wrong plan of one catalogue in which
	// the right one is surer; a tie counts half. It ignores intents that no tool fits, and a
	// plan without tools is wrong with a confidence of 0. ece and chance are those of Calibration, of
	// plans with tools.
	auc, ece, chance float64
}

// leastEveryday and leastDevelopment are what plans must reach; what was reached when is in
// toolquality.md and plans.md.
var (
	leastEveryday    = everydayFigures{whole: .52, auc: .75, ece: .12}
	leastDevelopment = everydayFigures{whole: .64, auc: .79, ece: .12}
	leastUnfamiliar  = everydayFigures{whole: .47, auc: .73, ece: .11}
	leastSmall       = everydayFigures{whole: .44, auc: .64, ece: .11}
	leastInvented    = everydayFigures{whole: .55, auc: .73, ece: .08}
)

// everydayIntent is an intent with the tools that a plan must have; none if no tool fits.
type everydayIntent struct {
	ID, Intent string
	Calls      []everydayCall
	Edges      [][2]int
}

type everydayCall struct {
	Tool         string
	Alternatives []string
}

func (e *everydayIntent) task() *toolTask {
	t := &toolTask{id: e.ID, intent: e.Intent, edges: e.Edges, relevant: Relevance{}, stands: map[string]string{}}
	for _, c := range e.Calls {
		t.calls = append(t.calls, c.Tool)
		for _, a := range c.Alternatives {
			t.stands[a] = c.Tool
		}
	}
	return t
}

// TestEveryday plans the intents of testdata/everyday.json over five catalogues, each the
// tools of some servers in the folder that CAIRN_DATA names. It names no intent that fails.
func TestEveryday(t *testing.T) { planEveryday(t, "everyday.json", 100, false, leastEveryday) }

// TestEverydayDevelopment plans the intents of testdata/everyday-dev.json, over other servers,
// and names those that fail.
func TestEverydayDevelopment(t *testing.T) {
	planEveryday(t, "everyday-dev.json", 115, true, leastDevelopment)
}

// TestUnfamiliar plans the intents of testdata/unfamiliar.json, over five catalogues of 58 to 180
// tools of other servers. It names no intent that fails.
func TestUnfamiliar(t *testing.T) { planEveryday(t, "unfamiliar.json", 120, false, leastUnfamiliar) }

// TestUnfamiliarDevelopment plans the intents of testdata/unfamiliar-dev.json, over five further
// catalogues, and names those that fail.
func TestUnfamiliarDevelopment(t *testing.T) {
	planEveryday(t, "unfamiliar-dev.json", 120, true, leastUnfamiliar)
}

// TestSmallServers plans the intents of testdata/small.json, over six catalogues of 44 to 128 tools,
// each of several small servers. Most need two or three tools. It names no intent that fails.
func TestSmallServers(t *testing.T) { planEveryday(t, "small.json", 271, false, leastSmall) }

// TestSmallServersDevelopment plans the intents of testdata/small-dev.json, over six further
// catalogues, and names those that fail.
func TestSmallServersDevelopment(t *testing.T) {
	planEveryday(t, "small-dev.json", 270, true, leastSmall)
}

// TestInvented plans the intents of testdata/invented.txt.gz, over four catalogues of 18
// invented servers. It names no intent that fails.
func TestInvented(t *testing.T) { planInvented(t, "invented", 1008, false, leastInvented) }

// TestInventedDevelopment plans the intents of testdata/invented-dev.txt.gz, over four further
// catalogues, and names those that fail.
func TestInventedDevelopment(t *testing.T) {
	planInvented(t, "invented-dev", 1008, true, leastInvented)
}

func planInvented(t *testing.T, name string, intents int, failures bool, least everydayFigures) {
	if testing.Short() || os.Getenv("CAIRN_DATA") == "" {
		t.Skip("CAIRN_DATA names no folder of evaluation data: this plans a thousand intents")
	}
	sum := everydaySum{failures: failures}
	for _, c := range inventedCatalogues(t, name) {
		sum.measure(t, c.tools, c.Intents)
	}
	sum.check(t, intents, least)
}

func planEveryday(t *testing.T, name string, intents int, failures bool, least everydayFigures) {
	data := os.Getenv("CAIRN_DATA")
	if data == "" {
		t.Skip("CAIRN_DATA names no folder of evaluation data")
	}
	sum := everydaySum{failures: failures}
	for _, c := range everydayCatalogues(t, name) {
		tools := serverTools(t, data, c.Servers)
		sum.measure(t, tools, c.Intents)
	}
	sum.check(t, intents, least)
}

func (s *everydaySum) check(t *testing.T, intents int, least everydayFigures) {
	t.Helper()
	got := s.figures()
	t.Logf("%d intents: %+v", s.intents, got)
	if s.intents != intents || got.whole < least.whole || got.auc < least.auc || got.ece > least.ece {
		t.Errorf("%d intents: %+v, want %d with %+v", s.intents, got, intents, least)
	}
}

// everydayCatalogue holds the intents over the tools of some servers.
type everydayCatalogue struct {
	Name    string
	Servers []string
	Intents []everydayIntent
	tools   []catalog.Tool // of an invented catalogue
}

// everydayCatalogues reads a file of testdata.
func everydayCatalogues(t *testing.T, name string) []everydayCatalogue {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Catalogues []everydayCatalogue }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file.Catalogues
}

// inventedCatalogues reads a file of testdata with lines of these kinds:
//
//	# catalogue
//	## server | purpose
//	- tool | description | required*:type, optional:type
//	@ server:tool,server:tool | [[part for the first tool]] and [[part for the second]]
//	! intent that no tool of the catalogue serves
func inventedCatalogues(t *testing.T, name string) []everydayCatalogue {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var list []everydayCatalogue
	var tools []bytes.Buffer // of each catalogue
	server := ""
	scan := bufio.NewScanner(z)
	for scan.Scan() {
		kind, line, _ := strings.Cut(scan.Text(), " ")
		fields := strings.Split(line, " | ")
		if kind == "#" {
			list, tools = append(list, everydayCatalogue{Name: line}), append(tools, bytes.Buffer{})
			continue
		}
		c := &list[len(list)-1]
		switch kind {
		case "##":
			server = fields[0]
		case "-":
			if err := json.NewEncoder(&tools[len(tools)-1]).Encode(map[string]any{"server": server, "name": fields[0], "description": fields[1], "inputSchema": inventedSchema(fields[2:])}); err != nil {
				t.Fatal(err)
			}
		default:
			e := everydayIntent{ID: fmt.Sprintf("%s-%d", c.Name, len(c.Intents)), Intent: fields[len(fields)-1]}
			if kind == "@" {
				for _, id := range strings.Split(fields[0], ",") {
					e.Calls = append(e.Calls, everydayCall{Tool: id})
				}
				e.Intent = strings.NewReplacer("[[", "", "]]", "").Replace(strings.TrimPrefix(line, fields[0]+" | "))
			}
			c.Intents = append(c.Intents, e)
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		batch, err := catalog.Read(t.Context(), &tools[i], "")
		if err != nil {
			t.Fatal(err)
		}
		list[i].tools = batch.Tools
	}
	return list
}

// inventedSchema returns the schema of inputs such as "id*:string, limit:integer".
func inventedSchema(fields []string) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, in := range strings.Split(strings.Join(fields, ", "), ", ") {
		name, kind, ok := strings.Cut(in, ":")
		if own, needed := strings.CutSuffix(name, "*"); needed {
			name, required = own, append(required, own)
		}
		if ok {
			properties[name] = map[string]string{"type": kind}
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// everydaySum sums the figures of several catalogues.
type everydaySum struct {
	plans                  planSums // of intents that a tool fits
	intents, none, refused int
	multi, wholeMulti      float64
	judged                 []judgement
	pairs, ordered         float64
	failures               bool // whether to log the plans that are not whole
}

func (s *everydaySum) measure(t *testing.T, tools []catalog.Tool, intents []everydayIntent) {
	model, cache := toolModel(t)
	b, err := openToolBench(t.Context(), &toolSet{tools: tools}, &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	known := func(id string) bool { _, ok := b.index.Tool(id); return ok }
	var judged []judgement
	for i := range intents {
		e := &intents[i]
		for _, c := range e.Calls {
			if !known(c.Tool) {
				t.Fatalf("%s: no tool %s", e.ID, c.Tool)
			}
		}
		plan, err := suggest.Suggest(context.Background(), b.index, suggest.Request{Intent: e.Intent})
		if err != nil {
			t.Fatalf("%s: %v", e.ID, err)
		}
		s.intents++
		right, before := false, s.plans.whole+float64(s.refused)
		switch before := s.plans.whole; {
		case len(e.Calls) > 0:
			s.plans.add(plan, e.task(), known)
			right = s.plans.judged[len(s.plans.judged)-1].right
			if len(e.Calls) > 1 {
				s.multi++
				s.wholeMulti += s.plans.whole - before
			}
		case len(plan.DAG.Nodes) == 0:
			s.none++
			s.refused++
		default:
			s.none++
		}
		if s.failures && s.plans.whole+float64(s.refused) == before {
			logPlan(t, e, plan)
		}
		if len(e.Calls) > 0 {
			judged = append(judged, judgement{plan.Confidence, right})
		}
		if len(plan.DAG.Nodes) > 0 {
			s.judged = append(s.judged, judgement{plan.Confidence, right})
		}
	}
	pairs, ordered := concordant(judged)
	s.pairs, s.ordered = s.pairs+pairs, s.ordered+ordered
}

func logPlan(t *testing.T, e *everydayIntent, plan *suggest.Suggestion) {
	var want, got []string
	for _, c := range e.Calls {
		want = append(want, c.Tool)
	}
	for _, task := range plan.Tasks {
		got = append(got, fmt.Sprintf("%s for %q", task.Tool, task.Part))
	}
	t.Logf("%s (%.2f) %s\n\twant %s\n\tgot  %s\n\tunmatched %q", e.ID, plan.Confidence, e.Intent, strings.Join(want, ", "), strings.Join(got, ", "), plan.Unmatched)
}

func (s *everydaySum) figures() everydayFigures {
	c := calibrate(s.judged)
	return everydayFigures{
		whole: (s.plans.whole + float64(s.refused)) / float64(s.intents), multi: s.wholeMulti / s.multi,
		nodeF1: s.plans.nodeF1 / float64(s.plans.tasks), refused: float64(s.refused) / float64(s.none),
		auc: s.ordered / max(1, s.pairs), ece: c.ECE, chance: c.Chance,
	}
}

// serverTools reads the tools of servers from all catalogues of data.
func serverTools(t *testing.T, data string, servers []string) []catalog.Tool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "catalogues", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		scan := bufio.NewScanner(f)
		scan.Buffer(nil, 1<<22)
		for scan.Scan() {
			var tool struct{ Server string }
			if err := json.Unmarshal(scan.Bytes(), &tool); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(servers, tool.Server) {
				lines.Write(append(scan.Bytes(), '\n'))
			}
		}
		if err := scan.Err(); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := catalog.Read(t.Context(), &lines, "")
	if err != nil {
		t.Fatal(err)
	}
	return batch.Tools
}
