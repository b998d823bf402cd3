package conformance

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/tools/mcptask"
)

// jobs holds tasks in memory: the suite calls them jobs.
type jobs struct {
	mu  sync.Mutex
	all map[string]*runningJob
}

// runningJob is a task and what it waits for.
type runningJob struct {
	task    mcptask.Task
	cancel  context.CancelFunc
	answers mcp.InputResponseMap
	// done ends the job with all answers. It is nil if the job waits for no input.
	done func(mcp.InputResponseMap) *mcp.CallToolResult
}

// begin starts a job. work, unless it is nil, runs until the job ends.
func (j *jobs) begin(ask mcp.InputRequestMap, done func(mcp.InputResponseMap) *mcp.CallToolResult, work func(context.Context) (*mcp.CallToolResult, error)) *mcp.CallToolResult {
	ctx, cancel := context.WithCancel(context.Background())
	r := &runningJob{cancel: cancel, done: done, answers: mcp.InputResponseMap{}}
	now := time.Now()
	r.task = mcptask.Task{ID: rand.Text(), Status: mcptask.Working, CreatedAt: now, LastUpdatedAt: now, TTL: new(int64(60_000)), PollInterval: 100}
	if ask != nil {
		r.task.Status, r.task.InputRequests = mcptask.InputRequired, ask
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all[r.task.ID] = r
	created := mcptask.Created(new(r.task))
	if work != nil {
		go func() {
			result, err := work(ctx)
			j.mu.Lock()
			defer j.mu.Unlock()
			r.end(result, err)
		}()
	}
	return created
}

// end ends a job unless it has ended.
func (r *runningJob) end(result *mcp.CallToolResult, err error) {
	if r.task.Status != mcptask.Working && r.task.Status != mcptask.InputRequired {
		return
	}
	r.cancel()
	r.task.InputRequests, r.task.LastUpdatedAt = nil, time.Now()
	switch {
	case err != nil:
		r.task.Status, r.task.Error = mcptask.Failed, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	case result == nil:
		r.task.Status = mcptask.Cancelled
	default:
		r.task.Status, r.task.Result = mcptask.Completed, result
	}
}

// answer answers a request of the extension.
func (j *jobs) answer(method string, req mcp.Request) (mcp.Result, error) {
	p, err := mcptask.ReadParams(req)
	if err != nil {
		return nil, err
	}
	var t *mcptask.Task
	switch method {
	case "tasks/update":
		err = j.update(p.ID, p.Answers())
	case "tasks/cancel":
		err = j.cancel(p.ID)
	default:
		t, err = j.task(p.ID)
	}
	if err != nil {
		return nil, err
	}
	return mcptask.Answer(t), nil
}

// task returns the present state of a task.
func (j *jobs) task(id string) (*mcptask.Task, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.all[id]
	if r == nil {
		return nil, mcptask.Unknown(id)
	}
	t := r.task
	t.InputRequests = mcp.InputRequestMap{}
	for key, ask := range r.task.InputRequests {
		if r.answers[key] == nil {
			t.InputRequests[key] = ask
		}
	}
	return &t, nil
}

// update answers some of the requests of a task.
func (j *jobs) update(id string, answers mcp.InputResponseMap) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.all[id]
	if r == nil {
		return mcptask.Unknown(id)
	}
	for key, a := range answers {
		if a != nil && r.task.InputRequests[key] != nil {
			r.answers[key] = a
		}
	}
	if r.done != nil && len(r.answers) == len(r.task.InputRequests) {
		r.end(r.done(r.answers), nil)
	}
	return nil
}

// cancel ends a task.
func (j *jobs) cancel(id string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.all[id]
	if r == nil {
		return mcptask.Unknown(id)
	}
	r.end(nil, nil)
	return nil
}

func said(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{text(format, args...)}}
}

// after returns work that ends after d.
func after(d time.Duration, result *mcp.CallToolResult, err error) func(context.Context) (*mcp.CallToolResult, error) {
	return func(ctx context.Context) (*mcp.CallToolResult, error) {
		wait(ctx, d)
		return result, err
	}
}

// addTasks adds the tools of the suite that create tasks, and a tool that creates none.
func addTasks(server *mcp.Server) {
	j := &jobs{all: map[string]*runningJob{}}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if slices.Contains(mcptask.Methods, method) {
				return j.answer(method, req)
			}
			return next(ctx, method, req)
		}
	})
	add := func(name, schema string, call mcp.ToolHandler) {
		server.AddTool(&mcp.Tool{Name: name, Description: "for the conformance suite", InputSchema: json.RawMessage(schema)}, call)
	}
	const object = `{"type":"object"}`
	add("greet", `{"type":"object","properties":{"name":{"type":"string"}}}`, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var a struct{ Name string }
		err := json.Unmarshal(req.Params.Arguments, &a)
		return said("Hello, %s!", a.Name), err
	})
	add("slow_compute", `{"type":"object","properties":{"seconds":{"type":"number"},"label":{"type":"string"}}}`, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var a struct {
			Seconds float64
			Label   string
		}
		if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
			return nil, err
		}
		work := after(time.Duration(a.Seconds*float64(time.Second)), said("computed %s", a.Label), nil)
		if !mcptask.Declared(req) || a.Seconds == 0 {
			return work(ctx)
		}
		return j.begin(nil, nil, work), nil
	})
	required := func(name string, begin func(*mcp.CallToolRequest) *mcp.CallToolResult) {
		add(name, object, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if !mcptask.Declared(req) {
				return nil, mcptask.Missing()
			}
			return begin(req), nil
		})
	}
	required("failing_job", func(*mcp.CallToolRequest) *mcp.CallToolResult {
		failed := said("this job fails")
		failed.IsError = true
		return j.begin(nil, nil, after(pause, failed, nil))
	})
	required("protocol_error_job", func(*mcp.CallToolRequest) *mcp.CallToolResult {
		return j.begin(nil, nil, after(pause, nil, fmt.Errorf("this job ends with an error of the protocol")))
	})
	required("confirm_delete", func(*mcp.CallToolRequest) *mcp.CallToolResult {
		return j.begin(mcp.InputRequestMap{"confirm": form("Delete the file?", "confirm", "boolean")},
			func(a mcp.InputResponseMap) *mcp.CallToolResult {
				return said("deleted: %v", accepted(a, "confirm")["confirm"])
			}, nil)
	})
	required("multi_input", func(*mcp.CallToolRequest) *mcp.CallToolResult {
		return j.begin(mcp.InputRequestMap{"first": form("Your name?", "name", "string"), "second": form("Continue?", "confirm", "boolean")},
			func(a mcp.InputResponseMap) *mcp.CallToolResult { return said("%d answers", len(a)) }, nil)
	})
	required("test_tool_with_task", func(req *mcp.CallToolRequest) *mcp.CallToolResult {
		name, _ := accepted(req.Params.InputResponses, "user_name")["name"].(string)
		if name == "" {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"user_name": form("What is your name?", "name", "string")}}
		}
		return j.begin(nil, nil, after(pause, said("Hello, %s!", name), nil))
	})
}
