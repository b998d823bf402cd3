package tools

import (
	"context"

	"cairn/internal/base/owner"
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
				found, err := t.Cards.List(r.ListRequest)
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
