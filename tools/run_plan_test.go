package tools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/toolbox/plancheck"
	"cairn/tools/gateway"
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
		{`{"plan":[{"tool":"publish_note","arguments":{"pth":"x"}}]}`, `has no input \"pth\"`},
		{`{"plan":[{"tool":"publish_note"}]}`, `requires path`},
		{`{"plan":[{"tool":"publish_note","arguments":{"path":"$z"}}]}`, `which the plan lacks`},
		{`{"plan":[{"tool":"read_note","arguments":{"path":"x"}}],"max_tokens":100}`, `"rest":{"id":`},
		{`{"plan":[{"tool":"delete_note","arguments":{"path":"x"}}]}`, `this client cannot ask`},
		{`{"plan":7}`, `want an array of calls`},
	} {
		s.send(request(i+1, "tools/call", `{"name":"more_tools","arguments":{"action":"run_plan","arguments":`+c.args+`}}`))
		if line := s.receive(); !strings.Contains(strings.ReplaceAll(line, `\"`, `"`), strings.ReplaceAll(c.want, `\"`, `"`)) {
			t.Errorf("run_plan(%s) is answered with %s, want %s in it", c.args, line, c.want)
		}
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
	for _, agree := range []bool{false, true} {
		var questions []string
		ran, err := p.Run(t.Context(), plan, RunOptions{}, gateway.Peer{Confirm: func(_ context.Context, question string) (bool, error) {
			questions = append(questions, question)
			return agree, nil
		}})
		if len(questions) != 1 || questions[0] != `Run a plan that calls notes:delete_note with {"path":"is ${c0.key}"}; notes:delete_note with {"path":"y"}?` {
			t.Errorf("questions %q", questions)
		}
		if agree && (err != nil || ran.Steps[1].Output != "deleted is sk-***" || ran.Steps[2].Output != "deleted y") || !agree && err == nil {
			t.Errorf("%+v, %v after the answer %v", ran, err, agree)
		}
	}
	if _, err := p.Run(t.Context(), plan, RunOptions{}, gateway.Peer{}); err == nil {
		t.Error("the plan ran without the consent of the user")
	}
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
	if none := call("tasks/get", `{"taskId":"x"}`).Result; none.Status != "" {
		t.Errorf("an unknown task: %+v", none)
	}
	s.close()
}
