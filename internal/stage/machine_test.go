package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func fresh(t *testing.T, template string, rules Rules) *State {
	t.Helper()
	s, fx, err := New(Request{ID: "abc123", UserID: "user-001", Query: "Who are the SRE team members?", Template: template, Rules: rules, At: epoch})
	if err != nil {
		t.Fatal(err)
	}
	if fx.Job == nil || *fx.Job != (Job{"abc123", IntentAnalysis, 1}) || fx.Entry.Action != Created {
		t.Fatalf("creation has the effects %+v", fx)
	}
	return s
}

// word converts a word of the tables below to an event, one second after the last.
func word(w string, s *State, n int) Event {
	e := Event{Kind: Done, Stage: s.Current, At: epoch.Add(time.Duration(n) * time.Second)}
	kind, arg, _ := strings.Cut(w, ":")
	switch kind {
	case "claim":
		e.Kind = Claim
	case "ok": // ok:.69 has a confidence
		conf := .9
		if arg != "" {
			fmt.Sscan(arg, &conf)
		}
		e.Result.Confidence = &conf
		if e.Stage == ResponsePackaging {
			e.Result.Response = &Response{Answer: "them", Confidence: conf}
		}
	case "web":
		e.Result.NeedsWebSearch = true
	case "blocked":
		e.Result.Confidence, e.Result.Blocked = new(1.0), true
	case "fail":
		e.Kind, e.Reason = Failure, "it broke"
	case "abort":
		e.Kind = Abort
	case "tick":
		e.Kind = Tick
	case "at": // a result of another stage
		e.Stage = Stage(arg)
	case "run":
		fmt.Sscan(arg, &e.Run)
	case "wait": // a tick after that many seconds
		fmt.Sscan(arg, &n)
		e.Kind, e.At = Tick, epoch.Add(time.Duration(n)*time.Second)
	default:
		panic(w)
	}
	return e
}

// step applies a word.
func step(t *testing.T, s *State, w string, n int) *State {
	t.Helper()
	next, _, err := Step(s, word(w, s, n))
	if err != nil {
		t.Fatalf("%s at %s: %v", w, s.Current, err)
	}
	return next
}

// TestGolden checks the examples of the specification and variations of them. The last event
// may be rejected.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name, template, events string
		status                 Status
		current                Stage
		completed              string
		refused                Code
		err                    string
	}{
		{"49 to the end", "", "claim ok ok ok ok ok", Complete, ResponsePackaging, "intent_analysis,embedding_lookup,executor_reasoning,moderation,response_packaging", "", ""},
		{"simple lookup", "simple_lookup", "claim ok ok ok", Complete, ResponsePackaging, "intent_analysis,embedding_lookup,response_packaging", "", ""},
		{"quick answer", "quick_answer", "claim ok ok ok ok", Complete, ResponsePackaging, "intent_analysis,embedding_lookup,executor_reasoning,response_packaging", "", ""},
		{"web before the lookup", "web_enhanced", "claim ok ok", Waiting, EmbeddingLookup, "intent_analysis,web_search", "", ""},
		{"web after the lookup", "complex_research", "claim ok ok ok", Waiting, ExecutorReasoning, "intent_analysis,embedding_lookup,web_search", "", ""},
		{"50 fails once", "", "claim ok fail", Waiting, EmbeddingLookup, "intent_analysis", "", ""},
		{"50 fails once, goes on", "", "claim ok fail ok", Waiting, ExecutorReasoning, "intent_analysis,embedding_lookup", "", ""},
		{"50 fails twice", "", "claim ok fail fail", Failed, EmbeddingLookup, "intent_analysis", "", "Stage 'embedding_lookup' failed: it broke"},
		{"each stage has its retry", "", "claim fail ok fail ok fail ok", Waiting, Moderation, "intent_analysis,embedding_lookup,executor_reasoning", "", ""},
		{"51 moderation at .69", "", "claim ok ok ok ok:.69", Waiting, ExecutorReasoning, "intent_analysis,embedding_lookup", "", ""},
		{"51 moderation at .70", "", "claim ok ok ok ok:.70", Waiting, ResponsePackaging, "intent_analysis,embedding_lookup,executor_reasoning,moderation", "", ""},
		{"moderation blocks whatever the confidence", "", "claim ok ok ok blocked", Waiting, ExecutorReasoning, "intent_analysis,embedding_lookup", "", ""},
		{"moderation sends back twice", "", "claim ok ok ok ok:.1 ok ok:.1 ok ok", Waiting, ResponsePackaging, "intent_analysis,embedding_lookup,executor_reasoning,moderation", "", ""},
		{"moderation gives up", "", "claim ok ok ok ok:.1 ok ok:.1 ok ok:.1", Failed, Moderation, "intent_analysis,embedding_lookup,executor_reasoning", "", "moderation threshold not met"},
		{"sent back is not a failed attempt", "", "claim ok ok fail ok ok:.1 fail", Waiting, ExecutorReasoning, "intent_analysis,embedding_lookup", "", ""},
		{"52 the executor wants the web", "", "claim ok ok web", Waiting, WebSearch, "intent_analysis,embedding_lookup", "", ""},
		{"52 once", "", "claim ok ok web ok web", Waiting, Moderation, "intent_analysis,embedding_lookup,web_search,executor_reasoning", "", ""},
		{"52 not when the plan has it", "complex_research", "claim ok ok ok web", Waiting, Moderation, "intent_analysis,embedding_lookup,web_search,executor_reasoning", "", ""},
		{"no client takes the web search", "", "claim ok ok web wait:60", Waiting, ExecutorReasoning, "intent_analysis,embedding_lookup,web_search", "", ""},
		{"the web search fails twice", "", "claim ok ok web fail fail", Waiting, ExecutorReasoning, "intent_analysis,embedding_lookup,web_search", "", ""},
		{"53 abort, then a late result", "", "claim abort ok", Aborted, IntentAnalysis, "", CodeTransition, ""},
		{"abort while waiting", "", "abort", Aborted, IntentAnalysis, "", "", ""},
		{"abort twice", "", "abort abort", Aborted, IntentAnalysis, "", CodeTransition, ""},
		{"abort when complete", "simple_lookup", "claim ok ok ok abort", Complete, ResponsePackaging, "intent_analysis,embedding_lookup,response_packaging", CodeTransition, ""},
		{"a result before the claim", "", "ok", Waiting, IntentAnalysis, "", CodeTransition, ""},
		{"claimed twice", "", "claim claim", InProgress, IntentAnalysis, "", CodeTransition, ""},
		{"the wrong stage", "", "claim at:moderation", InProgress, IntentAnalysis, "", CodeWrongStage, ""},
		{"no stage at all", "", "claim at:nonsense", InProgress, IntentAnalysis, "", CodeParameter, ""},
		{"a run that is over", "", "claim fail run:1", InProgress, IntentAnalysis, "", CodeLate, ""},
		{"a run that is to come", "", "claim run:2", InProgress, IntentAnalysis, "", CodeLate, ""},
		{"nothing is due", "", "claim tick", InProgress, IntentAnalysis, "", CodeNotDue, ""},
		{"a stage times out", "", "claim wait:301", Waiting, IntentAnalysis, "", "", ""},
		{"a second before", "", "claim wait:300", InProgress, IntentAnalysis, "", CodeNotDue, ""},
		{"a stage times out twice, which is the task's time as well", "", "claim wait:301 wait:600", Failed, IntentAnalysis, "", "", "the task timed out after 10m0s at intent_analysis"},
		{"nobody takes it", "", "wait:600", Failed, IntentAnalysis, "", "", "the task timed out after 10m0s at intent_analysis"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(t, c.template, Rules{})
			words := strings.Fields(c.events)
			for i, w := range words {
				if i > 1 && s.Status == Waiting && w != "claim" && !strings.HasPrefix(w, "wait:") {
					s = step(t, s, "claim", i) // every stage is claimed
				}
				before, _ := json.Marshal(s)
				n, fx, err := Step(s, word(w, s, i+1))
				if after, _ := json.Marshal(s); string(after) != string(before) {
					t.Fatalf("%s changed the state it was given", w)
				}
				if i == len(words)-1 && c.refused != "" {
					if !errors.Is(err, Is(c.refused)) || n != nil || fx != nil {
						t.Errorf("%s: %v, want %s and no state", w, err, c.refused)
					}
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", w, err)
				}
				s = n
			}
			if s.Status != c.status || s.Current != c.current || joinStages(s.Completed) != c.completed {
				t.Errorf("%s at %s after %s, want %s at %s after %s", s.Status, s.Current, joinStages(s.Completed), c.status, c.current, c.completed)
			}
			got := ""
			if s.Error != nil {
				got = *s.Error
			}
			if got != c.err {
				t.Errorf("error %q, want %q", got, c.err)
			}
		})
	}
}

// TestStageTimeout: a stage that times out is a failed attempt of a task that has
// time left.
func TestStageTimeout(t *testing.T) {
	s := fresh(t, "", Rules{StageTimeout: 10 * time.Second})
	for i, w := range []string{"claim", "wait:11", "claim", "wait:22"} {
		s = step(t, s, w, i+1)
	}
	if s.Status != Failed || *s.Error != "Stage 'intent_analysis' failed: timed out after 10s" {
		t.Errorf("after two time-outs the task is %s, %v", s.Status, s.Error)
	}
	// The machine refuses a result after the deadline.
	s = fresh(t, "", Rules{StageTimeout: 10 * time.Second})
	s, _, _ = Step(s, word("claim", s, 1))
	if _, _, err := Step(s, word("ok", s, 11)); !errors.Is(err, Is(CodeLate)) {
		t.Errorf("a result at the time-out: %v, want %s", err, CodeLate)
	}
}

// TestReplay: the machine applies an event once, even after the task has ended.
func TestReplay(t *testing.T) {
	s := fresh(t, "simple_lookup", Rules{})
	for i, w := range strings.Fields("claim ok claim ok claim ok") {
		e := word(w, s, i+1)
		e.ID = fmt.Sprint("event-", i)
		n, _, err := Step(s, e)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Step(n, e); !errors.Is(err, Is(CodeReplayed)) {
			t.Errorf("%s again: %v, want %s", w, err, CodeReplayed)
		}
		s = n
	}
	if s.Status != Complete {
		t.Fatalf("the task is %s", s.Status)
	}
}

// TestDelegated: at a delegated stage the task waits for an answer or a claim.
func TestDelegated(t *testing.T) {
	s := fresh(t, "quick_answer", Rules{Delegated: []Stage{ExecutorReasoning, WebSearch}})
	for i, w := range []string{"claim", "ok", "claim"} {
		s = step(t, s, w, i+1)
	}
	s, fx, err := Step(s, word("ok", s, 3))
	if err != nil || s.Status != Waiting || s.Current != ExecutorReasoning || fx.Job != nil {
		t.Fatalf("after the lookup the task is %s at %s with job %v, %v; want it to wait", s.Status, s.Current, fx.Job, err)
	}
	answered, fx, err := Step(s, word("ok", s, 4))
	if err != nil || answered.Current != ResponsePackaging || answered.Status != Waiting || fx.Job == nil {
		t.Errorf("answered: %v at %v, %v", answered.Status, answered.Current, err)
	}
	claim := word("claim", s, 4)
	claim.Worker = "ann"
	if s, _, err = Step(s, claim); err != nil || s.Status != InProgress {
		t.Fatalf("claimed: %s, %v", s.Status, err)
	}
	other := word("ok", s, 5)
	other.Worker = "bob"
	if _, _, err := Step(s, other); !errors.Is(err, Is(CodeClaimed)) {
		t.Errorf("somebody else answers: %v, want %s", err, CodeClaimed)
	}
	other.Worker = "ann"
	if s, _, err = Step(s, other); err != nil || s.Current != ResponsePackaging {
		t.Errorf("ann answers: %v", err)
	}
}

// TestExample runs the task of the specification and compares the object at
// each step, field for field.
func TestExample(t *testing.T) {
	s, _, err := New(Request{ID: "abc123", UserID: "user-001", Query: "Who are the SRE team members?", At: epoch})
	if err != nil {
		t.Fatal(err)
	}
	const created = `{"task_id":"abc123","user_id":"user-001","query":"Who are the SRE team members?",
"plan":["intent_analysis","embedding_lookup","executor_reasoning","moderation","response_packaging"],
"current_stage":"intent_analysis","completed_stages":[],"status":"waiting","context":{},"vector_hits":[],"response":null,"error":null,
"started_at":"2026-01-15T12:00:00Z","updated_at":"2026-01-15T12:00:00Z",
"template":"standard_query","template_plan":["intent_analysis","embedding_lookup","executor_reasoning","moderation","response_packaging"],"progress_percentage":20}`
	sameJSON(t, "created", s.Task, created)
	steps := []struct {
		e        Event
		change   string // what differs from the step before
		progress int
	}{
		{Event{Kind: Claim}, `"status":"in_progress"`, 20},
		{Event{Kind: Done, Stage: IntentAnalysis, Result: Result{Output: json.RawMessage(`{"category":"people"}`)}},
			`"status":"waiting","current_stage":"embedding_lookup","completed_stages":["intent_analysis"],"context":{"intent_analysis":{"category":"people"}}`, 40},
		{Event{Kind: Done, Stage: EmbeddingLookup, Result: Result{Hits: []string{"doc:1", "doc:2"}}},
			`"current_stage":"executor_reasoning","completed_stages":["intent_analysis","embedding_lookup"],"vector_hits":["doc:1","doc:2"]`, 60},
		{Event{Kind: Done, Stage: ExecutorReasoning, Result: Result{Output: json.RawMessage(`{"answer":"Ann and Bob"}`), Confidence: new(.8)}},
			`"current_stage":"moderation","completed_stages":["intent_analysis","embedding_lookup","executor_reasoning"],"context":{"intent_analysis":{"category":"people"},"executor_reasoning":{"answer":"Ann and Bob"}}`, 80},
		{Event{Kind: Done, Stage: Moderation, Result: Result{Confidence: new(1.0)}},
			`"current_stage":"response_packaging","completed_stages":["intent_analysis","embedding_lookup","executor_reasoning","moderation"]`, 100},
		{Event{Kind: Done, Stage: ResponsePackaging, Result: Result{Response: &Response{Answer: "Ann and Bob", Sources: []Source{{ID: "doc:1"}}, Confidence: .8}}},
			`"status":"complete","completed_stages":["intent_analysis","embedding_lookup","executor_reasoning","moderation","response_packaging"],"response":{"answer":"Ann and Bob","sources":[{"id":"doc:1"}],"confidence":0.8,"how":null}`, 100},
	}
	want := map[string]any{}
	if err := json.Unmarshal([]byte(created), &want); err != nil {
		t.Fatal(err)
	}
	for i, step := range steps {
		step.e.At = epoch.Add(time.Duration(i+1) * 1500 * time.Millisecond)
		if i > 1 { // every stage is claimed
			if s, _, err = Step(s, Event{Kind: Claim, At: step.e.At}); err != nil {
				t.Fatal(err)
			}
		}
		if s, _, err = Step(s, step.e); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte("{"+step.change+"}"), &want); err != nil {
			t.Fatal(err)
		}
		want["updated_at"] = step.e.At.Format(time.RFC3339Nano)
		want["progress_percentage"] = step.progress
		text, _ := json.Marshal(want)
		sameJSON(t, fmt.Sprint("step ", i+1), s.Task, string(text))
	}
}

func sameJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := errors.Join(json.Unmarshal(text, &g), json.Unmarshal([]byte(want), &w)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestBadRequests: New refuses invalid requests.
func TestBadRequests(t *testing.T) {
	good := Request{ID: "a", UserID: "u", Query: "q"}
	for name, c := range map[string]struct {
		change func(*Request)
		code   Code
	}{
		"template":        {func(r *Request) { r.Template = "nope" }, CodeTemplate},
		"empty query":     {func(r *Request) { r.Query = " \n" }, CodeParameter},
		"1 MB query":      {func(r *Request) { r.Query = strings.Repeat("a", 1<<20) }, CodeParameter},
		"query of bytes":  {func(r *Request) { r.Query = "a\xff" }, CodeParameter},
		"NUL":             {func(r *Request) { r.Query = "a\x00b" }, CodeParameter},
		"no user":         {func(r *Request) { r.UserID = "" }, CodeParameter},
		"user with a tab": {func(r *Request) { r.UserID = "a\tb" }, CodeParameter},
		"long user":       {func(r *Request) { r.UserID = strings.Repeat("u", 201) }, CodeParameter},
		"no id":           {func(r *Request) { r.ID = "" }, CodeParameter},
		"both":            {func(r *Request) { r.Template = "quick_answer"; r.Plan = Templates[0].Plan }, CodeParameter},
		"empty plan":      {func(r *Request) { r.Plan = []Stage{} }, CodePlan},
		"wrong start":     {func(r *Request) { r.Plan = []Stage{EmbeddingLookup, ResponsePackaging} }, CodePlan},
		"wrong end":       {func(r *Request) { r.Plan = []Stage{IntentAnalysis, EmbeddingLookup} }, CodePlan},
		"unknown stage":   {func(r *Request) { r.Plan = []Stage{IntentAnalysis, "dream", ResponsePackaging} }, CodePlan},
		"stage twice":     {func(r *Request) { r.Plan = []Stage{IntentAnalysis, IntentAnalysis, ResponsePackaging} }, CodePlan},
		"nothing to moderate": {func(r *Request) {
			r.Plan = []Stage{IntentAnalysis, Moderation, ExecutorReasoning, ResponsePackaging}
		}, CodePlan},
	} {
		r := good
		c.change(&r)
		if s, _, err := New(r); !errors.Is(err, Is(c.code)) || s != nil || len(err.Error()) > 400 {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	r := good
	r.Plan = []Stage{IntentAnalysis, ResponsePackaging}
	if s, _, err := New(r); err != nil || s.Template != custom {
		t.Errorf("the smallest plan: %v", err)
	}
}

// TestBadResults: invalid results change nothing.
func TestBadResults(t *testing.T) {
	s := fresh(t, "", Rules{})
	s, _, _ = Step(s, word("claim", s, 1))
	nan := math.NaN()
	for name, r := range map[string]Result{
		"NaN": {Confidence: &nan}, "above 1": {Confidence: new(1.01)}, "below 0": {Confidence: new(-.1)},
		"web search at the wrong stage": {NeedsWebSearch: true}, "too many hits": {Hits: make([]string, 51)},
		"output that is no object": {Output: json.RawMessage(`[1]`)}, "broken output": {Output: json.RawMessage(`{`)},
		"output that is not text": {Output: json.RawMessage("{\"a\":\"\xff\"}")},
		"large output":            {Output: json.RawMessage(`{"a":"` + strings.Repeat("a", maxOutput) + `"}`)},
	} {
		e := word("ok", s, 2)
		e.Result = r
		if n, _, err := Step(s, e); !errors.Is(err, Is(CodeParameter)) || n != nil {
			t.Errorf("%s: %v, want %s", name, err, CodeParameter)
		}
	}
	// Each stage has its own requirements.
	for i, w := range []string{"ok", "claim", "ok", "claim", "ok", "claim"} {
		s = step(t, s, w, i+2)
	}
	if _, _, err := Step(s, Event{Kind: Done, Stage: Moderation, At: epoch}); !errors.Is(err, Is(CodeParameter)) {
		t.Errorf("moderation without confidence: %v", err)
	}
	s = step(t, step(t, s, "ok", 9), "claim", 9)
	if _, _, err := Step(s, Event{Kind: Done, Stage: ResponsePackaging, At: epoch}); !errors.Is(err, Is(CodeParameter)) {
		t.Errorf("packaging without a response: %v", err)
	}
}

// TestProperties applies random events and checks the invariants.
func TestProperties(t *testing.T) {
	words := strings.Fields("claim claim ok ok ok ok ok ok:.5 ok:.7 web blocked fail fail tick at:moderation run:1 run:3 wait:400 abort")
	ends := map[Status]int{}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var rules Rules
		if r.IntN(3) == 0 {
			rules.Delegated = []Stage{ExecutorReasoning, WebSearch}
		}
		s := fresh(t, Templates[r.IntN(len(Templates))].Name, rules)
		log := []Entry{{Version: 1, Action: Created, Status: Waiting, At: epoch, Stage: s.Current}}
		states := []*State{s}
		for n := 1; n < 80; n++ {
			w := words[r.IntN(len(words))]
			if w == "abort" && r.IntN(6) > 0 {
				continue
			}
			e := word(w, s, n*5)
			e.ID = fmt.Sprint("e", r.IntN(200))
			next, fx, err := Step(s, e)
			if err != nil {
				if _, ok := errors.AsType[*Error](err); !ok || next != nil || fx != nil {
					t.Fatalf("seed %d: %s is refused with %v and a state", seed, w, err)
				}
				continue
			}
			switch {
			case s.Status.Final():
				t.Fatalf("seed %d: %s leads out of %s", seed, w, s.Status)
			case next.Machine.Version != s.Machine.Version+1 || fx.Entry.Version != next.Machine.Version:
				t.Fatalf("seed %d: version %d after %d", seed, next.Machine.Version, s.Machine.Version)
			case next.UpdatedAt.Before(s.UpdatedAt):
				t.Fatalf("seed %d: time goes back", seed)
			case next.Machine.Run < s.Machine.Run:
				t.Fatalf("seed %d: runs go back", seed)
			case !next.Status.Final() && next.Deadline().After(next.StartedAt.Add(DefaultTaskTimeout)):
				t.Fatalf("seed %d: deadline %v", seed, next.Deadline())
			}
			check(t, seed, next, fx)
			s, log, states = next, append(log, fx.Entry), append(states, next)
		}
		for i, got := range replay(s, log) {
			want := states[i]
			if got.Machine.Version != want.Machine.Version || got.Status != want.Status || got.Current != want.Current || got.Progress != want.Progress ||
				!slices.Equal(got.Plan, want.Plan) || !slices.Equal(got.Completed, want.Completed) || !got.UpdatedAt.Equal(want.UpdatedAt) {
				t.Fatalf("seed %d: version %d is replayed as %+v, want %+v", seed, want.Machine.Version, got.Task, want.Task)
			}
		}
		// The task timeout ends it in any case.
		if !s.Status.Final() {
			var err error
			if s, _, err = Step(s, Event{Kind: Tick, At: epoch.Add(DefaultTaskTimeout)}); err != nil || s.Status != Failed {
				t.Fatalf("seed %d: time does not end it: %v", seed, err)
			}
		}
		if len(s.Machine.Applied) > 100 || len(log) > 100 {
			t.Errorf("seed %d: %d events", seed, len(log))
		}
		ends[s.Status]++
	}
	for _, status := range []Status{Complete, Failed, Aborted} {
		if ends[status] < 30 {
			t.Errorf("%d of 1000 tasks end %s: the test does not reach it", ends[status], status)
		}
	}
}

// check checks the invariants of one state.
func check(t *testing.T, seed uint64, s *State, fx *Effects) {
	t.Helper()
	fail := func(what string) {
		text, _ := json.Marshal(s)
		t.Fatalf("seed %d: %s: %s", seed, what, text)
	}
	if !slices.Contains(s.Plan, s.Current) {
		fail("the current stage is not in the plan")
	}
	for i, c := range s.Completed {
		if s.Plan[i] != c {
			fail("the completed stages do not begin the plan")
		}
	}
	if s.Status == Complete != (len(s.Completed) == len(s.Plan)) || s.Status == Complete != (s.Response != nil) {
		fail("complete without all stages or a response")
	}
	if s.Status == Failed != (s.Error != nil) {
		fail("failed without an error, or the other way round")
	}
	if len(s.Plan) > len(s.TemplatePlan)+1 || s.Plan[0] != IntentAnalysis || s.Plan[len(s.Plan)-1] != ResponsePackaging {
		fail("a plan that cannot be")
	}
	if s.Machine.Reinvoked > maxReinvocations {
		fail("sent back too often")
	}
	for _, n := range s.Machine.Attempts {
		if n > maxAttempts {
			fail("too many attempts")
		}
	}
	if s.Progress < 1 || s.Progress > 100 {
		fail("progress")
	}
	if j := fx.Job; j != nil && (j.Stage != s.Current || j.Run != s.Machine.Run || s.Status.Final()) {
		fail(fmt.Sprintf("the job %v", *j))
	}
	if fx.Entry.Status != s.Status {
		fail("the effects do not say what happened")
	}
	var back State
	text, err := json.Marshal(s)
	if err != nil || json.Unmarshal(text, &back) != nil {
		fail("JSON does not keep it")
	}
	if again, _ := json.Marshal(back); string(again) != string(text) {
		fail("JSON keeps another: " + string(again))
	}
}
