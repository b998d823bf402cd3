package tools

import (
	"context"

	"cairn/internal/base/owner"
	"cairn/internal/folder/workspace"
	"cairn/internal/task/cards"
)

// cardTools are the tools on task cards.
func cardTools(folder *owner.Folder, o *Options) []tool {
	t := o.Tasks
	return []tool{
		{
			name: "list_tasks", title: "List task cards", groups: []Group{Core, Tasks}, readOnly: true, rate: rate{Limit: 20, Burst: 30},
			description: `List the task cards of the workspace, most urgent first, then oldest.
Use it to see what has to be done and by whom. Not for searching text: read_context also finds cards.`,
			handler: codeHandler(func(_ context.Context, r listTasksArgs) (*listTasksAnswer, error) {
				found, _, err := t.Cards.List(r.ListRequest)
				if err != nil {
					return nil, err
				}
				a := &listTasksAnswer{Tasks: found, Count: len(found)}
				if r.Limit != nil {
					a.Tasks = found[:min(int(*r.Limit), len(found))]
				}
				return a, nil
			}),
			bare: func(answer any) any { return answer.(*listTasksAnswer).Tasks },
		},
		{name: "create_task", title: "Create a task card", groups: []Group{Core, Tasks}, additive: true, notIdempotent: true, handler: codeHandler(t.Cards.Create),
			description: `Create a task card, or nothing if an argument is invalid, such as an unknown id in depends_on.
Use it to record work to do. Not for a task inside a document: use task.`},
		{name: "update_task", title: "Update a task card", groups: []Group{Core, Tasks}, rate: rate{Limit: 10, Burst: 15}, handler: codeHandler(t.Cards.Update),
			description: `Change fields of a task card; the rest of its file stays the same.
Use it to start, finish, assign or reorder work. Not for the text of a card: edit the file.`},
		{
			name: "get_task_dependencies", title: "Dependencies of a task", groups: []Group{Tasks}, readOnly: true,
			description: `List the cards that a task directly depends on, or with reverse=true those that depend on it.
Use it before changing or finishing one task. Not for tasks that can start now: use dag_get_ready_tasks.`,
			handler: codeHandler(func(ctx context.Context, r dependenciesArgs) (*dependenciesAnswer, error) {
				a, err := t.Cards.Dependencies(r.DependenciesRequest)
				if err != nil || r.Tokens == nil {
					return &dependenciesAnswer{a, ""}, err
				}
				request, err := t.ContextRequest(r.ID)
				if err != nil {
					return nil, err
				}
				text, err := r.of(ctx, folder, o, request)
				return &dependenciesAnswer{a, text}, err
			}),
		},
		{
			name: "validate_task_graph", title: "Check dependencies for cycles", groups: []Group{Tasks}, readOnly: true,
			description: `Check all cards, or everything that one card depends on, for dependency cycles.
Use it after editing cards by hand. Not needed before update_task, which refuses cycles.`,
			handler: codeHandler(func(ctx context.Context, r validateArgs) (*cards.ValidateAnswer, error) {
				switch {
				case !r.References:
					return t.Cards.Validate(r.ValidateRequest)
				case r.ID != "":
					return nil, invalid("references checks all documents: omit id")
				}
				cycle, err := t.Documents.ReferenceCycle(ctx)
				if err != nil {
					return nil, err
				}
				if cycle != nil {
					return nil, &Failure{Code: CodeCycle, Message: "Cycle Detected", Data: map[string]any{
						"cycle_path": cycle, "suggestion": "Remove reference from " + cycle[0]}}
				}
				return &cards.ValidateAnswer{Valid: true, Message: "No documents refer to each other in a circle"}, nil
			}),
		},
		{
			name: "query_graph", title: "Draw the task graph", groups: []Group{Tasks}, readOnly: true,
			description: `Return all cards and their dependencies as one text: JSON, a Mermaid diagram or Graphviz DOT.
Use it to show the whole plan. Not for questions about it: use the dag_* tools.`,
			handler: codeHandler(func(_ context.Context, r cards.GraphRequest) (*cards.GraphAnswer, error) {
				return t.Cards.QueryGraph(r)
			}),
		},
	}
}

// dagTools are the tools on the dependency graph of the cards, or of the tasks of a
// document.
func dagTools(t *workspace.Tasks) []tool {
	return []tool{
		{name: "dag_get_ready_tasks", title: "Tasks that can start", groups: []Group{DAG}, readOnly: true, handler: graphHandler(t.Graph.Ready),
			description: `List the tasks that have not started and whose dependencies are all done, oldest first.
Use it to choose what to do next; claim it with update_task, status active and assignee together. Not for why a task cannot start: use dag_get_blocking_tasks.`},
		{name: "dag_validate_dependency", title: "Check a new dependency", groups: []Group{DAG}, readOnly: true, handler: graphHandler(t.Graph.Validate),
			description: `Check whether a new dependency between two tasks would create a cycle. Changes nothing.
Use it before adding a dependency. Not for the whole graph: use validate_task_graph.`},
		{name: "dag_get_execution_order", title: "Order of work", groups: []Group{DAG}, readOnly: true, handler: graphHandler(t.Graph.Order),
			description: `List the tasks in an order in which each comes after its dependencies.
Use it to plan for one worker. Not for several: use dag_get_parallel_groups.`},
		{name: "dag_get_blocking_tasks", title: "What blocks a task", groups: []Group{DAG}, readOnly: true, handler: graphHandler(t.Graph.Blocking),
			description: `List the unfinished dependencies of one task, including those that do not exist.
Use it when a task cannot start. Not for finished dependencies: use get_task_dependencies.`},
		{name: "dag_get_parallel_groups", title: "Waves of work", groups: []Group{DAG}, readOnly: true, handler: graphHandler(t.Graph.Groups),
			description: `Group the unfinished tasks into waves. The tasks of a wave can be done at the same time once all earlier waves are done.
Use it to divide work. Not for one worker: use dag_get_execution_order.`},
		{name: "dag_get_critical_path", title: "Longest chain of tasks", groups: []Group{DAG}, readOnly: true, handler: graphHandler(t.Graph.CriticalPath),
			description: `Return the longest chain of dependent tasks: no plan takes fewer steps.
Use it to find what delays the end. Not for tasks that can start now: use dag_get_ready_tasks.`},
		{name: "dag_get_stats", title: "Figures of the task graph", groups: []Group{DAG}, readOnly: true, handler: graphHandler(t.Graph.Stats),
			description: `Return the number of tasks, dependencies, and ready, blocked and completed tasks, and the depth of the graph.
Use it for an overview of a plan. Not for the tasks themselves: use list_tasks.`},
	}
}

type dependenciesArgs struct {
	cards.DependenciesRequest
	ContextSize
}

type dependenciesAnswer struct {
	*cards.DependenciesAnswer
	Context string `json:"task_context,omitempty"`
}

type listTasksArgs struct {
	cards.ListRequest
	Limit *integer `json:"limit,omitempty" schema:"min=1"`
}

// listTasksAnswer is the answer of list_tasks. The method list_tasks answers with Tasks.
type listTasksAnswer struct {
	Tasks []cards.ListItem `json:"tasks"`
	Count int              `json:"count"` // cards that match, including those beyond the limit
}

type validateArgs struct {
	cards.ValidateRequest
	References bool `json:"references,omitempty" schema:"default=false" jsonschema:"Check references between documents (@/path, refs) instead; a cycle fails with 1002"`
}

// cardUpdates describes the updates of update_task. cards.Store decodes each field by
// itself, because null and an absent field differ.
type cardUpdates struct {
	Status    string   `json:"status,omitempty" schema:"enum=todo|active|done|archived"`
	Assignee  string   `json:"assignee,omitempty" schema:"max=50,null"`
	Priority  string   `json:"priority,omitempty" schema:"enum=low|medium|high|critical"`
	Notes     string   `json:"notes,omitempty" schema:"max=500,null"`
	Tags      []string `json:"tags,omitempty"`
	DependsOn []string `json:"depends_on,omitempty"`
	Title     string   `json:"title,omitempty"`
}
