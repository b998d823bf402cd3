package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/markdown"
	"cairn/internal/toolbox"
)

// Auto lists the tools that suit the contents of the folder, and more_tools, which calls
// the others. A model chooses well among a dozen tools, and the definition of each tool
// costs tokens in every conversation (TestAutoBudget).
const Auto Group = "auto"

// maxOffered bounds the number of tools that Auto lists, not counting those of other
// chosen groups.
const maxOffered = 11

// contents describes a folder for Auto.
type contents struct {
	cards     bool // the folder has task cards
	documents bool // a document has tasks
	catalogue bool // tools were imported
	servers   bool // clients can call tools of other servers
	graph     bool // the configuration dag.enabled
}

// wanted returns the names of the tools to list for c, the most important first.
func (c contents) wanted() []string {
	names := []string{"read_context", "read_doc", "list_tasks", "create_task", "update_task"}
	if c.servers { // the list stays short, however many servers there are
		names = []string{"read_context", "read_doc", "search_tools", "get_tool", "call_tool", "read_result", "suggest_dag", "run_plan"}
		if c.cards {
			names = append(names, "list_tasks")
		}
		return names
	}
	var later []string
	add := func(yes bool, first, then []string) {
		if yes {
			names, later = append(names, first...), append(later, then...)
		}
	}
	add(c.cards, []string{"get_task_dependencies", "validate_task_graph"}, nil)
	add(c.documents, []string{"view_task"}, []string{"start_task", "complete_task"})
	add(c.catalogue, []string{"search_tools", "suggest_dag"}, []string{"get_tool", "record_usage", "related_tools"})
	add(true, nil, []string{"index", "status"})
	add(c.graph, nil, []string{"dag_get_ready_tasks", "dag_get_blocking_tasks", "dag_get_execution_order", "dag_validate_dependency"})
	return append(names, later...)
}

// contents returns the contents of the folder. The index counts the documents with tasks.
func (s *Server) contents(ctx context.Context) contents {
	var c contents
	if st, err := index.StatusOp.Call(ctx, s.folder, s.options.Status, nil); err == nil {
		c.documents = st.Tasks > 0
	}
	if t := s.options.Tasks; t != nil {
		board, err := t.Cards.Board()
		c.cards, c.graph = err == nil && len(board.Cards) > 0, t.GraphEnabled
	}
	if box := s.options.Toolbox; box != nil {
		known, err := toolbox.StatsOp.Call(ctx, box, struct{}{}, nil)
		c.catalogue = err == nil && known.Tools > 0
	}
	if p := s.options.Proxy; p != nil {
		c.servers = p.Gateway.Configured()
	}
	return c
}

// offered returns the tools to list for a folder with contents c.
func (s *Server) offered(c contents) []tool {
	if !s.auto() {
		return slices.Clone(s.tools)
	}
	chosen := map[string]bool{}
	for _, t := range s.tools {
		if t.name != moreTools && t.offeredBy(s.options.Groups) {
			chosen[t.name] = true
		}
	}
	offered := 1 // more_tools
	for _, name := range c.wanted() {
		if _, ok := s.find(name); ok && !chosen[name] && offered < maxOffered {
			chosen[name] = true
			offered++
		}
	}
	var list, hidden []tool
	for _, t := range s.tools {
		switch {
		case chosen[t.name]:
			list = append(list, t)
		case t.name != moreTools:
			hidden = append(hidden, t)
		}
	}
	if len(hidden) > 0 {
		list = append(list, s.more(hidden))
	}
	return list
}

func (s *Server) auto() bool { return slices.Contains(s.options.Groups, Auto) }

// turnOn returns an instruction how to turn on a tool that is not offered, "" if no tool
// has the name.
func (s *Server) turnOn(name string) string {
	all := everyTool()
	i := slices.IndexFunc(all, func(t tool) bool { return t.name == name })
	if i < 0 {
		if near := markdown.Nearest(names(all), name, 1); len(near) > 0 {
			return fmt.Sprintf("no tool %q, did you mean %q?", name, near[0])
		}
		return ""
	}
	var groups []string
	for _, g := range append(slices.Clone(s.options.Groups), all[i].groups[0]) {
		if g == Catalog {
			g = "tools"
		}
		groups = append(groups, string(g))
	}
	list := strings.Join(groups, ",")
	return fmt.Sprintf("%s is not offered here: start cairn with `--tools %s`, or run `cairn config set mcp.tools %s` and start it again", name, list, list)
}

// listing makes the lists of tools of one transport, which change with the contents of the
// folder.
type listing struct {
	server *Server

	mu     sync.Mutex
	listed []string // the names in the last list, sorted; nil before the first
}

// tools returns the definitions of the tools to list.
func (l *listing) tools(ctx context.Context) []*mcp.Tool {
	list := l.server.offered(l.server.contents(ctx))
	slices.SortFunc(list, func(x, y tool) int { return strings.Compare(x.name, y.name) })
	definitions := make([]*mcp.Tool, len(list))
	for i, t := range list {
		definitions[i] = t.definition()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listed = names(list)
	return definitions
}

// changed reports whether the list has changed since the last call of tools or changed.
func (l *listing) changed(ctx context.Context) bool {
	now := names(l.server.offered(l.server.contents(ctx)))
	slices.Sort(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.listed != nil && !slices.Equal(now, l.listed)
	if changed {
		l.listed = now
	}
	return changed
}

func names(list []tool) []string {
	var all []string
	for _, t := range list {
		all = append(all, t.name)
	}
	return all
}

// moreTools is the name of the tool that calls tools that are not listed.
const moreTools = "more_tools"

type moreArgs struct {
	Action    string          `json:"action,omitempty" jsonschema:"Tool to call; omit to list all"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"Its arguments; without required ones, it is described"`
}

// describedTool is a tool that more_tools can call.
type describedTool struct {
	Action      string          `json:"action"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

type moreAnswer struct {
	Tools []describedTool `json:"tools"`
}

// more is the tool more_tools, which calls the hidden tools.
func (s *Server) more(hidden []tool) tool {
	return tool{
		name: moreTools, title: "Further tools", groups: []Group{Auto}, notIdempotent: true, noSchema: true,
		description: fmt.Sprintf(`Call an unlisted tool, by its name as action: %s.
Use it when one fits better; without arguments it is described.`, strings.Join(names(hidden), ", ")),
		handler: codeHandler(func(context.Context, moreArgs) (*moreAnswer, error) {
			answer := &moreAnswer{Tools: []describedTool{}}
			for _, t := range hidden {
				first, _, _ := strings.Cut(t.description, ". ")
				first, _, _ = strings.Cut(first, "\n")
				answer.Tools = append(answer.Tools, describedTool{Action: t.name, Description: first})
			}
			return answer, nil
		}),
	}
}

// unwrap returns the tool and the arguments of a call. For a call of more_tools it returns
// the tool that the call names, so that its limits and permissions apply.
func (s *Server) unwrap(t tool, raw json.RawMessage) (tool, json.RawMessage, *Failure) {
	if t.name != moreTools {
		return t, raw, nil
	}
	t.readOnly = true // unless it calls another tool
	var a moreArgs
	if err := decode(raw, &a); err != nil {
		return t, raw, FailureOf(err)
	}
	if a.Action == "" {
		return t, raw, nil
	}
	inner, ok := s.find(a.Action)
	if !ok || a.Action == moreTools {
		return t, raw, invalid("action: %s", cmp.Or(s.turnOn(a.Action), fmt.Sprintf("no tool %q; without an action, %s lists all", a.Action, moreTools)))
	}
	a.Arguments = objectOf(a.Arguments)
	if len(a.Arguments) == 0 && len(argumentSchema(inner.args).Required) > 0 {
		t.call = func(context.Context, json.RawMessage) (any, error) {
			return &moreAnswer{Tools: []describedTool{{inner.name, inner.description, schemaJSON(argumentSchema(inner.args))}}}, nil
		}
		return t, raw, nil
	}
	return inner, a.Arguments, nil
}

// Group is the name of tools that are offered together, or of one tool.
type Group string

// The groups.
const (
	// Core contains the tools that index, search and read, and the main tools on cards.
	Core Group = "core"
	// Tasks contains the tools on task cards and on tasks in documents. It needs
	// Options.Tasks.
	Tasks Group = "tasks"
	// DAG contains the tools on the dependencies of tasks. It needs Options.Tasks.
	DAG Group = "dag"
	// Docs contains the tools that browse, search and edit documents by section. It needs
	// Options.Tasks, except for search and reading.
	Docs Group = "docs"
	// Catalog contains the tools that find tools, plan with them and record their use. It
	// needs Options.Toolbox.
	Catalog Group = "catalog"
	// Stages contains the tools on question tasks. It needs Options.Stages.
	Stages Group = "stages"
	// All contains every tool.
	All Group = "all"
)

var groups = []Group{Core, Tasks, DAG, Docs, Catalog, Stages, All}

// allTools returns the tools that o can serve, in the order of all lists.
func allTools(folder *owner.Folder, o *Options) []tool {
	list := folderTools{folder, o}.list()
	if t := o.Tasks; t != nil {
		list = slices.Concat(list, cardTools(folder, o), documentTaskTools(folder, o), dagTools(t), documentTools(o))
	}
	if box := o.Toolbox; box != nil {
		list = append(list, (&catalogTools{box: box, o: o}).list()...)
	}
	if o.Proxy != nil {
		list = append(list, o.Proxy.tools()...)
	}
	if st := o.Stages; st != nil {
		list = append(list, stageTools{st}.tools()...)
	}
	return list
}

// offeredBy reports whether the tool is in a chosen group or chosen by its name.
func (t *tool) offeredBy(chosen []Group) bool {
	return slices.Contains(chosen, All) || slices.Contains(chosen, Group(t.name)) ||
		slices.ContainsFunc(t.groups, func(g Group) bool { return slices.Contains(chosen, g) })
}

// ParseGroups parses a list of groups and names of tools, separated by commas. "tools" is
// an alias of Catalog.
func ParseGroups(list string) ([]Group, error) {
	var chosen []Group
	for name := range strings.SplitSeq(list, ",") {
		g := Group(strings.TrimSpace(name))
		if g == "tools" {
			g = Catalog
		}
		known := g == Auto || slices.Contains(groups, g) || slices.ContainsFunc(everyTool(), func(t tool) bool { return t.name == string(g) })
		if !known {
			return nil, fmt.Errorf("unknown group of tools %q, want {auto,core,tasks,dag,docs,tools,stages,all} or names of tools", name)
		}
		chosen = append(chosen, g)
	}
	return chosen, nil
}

// Offers reports whether the chosen groups include a tool of group g.
func Offers(chosen []Group, g Group) bool {
	return slices.ContainsFunc(everyTool(), func(t tool) bool { return slices.Contains(t.groups, g) && t.offeredBy(chosen) })
}

// everyTool returns the definitions of all tools. The tools cannot be called.
func everyTool() []tool {
	return allTools(nil, &Options{Toolbox: &owner.Folder{}, Proxy: &Proxy{}, Tasks: &workspace.Tasks{}, Stages: &workspace.Stages{}})
}
