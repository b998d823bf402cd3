package benchmarks

import (
	"encoding/json"
	"slices"
	"testing"

	"cairn/graphrank"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
)

// wordings are intents with the tools of their plan, in order, over a small catalogue.
var wordings = []struct {
	name    string
	tools   [][3]string // server, name and description
	schemas map[string][2]string
	learnt  []string // run three times one after the other for "get the site online"
	want    []string
	intents []string
}{
	{"a file to an issue", [][3]string{{"filesystem", "read", "Read a file"}, {"json", "parse", "Parse JSON text"}, {"github", "create", "Open a GitHub issue"}},
		exampleSchemas, nil, []string{"filesystem:read", "json:parse", "github:create"},
		[]string{"read config.json, parse it and create a GitHub issue from it", "Read the file config.json, then parse the JSON and open an issue on GitHub", "First read config.json. Then parse it. Finally create a GitHub issue with the result.",
			"Please load the file config.json, parse its JSON and file a GitHub issue about it", "Parse the JSON of config.json after you read the file, and open a GitHub issue"}},
	{"a file to an issue, other descriptions", [][3]string{{"filesystem", "read", "Read a file"}, {"json", "parse", "Parse a JSON string"}, {"github", "create", "Create a GitHub issue"}},
		exampleSchemas, nil, []string{"filesystem:read", "json:parse", "github:create"},
		[]string{"read config.json, parse it and create a GitHub issue from it", "Read the file config.json, then parse the JSON and open an issue on GitHub", "First read config.json. Then parse it. Finally create a GitHub issue with the result.",
			"read config.json and open an issue about it", "Take config.json, parse it and create an issue on GitHub"}},
	{"a tool between", [][3]string{{"", "git_clone", "Clone a repository"}, {"", "npm_install", "Install packages"}, {"", "deploy", "Deploy an application"}},
		nil, []string{"git_clone", "npm_install", "deploy"}, []string{"git_clone", "npm_install", "deploy"},
		[]string{"clone the repository and deploy it", "Clone a repository, then deploy the application", "deploy the app after cloning the repository", "Please clone the project's repository and deploy it to production", "git clone the repo, then deploy"}},
	{"two verbs", [][3]string{{"github", "fork_repository", "Fork a repository to your account"}, {"github", "star_repository", "Star a repository"}, {"github", "list_issues", "List issues of a repository"}, {"github", "issue_close", "Close an issue"}, {"github", "create_branch", "Create a branch"}},
		nil, nil, []string{"github:fork_repository", "github:star_repository"},
		[]string{"fork and star the repository", "Fork the repository and star it", "fork the repo, then give it a star", "Please fork and then star the repository", "First fork the repository, then star it"}},
	{"no tool", [][3]string{{"mail", "send_email", "Send an email to a recipient"}, {"calendar", "create_event", "Create an event in a calendar"}, {"files", "read_file", "Read a file"}},
		nil, nil, nil, []string{"bake a cake", "Bake me a chocolate cake", "I want to bake a cake for tomorrow", "please bake two cakes", "how do I bake a cake?"}},
}

var exampleSchemas = map[string][2]string{
	"read":   {`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`, `{"type":"object","properties":{"content":{"type":"string"}}}`},
	"parse":  {`{"type":"object","properties":{"jsonString":{"type":"string"}},"required":["jsonString"]}`, `{"type":"object","properties":{"parsed":{"type":"object"}}}`},
	"create": {`{"type":"object","properties":{"data":{"type":"object"}},"required":["data"]}`, `{}`},
}

// leastWordings is the number of wordings that have the wanted plan. plans.md has the others.
const leastWordings = 16

// TestWordings plans examples of use in several wordings.
func TestWordings(t *testing.T) {
	model, cache := toolModel(t)
	p := &planRun{t: t, options: &ToolsOptions{Embedder: model, Reader: toolReader, Cache: cache}}
	right := 0
	for _, c := range wordings {
		var tools []catalog.Tool
		for _, def := range c.tools {
			tool := catalog.Tool{Server: def[0], Name: def[1], Description: def[2]}
			if s := c.schemas[def[1]]; s[0] != "" {
				tool.Input, tool.Output = json.RawMessage(s[0]), json.RawMessage(s[1])
			}
			made, err := catalog.New(tool)
			if err != nil {
				t.Fatal(err)
			}
			tools = append(tools, made)
		}
		b := p.open(tools)
		index := b.index
		if len(c.learnt) > 0 {
			graph := &graphrank.Graph{}
			trace := toolsearch.Trace{Intent: "get the site online", Tools: c.learnt}
			for i := range c.learnt[1:] {
				trace.Edges = append(trace.Edges, [2]int{i, i + 1})
				graph.Set(graphrank.Edge{From: c.learnt[i], To: c.learnt[i+1], Type: graphrank.Dependency, Source: graphrank.Observed, Count: 3})
			}
			usage, err := toolsearch.NewUsage(t.Context(), graph, []toolsearch.Trace{trace}, model, nil)
			if err != nil {
				t.Fatal(err)
			}
			index = index.WithUsage(usage)
		}
		for _, intent := range c.intents {
			plan, err := suggest.Suggest(t.Context(), index, suggest.Request{Intent: intent})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, task := range plan.Tasks {
				got = append(got, task.Tool)
			}
			if slices.Equal(got, c.want) {
				right++
			} else {
				t.Logf("%s: %q: %v, unmatched %q, merged %v", c.name, intent, got, plan.Unmatched, plan.Merged)
			}
		}
		b.close()
	}
	if right < leastWordings {
		t.Errorf("%d wordings have the wanted plan, want %d", right, leastWordings)
	}
}
