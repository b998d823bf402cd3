package task

// Problem describes a problem of a task and its fix. If Error is true, the task may be
// missing from answers or can never start. Otherwise the problem is a warning.
type Problem struct {
	Path    string `json:"path"`           // of the workspace
	Line    int    `json:"line,omitempty"` // from 1; 0 if unknown
	ID      string `json:"id"`             // of a card
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
	Error   bool   `json:"error"`
}

// The kinds of problems.
const (
	BadYAML       = "bad-yaml"
	NoFrontMatter = "no-front-matter"
	Unreadable    = "unreadable"
	OddName       = "name"
	Large         = "large"
	OtherID       = "other-id"
	DuplicateID   = "duplicate-id"
	NoTitle       = "no-title"
	OddStatus     = "status"
	OddPriority   = "priority"
	OddDate       = "date"
	OddEstimate   = "estimate"
	MissingTask   = "missing-dependency"
	CycleOfTasks  = "cycle"
	Orphan        = "active-without-assignee"
	Stale         = "stale"
	SingleTag     = "single-tag"
)
