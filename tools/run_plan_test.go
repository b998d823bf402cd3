package tools

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/toolbox/plancheck"
	"cairn/internal/toolbox/planrun"
	"cairn/tools/gateway"
	"cairn/tools/mcptask"
)

const publish = `{"intent":"publish a note","calls":[{"id":"a","tool":"create_note","arguments":{"path":"plan.md"}},` +
	`{"id":"b","tool":"publish_note","arguments":{"path":"$a.note","text":"with ${a.key}"}}],"edges":[]}`

func TestRunPlan(t *testing.T) {
	p := openProxy(t)
	recorder := Record(p.Box, nil)
	s := startSession(t, New((&fake{}).folder(), &Options{Groups: []Group{Auto}, Toolbox: p.Box, Proxy: p, Recorder: recorder}))
	initialize(s, `{}`)
	for i, c := range []struct{ args, want string }{
		{`{"plan":` + publish + `,"dry_run":true}`, `"state":"pending","layers":[["a"],["b"]],"steps":[{"id":"a","tool":"notes:create_note","state":"pending","permission":"allow"}`},
		{`{"plan":` + publish + `}`, `"output":"published note-4711"`},
		{`{"plan":[{"id":"n","tool":"number_note","arguments":{"path":"x"}},{"tool":"publish_note","arguments":{"path":"${n.number}"}}]}`, `"output":"published 9007199254740993"`},
		{`{"plan":[{"tool":"publish_note","arguments":{"pth":"x"}}]}`, `has no input \"pth\"`},
		{`{"plan":[{"tool":"publish_note"}]}`, `requires path`},
		{`{"plan":[{"tool":"publish_note","arguments":{"path":"$z"}}]}`, `which the plan lacks`},
		{`{"plan":[{"tool":"read_note","arguments":{"path":"x"}}],"max_tokens":100}`, `"rest":{"id":`},
		{`{"plan":[{"tool":"delete_note","arguments":{"path":"x"}}]}`, `this client cannot ask`},
		{`{"plan":7}`, `want an array of calls`},
		{`{"plan":"[{\"tool\":\"publish_note\",\"arguments\":{\"path\":\"$z\"}}]"}`, `which the plan lacks`},
	} {
		s.send(request(i+1, "tools/call", `{"name":"more_tools","arguments":{"action":"run_plan","arguments":`+c.args+`}}`))
		if line := s.receive(); !strings.Contains(strings.ReplaceAll(line, `\"`, `"`), strings.ReplaceAll(c.want, `\"`, `"`)) {
			t.Errorf("run_plan(%s) is answered with %s, want %s in it", c.args, line, c.want)
		}
	}
	s.send(request(99, "verify_plan", `{"plan":["publish_note"],"intent":"`+strings.Repeat("x", 9000)+`"}`))
	if line := s.receive(); !strings.Contains(line, `"code":-32602,"message":"Invalid params: intent: 9000 bytes, want at most 8192"`) {
		t.Errorf("a long intent: %s", line)
	}
	s.close()
	recorder.Close()
	wantLearnt(t, p.Box, "notes:create_note", "notes:publish_note")
}

// TestRunPlanAsks: the user of a client confirms the destructive calls of a plan once, and
// secrets do not reach another tool.
func TestRunPlanAsks(t *testing.T) {
	p := openProxy(t)
	plan, err := plancheck.ReadPlan(json.RawMessage(`[{"tool":"create_note","arguments":{"path":"a"}},{"tool":"delete_note","arguments":{"path":"is ${c0.key}"}},{"tool":"delete_note","arguments":{"path":"y"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, agree := range []int{0, 1, 2} { // questions that the user agrees to
		var questions []string
		ran, err := p.Run(t.Context(), plan, RunOptions{}, gateway.Peer{Confirm: func(_ context.Context, question string) (bool, error) {
			questions = append(questions, question)
			return len(questions) <= agree, nil
		}})
		// The text of the first is known after the first call.
		want := []string{`Run a plan that calls notes:delete_note with {"path":"y"}?`, `Call notes:delete_note with {"path":"is sk-***"}?`}[:min(2, agree+1)]
		if !slices.Equal(questions, want) {
			t.Errorf("questions %q, want %q", questions, want)
		}
		if agree == 2 && (err != nil || ran.Steps[1].Output != "deleted is sk-***" || ran.Steps[2].Output != "deleted y") || agree == 0 && err == nil || agree == 1 && (err != nil || ran.Steps[2].State != planrun.Skipped) {
			t.Errorf("%+v, %v after %d answers", ran, err, agree)
		}
	}
	if _, err := p.Run(t.Context(), plan, RunOptions{}, gateway.Peer{}); err == nil {
		t.Error("the plan ran without the consent of the user")
	}
}

// TestConfirmed: since revision 2026-07-28 each question repeats the call, with the questions
// before it in its state.
func TestConfirmed(t *testing.T) {
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}
	answer := func(action, state string) {
		req.Params.InputResponses, req.Params.RequestState = mcp.InputResponseMap{confirmKey: &mcp.ElicitResult{Action: action}}, state
	}
	state := ""
	for _, question := range []string{"one?", "two?", "three?"} {
		yes, err := confirmed(req, question)
		f, ok := err.(*Failure)
		if yes || !ok || f.input == nil || !strings.HasSuffix(f.asked, question) {
			t.Fatalf("%s: %v, %v, want a request", question, yes, err)
		}
		state = f.asked
		answer("decline", state)
		if yes, err := confirmed(req, question); yes || err != nil {
			t.Errorf("%s declined: %v, %v", question, yes, err)
		}
		answer("accept", state)
		for _, before := range strings.Split(state, "\x00") {
			if yes, err := confirmed(req, before); !yes || err != nil {
				t.Errorf("%s accepted: %v, %v", before, yes, err)
			}
		}
	}
}

// TestRunPlanAsksAgain: a client is asked during the call, which calls no step twice.
func TestRunPlanAsksAgain(t *testing.T) {
	p := openProxy(t)
	s := startSession(t, New((&fake{}).folder(), &Options{Groups: []Group{Auto}, Toolbox: p.Box, Proxy: p}))
	initialize(s, `{"elicitation":{}}`)
	s.send(request(1, "tools/call", `{"name":"run_plan","arguments":{"plan":[{"tool":"create_note","arguments":{"path":"a"}},{"tool":"delete_note","arguments":{"path":"$c0.note"}},{"tool":"delete_note","arguments":{"path":"y"}}]}}`))
	for _, want := range []string{`{\"path\":\"y\"}`, `{\"path\":\"note-4711\"}`} {
		line := s.receive()
		var asked struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal([]byte(line), &asked); err != nil || asked.Method != "elicitation/create" || !strings.Contains(line, want) {
			t.Fatalf("%s, %v, want a question with %s", line, err, want)
		}
		s.send(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"action":"accept","content":{}}}`)
	}
	if line := s.receive(); !strings.Contains(line, "deleted note-4711") || !strings.Contains(line, "deleted y") || strings.Contains(line, `"attempts":2`) {
		t.Errorf("%s", line)
	}
	s.close()
}

// TestRunPlanTask: for a client with the Tasks extension a plan runs as a task.
func TestRunPlanTask(t *testing.T) {
	p := openProxy(t)
	s := startSession(t, New((&fake{}).folder(), &Options{Groups: []Group{Auto}, Toolbox: p.Box, Proxy: p}))
	initialize(s, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
	id := 0
	call := func(method, params string) (r struct {
		Result struct {
			TaskID, Status, ResultType string
			Result                     *mcp.CallToolResult
		}
	}) {
		t.Helper()
		id++
		s.send(request(id, method, params))
		line := s.receive()
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return r
	}
	created := call("tools/call", `{"name":"run_plan","arguments":{"plan":`+publish+`}}`).Result
	if created.ResultType != "task" || created.TaskID == "" {
		t.Fatalf("%+v, want a task", created)
	}
	got := created
	for got.Status == "working" {
		got = call("tasks/get", `{"taskId":"`+created.TaskID+`"}`).Result
	}
	if got.Status != "completed" || !strings.Contains(got.Result.Content[0].(*mcp.TextContent).Text, `"output":"published note-4711"`) {
		t.Errorf("%+v %+v", got, got.Result)
	}
	call("tasks/cancel", `{"taskId":"`+created.TaskID+`"}`)
	if again := call("tasks/get", `{"taskId":"`+created.TaskID+`"}`).Result; again.Status != "completed" {
		t.Errorf("cancelled after its end: %+v", again)
	}
	// After a restart the result is still there, and a plan that had not ended has failed.
	running := mcptask.Task{ID: rand.Text(), Status: mcptask.Working}
	if err := planrun.KeepTask(p.Records, running.ID, running); err != nil {
		t.Fatal(err)
	}
	s.close()
	p = &Proxy{Box: p.Box, Gateway: p.Gateway, Masks: p.Masks, Count: p.Count, Records: p.Records}
	s = startSession(t, New((&fake{}).folder(), &Options{Groups: []Group{Auto}, Toolbox: p.Box, Proxy: p}))
	initialize(s, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
	if again := call("tasks/get", `{"taskId":"`+created.TaskID+`"}`).Result; again.Status != "completed" || !strings.Contains(again.Result.Content[0].(*mcp.TextContent).Text, "note-4711") {
		t.Errorf("after a restart: %+v", again)
	}
	if lost := call("tasks/get", `{"taskId":"`+running.ID+`"}`).Result; lost.Status != "failed" {
		t.Errorf("a plan that had not ended: %+v", lost)
	}
	if none := call("tasks/get", `{"taskId":"x"}`).Result; none.Status != "" {
		t.Errorf("an unknown task: %+v", none)
	}
	s.close()
}
