package stage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"cairn/internal/stage/support"
)

// Stage names one step of a task.
type Stage string

// The stages.
const (
	IntentAnalysis    Stage = "intent_analysis"    // break down and clarify the query
	EmbeddingLookup   Stage = "embedding_lookup"   // search the documents
	ExecutorReasoning Stage = "executor_reasoning" // reason over query and documents
	Moderation        Stage = "moderation"         // check the answer
	WebSearch         Stage = "web_search"         // optional: search beyond the documents
	ResponsePackaging Stage = "response_packaging" // final message with sources
)

// Stages are all stages in their usual order.
var Stages = []Stage{IntentAnalysis, EmbeddingLookup, WebSearch, ExecutorReasoning, Moderation, ResponsePackaging}

// Status is the status of a task.
type Status string

// The statuses. The last three are final.
const (
	Waiting    Status = "waiting" // for a worker or client to claim the current stage
	InProgress Status = "in_progress"
	Complete   Status = "complete"
	Failed     Status = "failed"
	Aborted    Status = "aborted" // by a client
)

// Final reports whether the task has ended.
func (s Status) Final() bool { return s == Complete || s == Failed || s == Aborted }

// Task is the part of a State that clients receive.
type Task struct {
	ID        string  `json:"task_id"`
	UserID    string  `json:"user_id"`
	Query     string  `json:"query"`
	Plan      []Stage `json:"plan"`
	Current   Stage   `json:"current_stage"`
	Completed []Stage `json:"completed_stages"`
	Status    Status  `json:"status"`
	// Context holds the output of each stage, a JSON object.
	Context map[Stage]json.RawMessage `json:"context"`
	// VectorHits are the ids of the sections found, best first: "doc:" followed by an
	// argument of read_doc.
	VectorHits []string  `json:"vector_hits"`
	Response   *Response `json:"response"`
	Error      *string   `json:"error"`
	StartedAt  time.Time `json:"started_at"` // of its creation
	UpdatedAt  time.Time `json:"updated_at"` // of its last transition

	Template string `json:"template"` // "custom" for a task with its own plan
	// TemplatePlan is the plan without an inserted web_search.
	TemplatePlan []Stage `json:"template_plan"`
	// Progress is the position of the current stage in the plan in per cent.
	Progress int `json:"progress_percentage"`
}

// Response is the final message.
type Response struct {
	Answer  string   `json:"answer"`
	Sources []Source `json:"sources"`
	// NotFound reports that, according to the answer, the documents do not contain one.
	NotFound   bool    `json:"not_found,omitempty"`
	Confidence float64 `json:"confidence"` // in [0, 1]: that the answer is correct
	// Support reports for each sentence whether the sources support it. It is nil without
	// sources.
	Support *support.Report `json:"support,omitempty"`
	// How describes the steps that led to the answer, one line per step.
	How []string `json:"how"`
}

// Source is a section or web page that supports an answer.
type Source struct {
	ID     string `json:"id"` // "doc:path#anchor", or a URL
	Path   string `json:"path,omitempty"`
	Anchor string `json:"anchor,omitempty"`
	Title  string `json:"title,omitempty"`
}

// State is a task with the state of the machine, as stored. Its JSON is that of the Task with
// the additional key "machine".
type State struct {
	Task
	Machine Machine `json:"machine"`
}

// Machine is the part of a State that clients do not receive.
type Machine struct {
	Version int64 `json:"version"` // number of transitions, including the creation
	// Run is the number of the current run. Each entry into a stage starts a run.
	Run int `json:"run"`
	// Attempts is the number of consecutive failures of each stage.
	Attempts map[Stage]int `json:"attempts,omitempty"`
	// Reinvoked is the number of times that moderation sent the task back.
	Reinvoked int  `json:"reinvoked,omitempty"`
	Searched  bool `json:"searched,omitempty"` // web_search was inserted
	// StageStarted is the start of the current run, zero while the run waits.
	StageStarted time.Time `json:"stage_started,omitzero"`
	Worker       string    `json:"worker,omitempty"` // the worker that claimed the current run
	// Applied are the ids of the applied events. The number of transitions is limited, so
	// there are at most a few dozen.
	Applied []string `json:"applied,omitempty"`
	Rules   Rules    `json:"rules"`
}

// Rules are the limits of a task, fixed at its creation.
type Rules struct {
	StageTimeout time.Duration `json:"stage_timeout"` // 0 means 300 s
	TaskTimeout  time.Duration `json:"task_timeout"`  // 0 means 600 s
	// WebWait is the time after which an unclaimed web_search is skipped; 0 means 30 s.
	WebWait time.Duration `json:"web_wait,omitempty"`
	// Delegated are the stages that clients run. Workers run the other stages.
	Delegated []Stage `json:"delegated,omitempty"`
}

// The constants of the specification, except defaultWebWait and maxReinvocations.
const (
	DefaultStageTimeout = 300 * time.Second
	DefaultTaskTimeout  = 600 * time.Second
	// defaultWebWait leaves most of the task's time for the answer.
	defaultWebWait = 30 * time.Second
	// threshold is the minimum confidence of moderation for an answer to pass.
	threshold = 0.7
	// maxReinvocations is the maximum number of times that moderation sends a task back.
	// Without it a task could cycle between two stages.
	maxReinvocations = 2
	// maxAttempts includes the first attempt.
	maxAttempts = 2
)

func (r Rules) withDefaults() Rules {
	r.StageTimeout = cmp.Or(max(r.StageTimeout, 0), DefaultStageTimeout)
	r.TaskTimeout = cmp.Or(max(r.TaskTimeout, 0), DefaultTaskTimeout)
	r.WebWait = cmp.Or(max(r.WebWait, 0), defaultWebWait)
	return r
}

func (r Rules) delegates(s Stage) bool { return slices.Contains(r.Delegated, s) }

// Job is a run of a stage for a worker.
type Job struct {
	TaskID string `json:"task_id"`
	Stage  Stage  `json:"stage"`
	Run    int    `json:"run"`
}

// Job returns the current job of the task. ok is false if the task has ended or a client
// runs the current stage.
func (s *State) Job() (j Job, ok bool) {
	if s.Status.Final() || s.Machine.Rules.delegates(s.Current) {
		return Job{}, false
	}
	return Job{TaskID: s.ID, Stage: s.Current, Run: s.Machine.Run}, true
}

// Deadline returns the time at which the task or its current stage times out or is skipped,
// whichever is first. It returns the zero time if the task has ended.
func (s *State) Deadline() time.Time {
	if s.Status.Final() {
		return time.Time{}
	}
	end := s.StartedAt.Add(s.Machine.Rules.TaskTimeout)
	stage := s.Machine.StageStarted.Add(s.Machine.Rules.StageTimeout)
	switch {
	case s.Status == Waiting && s.Current == WebSearch && s.Machine.Rules.WebWait > 0:
		stage = s.UpdatedAt.Add(s.Machine.Rules.WebWait)
	case s.Machine.StageStarted.IsZero():
		return end
	}
	if stage.Before(end) {
		return stage
	}
	return end
}

// Entry is one transition in the log of a task.
type Entry struct {
	TaskID  string    `json:"task_id"`
	Version int64     `json:"version"` // of the task after the transition
	At      time.Time `json:"ts"`
	Stage   Stage     `json:"stage"` // of the event
	Action  Action    `json:"action"`
	Status  Status    `json:"status"` // after the transition
	Detail  string    `json:"detail,omitempty"`
	Event   string    `json:"event_id,omitempty"`
	Worker  string    `json:"worker,omitempty"`
	Run     int       `json:"run"` // of the event
}

// Action is the kind of a transition.
type Action string

// The actions.
const (
	Created   Action = "create"
	Started   Action = "start"    // claimed
	Completed Action = "complete" // the stage completed; after the last stage also the task
	Retried   Action = "retry"    // the stage failed and runs again
	GaveUp    Action = "fail"     // the task failed
	Reinvoked Action = "reinvoke" // moderation sent the task back
	Inserted  Action = "insert"   // web_search was inserted
	Skipped   Action = "skip"     // web_search was skipped
	Stopped   Action = "abort"
)

// Encode returns the JSON of a value in the form that stores use. Unlike json.Marshal it does
// not escape <, > and &.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
