package stage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds of input.
const (
	maxQuery  = 4000      // runes
	maxUser   = 200       // bytes
	maxID     = 100       // bytes of the id of a task or event
	maxOutput = 256 << 10 // bytes of the output of a stage
	maxDetail = 2000      // bytes of a reason
	maxHits   = 50        // hits of a lookup
)

// Request describes a new task.
type Request struct {
	ID       string // of the new task; must not be empty
	UserID   string
	Query    string
	Template string  // "" means "standard_query"
	Plan     []Stage // instead of a template
	Rules    Rules
	At       time.Time
}

// New returns a new task and the effects of its creation.
func New(r Request) (*State, *Effects, error) {
	if err := checkID("task_id", r.ID); err != nil {
		return nil, nil, err
	}
	switch n := utf8.RuneCountInString(r.Query); {
	case strings.TrimSpace(r.Query) == "":
		return nil, nil, refuse(CodeParameter, "query: missing or blank")
	case n > maxQuery:
		return nil, nil, refuse(CodeParameter, "query: %d characters, want at most %d", n, maxQuery)
	case !utf8.ValidString(r.Query) || strings.ContainsRune(r.Query, 0):
		return nil, nil, refuse(CodeParameter, "query: not text")
	case len(r.UserID) > maxUser:
		return nil, nil, refuse(CodeParameter, "user_id: %d bytes, want at most %d", len(r.UserID), maxUser)
	case strings.TrimSpace(r.UserID) == "":
		return nil, nil, refuse(CodeParameter, "user_id: missing or blank")
	case !plainWord(r.UserID):
		return nil, nil, refuse(CodeParameter, "user_id: has control characters or is not text")
	}
	template, p := r.Template, slices.Clone(r.Plan)
	switch {
	case len(p) > 0 && template != "":
		return nil, nil, refuse(CodeParameter, "give a template or a plan, not both")
	case r.Plan != nil:
		if err := checkPlan(p); err != nil {
			return nil, nil, err
		}
		template = custom
	default:
		var err error
		if p, err = plan(template); err != nil {
			return nil, nil, err
		}
		template = cmp.Or(template, defaultTemplate)
	}
	at := clock(r.At)
	s := &State{Task: Task{
		ID: r.ID, UserID: r.UserID, Query: r.Query, Plan: p, Current: p[0], Completed: []Stage{}, Status: Waiting,
		Context: map[Stage]json.RawMessage{}, VectorHits: []string{}, StartedAt: at, UpdatedAt: at,
		Template: template, TemplatePlan: slices.Clone(p),
	}, Machine: Machine{Version: 1, Run: 1, Rules: r.Rules.withDefaults()}}
	s.Progress = s.progress()
	return s, s.effects(Created, p[0], 1, Event{At: at}, template), nil
}

// Kind is the kind of an event.
type Kind string

// The kinds of events.
const (
	Claim   Kind = "claim"   // a worker or client claims the current stage
	Done    Kind = "done"    // the stage has a result
	Failure Kind = "failure" // the stage failed
	Abort   Kind = "abort"   // a client stops the task
	Tick    Kind = "tick"    // time has passed
)

// Event is the input of a transition.
type Event struct {
	// ID identifies the event. The machine rejects an event whose ID it has already
	// applied, unless the ID is "".
	ID    string
	Kind  Kind
	At    time.Time
	Stage Stage // required for Done and Failure, optional for Claim
	// Run is the run of the stage; 0 means the current one.
	Run    int
	Worker string
	Result Result // of Done
	Reason string // of Failure and Abort
}

// Result is the result of a stage.
type Result struct {
	// Output is a JSON object. It becomes the task's context for the stage.
	Output json.RawMessage
	// Confidence is in [0, 1]. Moderation requires it.
	Confidence *float64
	// Blocked reports that moderation rejects the answer regardless of the confidence, and
	// Problem why it rejects the answer.
	Blocked bool
	Problem string
	// NeedsWebSearch is the executor's request for a web search. It is granted once per
	// task.
	NeedsWebSearch bool
	Hits           []string  // of EmbeddingLookup
	Response       *Response // of ResponsePackaging, which requires it
}

// Effects are the actions to take after storing a transition.
type Effects struct {
	Entry Entry
	// Job is the job to run now, nil for none.
	Job *Job
}

// Step applies an event to a state and returns the new state. It does not change s. It
// returns an *Error if the event does not fit the state.
func Step(s *State, e Event) (*State, *Effects, error) {
	e.At = clock(e.At)
	if err := admit(s, e); err != nil {
		return nil, nil, err
	}
	n := s.clone()
	if e.At.Before(n.UpdatedAt) {
		e.At = n.UpdatedAt // clocks of workers differ, but the times of a task must not decrease
	}
	n.UpdatedAt = e.At
	n.Machine.Version++
	if e.ID != "" {
		n.Machine.Applied = append(n.Machine.Applied, e.ID)
	}
	var fx *Effects
	switch e.Kind {
	case Claim:
		n.Status, n.Machine.StageStarted, n.Machine.Worker = InProgress, e.At, e.Worker
		fx = n.effects(Started, s.Current, s.Machine.Run, e, "")
	case Abort:
		n.end(Aborted, e.Reason)
		fx = n.effects(Stopped, s.Current, s.Machine.Run, e, e.Reason)
	case Failure:
		fx = n.fail(e, e.Reason)
	case Tick:
		fx = n.timeout(s, e)
	case Done:
		fx = n.done(e)
	}
	n.Progress = n.progress()
	return n, fx, nil
}

// admit returns an error if an event does not fit the state.
func admit(s *State, e Event) error {
	m := &s.Machine
	if e.ID != "" {
		if err := checkID("event_id", e.ID); err != nil {
			return err
		}
		if slices.Contains(m.Applied, e.ID) {
			return refuse(CodeReplayed, "event %.80q has been applied to task %s already", e.ID, s.ID)
		}
	}
	if s.Status.Final() {
		return refuse(CodeTransition, "task %s is %s, which is final", s.ID, s.Status)
	}
	late := !e.At.Before(s.Deadline())
	switch e.Kind {
	case Abort:
		return checkReason(e.Reason)
	case Tick:
		if !late {
			return refuse(CodeNotDue, "task %s has time until %s", s.ID, s.Deadline().Format(time.RFC3339))
		}
		return nil
	case Claim, Done, Failure:
	default:
		return refuse(CodeParameter, "unknown event %.80q", e.Kind)
	}
	if len(e.Worker) > maxID || e.Worker != "" && !plainWord(e.Worker) {
		return refuse(CodeParameter, "worker: want at most %d bytes of text", maxID)
	}
	switch {
	case (e.Kind != Claim || e.Stage != "") && !slices.Contains(Stages, e.Stage):
		return refuse(CodeParameter, "unknown stage %.80q, want {%s}", e.Stage, joinStages(Stages))
	case e.Run != 0 && e.Run != m.Run:
		return refuse(CodeLate, "run %d of task %s is not the current one, %d of %s", e.Run, s.ID, m.Run, s.Current)
	case e.Stage != "" && e.Stage != s.Current:
		return refuse(CodeWrongStage, "task %s is at %s, not at %s", s.ID, s.Current, e.Stage)
	case late:
		return refuse(CodeLate, "the time of task %s ran out at %s", s.ID, s.Deadline().Format(time.RFC3339))
	}
	if e.Kind == Claim {
		if s.Status != Waiting {
			return refuse(CodeTransition, "task %s is in progress already", s.ID)
		}
		return nil
	}
	// A delegated stage needs no claim before its result. Other stages require one.
	if s.Status == Waiting && !m.Rules.delegates(s.Current) {
		return refuse(CodeTransition, "task %s is waiting; claim it first", s.ID)
	}
	if e.Worker != "" && m.Worker != "" && e.Worker != m.Worker && m.Rules.delegates(s.Current) {
		return refuse(CodeClaimed, "task %s is claimed by %s", s.ID, m.Worker)
	}
	if e.Kind == Failure {
		return checkReason(e.Reason)
	}
	return e.Result.check(e.Stage)
}

func (r *Result) check(s Stage) error {
	if c := r.Confidence; c != nil && !(*c >= 0 && *c <= 1) { // also rejects NaN
		return refuse(CodeParameter, "confidence: %v, want 0 to 1", *c)
	}
	switch {
	case s == Moderation && r.Confidence == nil:
		return refuse(CodeParameter, "confidence: missing; %s needs one", s)
	case s == ResponsePackaging && (r.Response == nil || math.IsNaN(r.Response.Confidence)):
		return refuse(CodeParameter, "response: missing; %s needs one", s)
	case r.NeedsWebSearch && s != ExecutorReasoning:
		return refuse(CodeParameter, "needs_web_search: only %s may ask for it", ExecutorReasoning)
	case len(r.Hits) > maxHits:
		return refuse(CodeParameter, "hits: %d, want at most %d", len(r.Hits), maxHits)
	case len(r.Output) > maxOutput:
		return refuse(CodeParameter, "output: %d bytes, want at most %d", len(r.Output), maxOutput)
	case len(r.Output) > 0 && (!utf8.Valid(r.Output) || !json.Valid(r.Output) || strings.TrimLeft(string(r.Output), " \t\r\n")[0] != '{'):
		return refuse(CodeParameter, "output: want a JSON object")
	}
	return nil
}

// done applies the result of a stage.
func (s *State) done(e Event) *Effects {
	run, r := s.Machine.Run, e.Result
	if len(r.Output) > 0 {
		s.Context[e.Stage] = r.Output
	}
	if e.Stage == EmbeddingLookup {
		s.VectorHits = append([]string{}, r.Hits...)
	}
	delete(s.Machine.Attempts, e.Stage)
	if r.NeedsWebSearch && !s.Machine.Searched && !slices.Contains(s.Plan, WebSearch) {
		s.Machine.Searched = true
		s.move(Inserted, e.Stage)
		return s.effects(Inserted, e.Stage, run, e, string(WebSearch))
	}
	if e.Stage == Moderation && (r.Blocked || *r.Confidence < threshold) {
		return s.sendBack(e)
	}
	detail := ""
	if r.Confidence != nil {
		detail = fmt.Sprintf("confidence %.3f", *r.Confidence)
	}
	if s.move(Completed, e.Stage); s.Status == Complete {
		s.Response = r.Response
	}
	return s.effects(Completed, e.Stage, run, e, detail)
}

// move changes the plan, the completed stages and the current stage by an action about a stage.
func (s *State) move(a Action, about Stage) {
	switch a {
	case Completed, Skipped:
		s.Completed = append(slices.Clone(s.Completed), about)
		if at := slices.Index(s.Plan, about); at < len(s.Plan)-1 {
			s.enter(s.Plan[at+1])
		} else {
			s.end(Complete, "")
		}
	case Inserted:
		s.Plan = slices.Insert(slices.Clone(s.Plan), slices.Index(s.Plan, ExecutorReasoning), WebSearch)
		s.enter(WebSearch)
	case Reinvoked:
		s.Completed = slices.DeleteFunc(slices.Clone(s.Completed), func(c Stage) bool { return c == ExecutorReasoning || c == Moderation })
		s.enter(ExecutorReasoning)
	}
}

// sendBack returns the task to the executor after moderation rejected the answer.
func (s *State) sendBack(e Event) *Effects {
	run := s.Machine.Run
	detail := fmt.Sprintf("confidence %.3f, want %.2f", *e.Result.Confidence, threshold)
	if e.Result.Blocked {
		detail = "blocked"
	}
	problem := ""
	if e.Result.Problem != "" {
		problem = ": " + clip(e.Result.Problem, maxDetail)
	}
	detail += problem
	if s.Machine.Reinvoked == maxReinvocations {
		s.end(Failed, "moderation threshold not met"+problem)
		return s.effects(GaveUp, e.Stage, run, e, detail)
	}
	s.Machine.Reinvoked++
	s.move(Reinvoked, e.Stage)
	return s.effects(Reinvoked, e.Stage, run, e, detail)
}

// fail counts a failed attempt. The stage runs again, or the task fails after
// maxAttempts.
func (s *State) fail(e Event, reason string) *Effects {
	at, run := s.Current, s.Machine.Run
	if s.Machine.Attempts == nil {
		s.Machine.Attempts = map[Stage]int{}
	}
	s.Machine.Attempts[at]++
	if s.Machine.Attempts[at] >= maxAttempts {
		if at == WebSearch {
			return s.skip(e, reason)
		}
		s.end(Failed, fmt.Sprintf("Stage '%s' failed: %s", at, reason))
		return s.effects(GaveUp, at, run, e, reason)
	}
	s.enter(at)
	return s.effects(Retried, at, run, e, reason)
}

// timeout applies a Tick. old is the previous state.
func (s *State) timeout(old *State, e Event) *Effects {
	m := &old.Machine
	switch inTime := e.At.Before(old.StartedAt.Add(m.Rules.TaskTimeout)); {
	case inTime && old.Status == Waiting:
		return s.skip(e, fmt.Sprintf("no client took it within %v", m.Rules.WebWait))
	case inTime:
		return s.fail(e, fmt.Sprintf("timed out after %v", m.Rules.StageTimeout))
	}
	reason := fmt.Sprintf("the task timed out after %v at %s", m.Rules.TaskTimeout, old.Current)
	s.end(Failed, reason)
	return s.effects(GaveUp, old.Current, m.Run, e, reason)
}

// skip continues without the results of web_search.
func (s *State) skip(e Event, reason string) *Effects {
	at, run := s.Current, s.Machine.Run
	s.Context[at], _ = Encode(WebResults{Results: []WebResult{}, Skipped: reason}) // cannot fail
	s.move(Skipped, at)
	return s.effects(Skipped, at, run, e, reason)
}

// enter starts a run of a stage. The run waits until it is claimed.
func (s *State) enter(next Stage) {
	s.Current, s.Status = next, Waiting
	s.Machine.Run++
	s.Machine.StageStarted, s.Machine.Worker = time.Time{}, ""
}

// end ends the task. If reason is "", the task has no error.
func (s *State) end(status Status, reason string) {
	s.Status, s.Machine.StageStarted, s.Machine.Worker = status, time.Time{}, ""
	if reason != "" {
		s.Error = &reason
	}
}

// effects describes the transition that led to s.
func (s *State) effects(a Action, about Stage, run int, e Event, detail string) *Effects {
	fx := &Effects{Entry: Entry{
		TaskID: s.ID, Version: s.Machine.Version, At: e.At, Stage: about, Action: a, Status: s.Status,
		Detail: detail, Event: e.ID, Worker: e.Worker, Run: run,
	}}
	if j, ok := s.Job(); ok {
		fx.Job = &j
	}
	return fx
}

// progress returns floor((i+1)/n·100) for stage i of n, and 100 for a complete task.
func (s *State) progress() int {
	if s.Status == Complete {
		return 100
	}
	return (slices.Index(s.Plan, s.Current) + 1) * 100 / len(s.Plan)
}

// clone copies everything that Step may change in place.
func (s *State) clone() *State {
	n := *s
	n.Context = maps.Clone(s.Context)
	n.Machine.Attempts = maps.Clone(s.Machine.Attempts)
	n.Machine.Applied = slices.Clone(s.Machine.Applied)
	return &n
}

// clock truncates a time to milliseconds, which every store represents exactly.
func clock(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func checkID(name, id string) error {
	if id == "" || len(id) > maxID || !plainWord(id) {
		return refuse(CodeParameter, "%s: want 1 to %d bytes of text", name, maxID)
	}
	return nil
}

func checkReason(reason string) error {
	if len(reason) > maxDetail || !utf8.ValidString(reason) || strings.ContainsRune(reason, 0) {
		return refuse(CodeParameter, "reason: want at most %d bytes of text", maxDetail)
	}
	return nil
}

// plainWord reports whether s is text without control characters, which is safe in keys and
// logs.
func plainWord(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// validText removes invalid UTF-8 and zero bytes.
func validText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}
