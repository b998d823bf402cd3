package tools

import "cairn/internal/folder/workspace"

// dagTools are the tools on the dependency graph of the cards, or of the tasks of a
// document.
func dagTools(t *workspace.Tasks) []tool {
	return []tool{
		{name: "dag_get_ready_tasks", title: "Tasks that can start", groups: []Group{DAG}, readOnly: true, handler: graphHandler(t.Graph.Ready),
			description: `List the tasks that have not started and whose dependencies are all done, oldest first.
Use it to choose what to do next. Not for why a task cannot start: use dag_get_blocking_tasks.`},
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
