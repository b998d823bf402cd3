package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// polled is what a client of the Tasks extension reads of an answer.
type polled struct {
	ResultType    string
	TaskID        string
	Status        string
	TTLMs         *int64
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	}
	Result struct {
		IsError bool
		Content []struct{ Text string }
	}
	code int
}

// protocolTasks calls a server over HTTP as a client with some capabilities.
type protocolTasks struct {
	t            *testing.T
	url, caller  string
	capabilities string
	http         int // the status of the last answer
}

func (c *protocolTasks) call(method, name, params string) polled {
	c.t.Helper()
	meta := strings.Replace(meta2026, `Capabilities":{}`, `Capabilities":`+c.capabilities, 1)
	status, text, _ := post(c.t, c.url, request(1, method, `{`+params+`,`+meta+`}`),
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name, "X-Caller", c.caller)
	var answer struct {
		Result polled
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		c.t.Fatalf("%s: %d %s", method, status, text)
	}
	c.http = status
	if answer.Error != nil {
		answer.Result.code = answer.Error.Code
	}
	return answer.Result
}

// create asks who the members are, and returns the answer once it is the client's turn.
func (c *protocolTasks) create(id string) polled {
	c.t.Helper()
	return c.call("tools/call", stageCreateName, fmt.Sprintf(`"name":%q,"arguments":{"task_id":%q,"query":"Who are the SRE team members?"}`, stageCreateName, id))
}

// get returns a task once it is the client's turn or the task has ended.
func (c *protocolTasks) get(id string) polled {
	c.t.Helper()
	c.call("tools/call", "task_dag_get", fmt.Sprintf(`"name":"task_dag_get","arguments":{"task_id":%q,"wait_seconds":60}`, id))
	return c.call("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
}

// update answers the only question of a task.
func (c *protocolTasks) update(p polled, response string) polled {
	c.t.Helper()
	for key := range p.InputRequests {
		return c.call("tasks/update", p.TaskID, fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:%s}`, p.TaskID, key, response))
	}
	c.t.Fatalf("the task %+v asks nothing", p)
	return polled{}
}

func message(text string) string {
	body, _ := json.Marshal(map[string]any{"role": "assistant", "model": "m", "content": map[string]string{"type": "text", "text": text}}) // strings
	return string(body)
}

// sampler declares the extension and a model, and former a user who fills in forms.
const (
	sampler = `{"sampling":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	former  = `{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

func newProtocolTasks(t *testing.T, capabilities string) *protocolTasks {
	_, server := startHTTP(t, (&fake{}).folder(), &Options{Groups: []Group{Stages}, Stages: openStages(t)}, nil)
	return &protocolTasks{t: t, url: server.URL, caller: "writer", capabilities: capabilities}
}

// TestQuestionAskedOfModel: the client's model answers a question task that runs as a task of
// the protocol.
func TestQuestionAskedOfModel(t *testing.T) {
	c := newProtocolTasks(t, sampler)
	p := c.create("q1")
	if p.ResultType != "task" || p.TaskID != "q1" || p.TTLMs == nil || len(p.InputRequests) > 0 {
		t.Fatalf("created: %+v, want a task without the question", p)
	}
	p = c.get("q1")
	for _, r := range p.InputRequests {
		if r.Method != "sampling/createMessage" || !strings.Contains(string(r.Params), "Ann and Bob are the members") {
			t.Errorf("asked: %s %s, want the passages", r.Method, r.Params)
		}
	}
	if ack := c.update(p, message("Ann and Bob are the members. [2]")); ack.code != -32602 {
		t.Errorf("a citation of no passage: %+v, want -32602", ack)
	}
	if ack := c.call("tasks/update", "q1", `"taskId":"q1","inputResponses":{"other":{"ignored":true}}`); ack.ResultType != "complete" || ack.code != 0 {
		t.Errorf("an answer to another question: %+v, want an acknowledgement", ack)
	}
	if ack := c.update(p, message("```json\n"+`{"answer":"Ann and Bob are the members.","citations":["doc:docs/team.md"]}`+"\n```")); ack.ResultType != "complete" || ack.TaskID != "" {
		t.Errorf("an answer: %+v, want an acknowledgement", ack)
	}
	old, p := p, c.get("q1")
	for key, r := range p.InputRequests {
		if _, ok := old.InputRequests[key]; ok || !strings.Contains(string(r.Params), "An earlier answer was refused") {
			t.Errorf("asked again: %s %s, want another key and the reason", key, r.Params)
		}
	}
	c.update(p, message("Ann and Bob are the members. [1]"))
	if p = c.get("q1"); p.Status != "completed" || p.Result.IsError || !strings.Contains(p.Result.Content[0].Text, `"answer":"Ann and Bob are the members. [1]"`) {
		t.Errorf("answered: %+v, want the response", p)
	}
	if ack := c.call("tasks/cancel", "q1", `"taskId":"q1"`); ack.ResultType != "complete" || c.get("q1").Status != "completed" {
		t.Errorf("cancelling a completed task: %+v, want no effect", ack)
	}
}

// TestQuestionAskedOfUser: a user answers with a form, or declines.
func TestQuestionAskedOfUser(t *testing.T) {
	c := newProtocolTasks(t, former)
	c.create("q1")
	p := c.get("q1")
	for _, r := range p.InputRequests {
		if r.Method != "elicitation/create" || !strings.Contains(string(r.Params), `[1] Auth`) {
			t.Errorf("asked: %s %s, want the passages with numbers", r.Method, r.Params)
		}
	}
	c.update(p, `{"action":"accept","content":{"not_found":true}}`)
	if p = c.get("q1"); p.Status != "completed" || !strings.Contains(p.Result.Content[0].Text, `"not_found":true`) {
		t.Errorf("answered: %+v, want that nothing was found", p)
	}
	c.create("q2")
	for range 2 { // a failed stage runs again once
		p = c.get("q2")
		c.update(p, `{"action":"decline"}`)
	}
	if p = c.get("q2"); p.Status != "completed" || !p.Result.IsError {
		t.Errorf("declined: %+v, want an error of the tool", p)
	}
	c.create("q3")
	c.call("tasks/cancel", "q3", `"taskId":"q3"`)
	if p = c.get("q3"); p.Status != "cancelled" {
		t.Errorf("cancelled: %+v", p)
	}
}

// TestQuestionRefused: what a client may not do, and what it gets instead.
func TestQuestionRefused(t *testing.T) {
	c := newProtocolTasks(t, sampler)
	c.create("q1")
	if p := c.call("tasks/get", "q2", `"taskId":"q1"`); p.code != -32020 || c.http != 400 {
		t.Errorf("another task in the header: %d %+v, want 400 and -32020", c.http, p)
	}
	if p := c.call("tasks/get", "none", `"taskId":"none"`); p.code != -32602 || c.http != 400 {
		t.Errorf("an unknown task: %d %+v, want 400 and -32602", c.http, p)
	}
	c.caller = "reader"
	if p := c.call("tasks/cancel", "q1", `"taskId":"q1"`); p.code != -32602 || c.get("q1").Status != "input_required" {
		t.Errorf("cancelled by a reader: %+v, want a refusal", p)
	}
	c.caller = "writer"
	c.capabilities = `{"sampling":{}}`
	if p := c.call("tasks/get", "q1", `"taskId":"q1"`); p.code != -32021 {
		t.Errorf("without the extension: %+v, want -32021", p)
	}
	for i, capabilities := range []string{`{"sampling":{}}`, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`} {
		c.capabilities = capabilities
		if p := c.create(fmt.Sprint("q", i+3)); p.ResultType != "complete" || p.TaskID != "" {
			t.Errorf("with %s: %+v, want the brief", capabilities, p)
		}
	}
}
