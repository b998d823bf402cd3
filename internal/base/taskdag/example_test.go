package taskdag_test

import (
	"fmt"

	"cairn/internal/base/taskdag"
)

func Example() {
	g, err := taskdag.New([]taskdag.Task{
		{ID: "schema", State: taskdag.Completed},
		{ID: "api", DependsOn: []string{"schema"}, Estimate: 8},
		{ID: "docs", DependsOn: []string{"schema"}, Estimate: 2},
		{ID: "release", DependsOn: []string{"api", "docs"}, Estimate: 1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready:", g.Ready(0))
	groups, _ := g.Groups()
	fmt.Println("waves:", groups)
	path, _ := g.CriticalPath()
	fmt.Println("critical path:", path)
	_, total, _ := g.Schedule()
	fmt.Println("hours:", total)
	// Output:
	// ready: [api docs]
	// waves: [[api docs] [release]]
	// critical path: [schema api release]
	// hours: 9
}

func ExampleGraph_Validate() {
	g, err := taskdag.New([]taskdag.Task{{ID: "a"}, {ID: "b", DependsOn: []string{"a"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Validate("a", "b"))
	// Output:
	// Cycle: a -> b -> a
}
