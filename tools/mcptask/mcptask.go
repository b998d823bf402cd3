// Package mcptask adds the Tasks extension of MCP (SEP-2663) to a server of the Go SDK, which
// lacks it. A long tool call answers with a task, which the client polls, answers and cancels.
// The package stores no tasks.
package mcptask

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Extension is the name under which servers and clients declare the extension.
const Extension = "io.modelcontextprotocol/tasks"

// Methods are the methods of the extension. A request of each names a task.
var Methods = []string{"tasks/get", "tasks/update", "tasks/cancel"}

// Status is the status of a task.
type Status string

// The statuses. The last three are final.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed" // also if the tool reports an error
	Failed        Status = "failed"    // with a JSON-RPC error
	Cancelled     Status = "cancelled"
)

// Task is the state of a task.
type Task struct {
	ID            string    `json:"taskId"`
	Status        Status    `json:"status"`
	StatusMessage string    `json:"statusMessage,omitempty"`
	CreatedAt     time.Time `json:"createdAt"`
	LastUpdatedAt time.Time `json:"lastUpdatedAt"`
	// TTL is the time in milliseconds after the creation for which clients can get the task;
	// nil means for ever.
	TTL          *int64 `json:"ttlMs"`
	PollInterval int64  `json:"pollIntervalMs,omitempty"` // milliseconds

	// Only the answers to tasks/get contain the following fields.
	InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"` // with InputRequired
	Result        *mcp.CallToolResult `json:"result,omitempty"`        // with Completed
	Error         *jsonrpc.Error      `json:"error,omitempty"`         // with Failed
}

// Unknown returns the error of the JSON-RPC answer for an unknown task.
func Unknown(id string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("no task has the id %.100q", id)}
}

// Missing is the error for a client that does not declare the extension.
func Missing() error {
	var required mcp.ClientCapabilities
	required.AddExtension(Extension, nil)
	data, _ := json.Marshal(mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: &required}) // maps
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client has to declare the extension " + Extension, Data: data}
}

// Capabilities returns the capabilities of the client of a request, empty if it declares none.
func Capabilities(req mcp.Request) *mcp.ClientCapabilities {
	if r, ok := req.(interface {
		ClientCapabilities() *mcp.ClientCapabilities
	}); ok {
		if c := r.ClientCapabilities(); c != nil {
			return c
		}
	}
	return &mcp.ClientCapabilities{}
}

// Declared reports whether the client of a request declares the extension. Only then may a
// tool call answer with Created.
func Declared(req mcp.Request) bool {
	_, ok := Capabilities(req).Extensions[Extension]
	return ok
}

// createdKey is the key of the task in the metadata of a result of Created.
const createdKey = "cairn/created"

// Created returns the result of a tool call that continues as a task. Clients can get the
// task from now on.
func Created(t *Task) *mcp.CallToolResult {
	return &mcp.CallToolResult{Meta: mcp.Meta{createdKey: t}}
}

// Params are the parameters of a request of one of the Methods.
type Params struct {
	mcp.ParamsBase
	ID             string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// Answers returns the responses. One that the protocol does not know is nil: the server
// ignores it unless it answers a question.
func (p *Params) Answers() mcp.InputResponseMap {
	all := mcp.InputResponseMap{}
	for key, text := range p.InputResponses {
		var one mcp.InputResponseMap // stays nil after an error
		_ = json.Unmarshal(fmt.Appendf(nil, `{"response":%s}`, text), &one)
		all[key] = one["response"]
	}
	return all
}

// ReadParams returns the parameters of a request of one of the Methods. The client has to
// declare the extension.
func ReadParams(req mcp.Request) (*Params, error) {
	p, ok := req.GetParams().(*Params)
	if !ok || p == nil || p.ID == "" { // the SDK cannot read the capabilities without parameters
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "taskId: missing"}
	}
	if !Declared(req) {
		return nil, Missing()
	}
	return p, nil
}

// result is the answer to a method of the extension, or to a tool call that has created a
// task. Without a task it acknowledges the request.
type result struct {
	mcp.ResultBase
	Type string `json:"resultType"`
	*Task
}

// Register adds the methods of the extension to a server, whose middleware has to answer
// their requests and to pass the results of tool calls to Wire. The capabilities of the server
// have to declare the extension.
func Register(server *mcp.Server) error {
	for _, method := range Methods {
		err := mcp.AddReceivingCustomMethod(server, method, func(context.Context, *mcp.ServerSession, *Params) (*result, error) {
			return nil, Unknown("") // unreachable: the middleware answers
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Wire returns the result of a request in the form that the client receives: the task for a
// result of Created, and any other result unchanged.
func Wire(r mcp.Result) mcp.Result {
	if called, ok := r.(*mcp.CallToolResult); ok {
		if t, ok := called.Meta[createdKey].(*Task); ok {
			created := *t
			created.InputRequests, created.Result, created.Error = nil, nil, nil
			return &result{Type: "task", Task: &created}
		}
	}
	return r
}

// Answer returns the answer to a request of one of the Methods: the task for tasks/get, nil for
// the others.
func Answer(t *Task) mcp.Result { return &result{Type: "complete", Task: t} }
