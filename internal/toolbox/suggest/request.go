package suggest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/toolbox/toolsearch"
)

// DefaultMaxTools and MaxTools bound the tools chosen for an intent. Prerequisites do not
// count.
const (
	DefaultMaxTools = 6
	MaxTools        = 20
	// maxSteps bounds a plan, prerequisites included.
	maxSteps = 60
)

// Request is the argument of Suggest.
type Request struct {
	// Intent is the task in words. It may be empty if Tools is set.
	Intent string
	// ContextTools lists the IDs of tools in use. Unknown IDs are ignored.
	ContextTools []string
	// MaxTools bounds the chosen tools, 1 to 20; 0 means DefaultMaxTools.
	MaxTools int
	// Tools, if not empty, lists the IDs of the tools to arrange. Suggest then neither
	// chooses nor adds tools. An ID may occur twice.
	Tools []string
}

// UnknownToolError lists tools that are not in the catalogue.
type UnknownToolError struct{ IDs []string }

func (e *UnknownToolError) Error() string {
	return "not in the catalogue: " + strings.Join(e.IDs, ", ")
}

func (r *Request) check() error {
	if strings.TrimSpace(r.Intent) == "" && len(r.Tools) == 0 {
		return errors.New("an intent or tools are needed")
	}
	if r.MaxTools < 0 || r.MaxTools > MaxTools {
		return fmt.Errorf("max_tools %d, want 1 to %d", r.MaxTools, MaxTools)
	}
	if len(r.Tools) > maxSteps {
		return fmt.Errorf("%d tools, want at most %d", len(r.Tools), maxSteps)
	}
	return nil
}

// Suggestion is a plan for an intent. Its lists are never nil.
type Suggestion struct {
	Intent      string       `json:"intent"`
	Mode        Mode         `json:"mode"`
	DAG         DAG          `json:"dag"`
	Tasks       []Task       `json:"tasks"` // in an order in which they can run
	Layers      [][]string   `json:"layers"`
	Confidence  float64      `json:"confidence"`
	Parts       Confidence   `json:"confidence_parts"`
	Rationale   string       `json:"rationale"`
	Paths       []Path       `json:"dependency_paths"`
	Unmatched   []string     `json:"unmatched"` // parts of the intent without a tool
	Merged      []Merged     `json:"merged"`
	Missing     []Missing    `json:"missing_inputs"`
	Warnings    []string     `json:"warnings"`
	Remembered  []Remembered `json:"remembered"`
	Alternative []Option     `json:"alternatives"` // to the first chosen tool
}

// DAG is the plan as nodes and edges.
type DAG struct {
	Nodes []Node `json:"nodes"`
	// Edges are sorted by the order in which their producers, then their consumers, run.
	Edges []Edge `json:"edges"`
}

// Node is one use of a tool.
type Node struct {
	ID           string         `json:"id"` // of its task
	ToolID       string         `json:"toolId"`
	Inputs       map[string]any `json:"inputs"`       // literals of the intent
	Dependencies []string       `json:"dependencies"` // tool ids
}

// Edge means that To waits for From.
type Edge struct {
	From string `json:"from"` // tool id
	To   string `json:"to"`
	// DataPath is the binding: "output.content → input.jsonString" by schema,
	// "issue → input.issue_number" by inference, and "" for an edge without data.
	DataPath string `json:"dataPath"`
	// Kind is DataEdge, DeclaredEdge, LearntEdge, StatedEdge, InferredEdge or TextEdge.
	Kind string `json:"kind"`
	// Grade is the strength of the evidence: Exact, Alias, Partial or TypeOnly for a data
	// edge, 1 for a declared edge, and StatedOrder, InferredData or TextOrder for edges
	// of these kinds. For a learnt edge it is the trust in the similar intents that ran
	// one tool after the other, or the weight in the co-usage graph, within TypeOnly
	// and 1.
	Grade float64 `json:"grade"`
	// Reason explains the edge in words.
	Reason    string `json:"reason"`
	Ambiguous bool   `json:"ambiguous,omitempty"`
	FromTask  string `json:"from_task"`
	ToTask    string `json:"to_task"`
}

// Label returns the text of the edge in a drawing: its DataPath, or its Kind if it has
// none, and its Reason.
func (e *Edge) Label() string { return cmp.Or(e.DataPath, e.Kind) + ": " + e.Reason }

// Task is one step of the plan.
type Task struct {
	ID        string         `json:"id"`
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	DependsOn []string       `json:"depends_on"`
	Layer     int            `json:"layer"`
	DataPaths []string       `json:"data_paths"` // into this task
	// Confidence is how well the tool fits, in [0, 1]. It is 1 for a given tool. A
	// prerequisite has the confidence of the tool that needs it.
	Confidence float64 `json:"confidence"`
	Rationale  string  `json:"rationale"`
	// Part is the part of the intent that the tool fits best, if the intent has several.
	// Remembered reports that the tool was used for similar intents.
	Part         string   `json:"part,omitempty"`
	Remembered   bool     `json:"remembered,omitempty"`
	Alternatives []Option `json:"alternatives"`
	Dangerous    bool     `json:"dangerous"`
	// Prerequisite reports that the tool was added because another tool needs it.
	Prerequisite bool `json:"prerequisite,omitempty"`
}

// Option is an alternative to a tool.
type Option struct {
	Tool  string  `json:"tool"`
	Score float64 `json:"score"`
}

// Merged is a part of the intent that the tool of another part serves.
type Merged struct {
	Part string `json:"part"`
	Tool string `json:"tool"`
}

// Missing is a required input that neither the intent nor a tool supplies.
type Missing struct {
	Task  string `json:"task"`
	Tool  string `json:"tool"`
	Input string `json:"input"`
	// Supplier is the ID of a tool that by its name returns what the input identifies.
	Supplier string `json:"supplier,omitempty"`
}

// Remembered is a similar past intent.
type Remembered struct {
	Intent     string   `json:"intent"`
	Tools      []string `json:"tools"`
	Similarity float64  `json:"similarity"`
}

// dangerWords lists words in the names of tools whose use is irreversible or costs money.
var dangerWords = []string{"delete", "remove", "deploy", "payment", "send_email", "execute_shell", "drop", "truncate", "transfer", "admin"}

// Dangerous reports whether the name of a tool has one of dangerWords. It ignores
// separators: sendEmail matches send_email.
func Dangerous(name string) bool {
	flat := strings.Join(toolsearch.Words(name), "")
	return slices.ContainsFunc(dangerWords, func(w string) bool { return strings.Contains(flat, strings.ReplaceAll(w, "_", "")) })
}
