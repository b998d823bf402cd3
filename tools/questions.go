//lint:file-ignore SA1019 sampling, which revision 2026-07-28 deprecates, asks the model of the client

package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/stage"
	"cairn/tools/mcptask"
)

// questionPoll is the interval at which clients poll a question task, in milliseconds.
const questionPoll = 1000

// continues reports whether a tool call that has created a question task answers with a task
// of the protocol. The client has to be able to answer the question if no model of the server
// does.
func continues(req mcp.Request, a *stageAnswer) bool {
	c := mcptask.Capabilities(req)
	asked := slices.Contains(a.state.Machine.Rules.Delegated, stage.ExecutorReasoning)
	return mcptask.Declared(req) && !a.Task.Status.Final() && (!asked || c.Sampling != nil || c.Elicitation != nil)
}

// questionTask returns the state of a question task for the client of a request.
func questionTask(req mcp.Request, a *stageAnswer) *mcptask.Task {
	s := a.state
	t := &mcptask.Task{
		ID: s.ID, Status: mcptask.Working, StatusMessage: string(s.Current), CreatedAt: s.StartedAt, LastUpdatedAt: s.UpdatedAt,
		TTL: new(a.keep.Milliseconds()), PollInterval: questionPoll,
	}
	switch {
	case s.Status == stage.Aborted:
		t.Status = mcptask.Cancelled
	case s.Status.Final():
		t.Status = mcptask.Completed
		t.Result, _ = toolResult(a, s.Status == stage.Failed) // a stageAnswer is JSON
	case s.Status == stage.Waiting && a.Brief != nil && s.Current == stage.ExecutorReasoning:
		if ask := askFor(mcptask.Capabilities(req), a.Brief); ask != nil {
			t.Status, t.InputRequests = mcptask.InputRequired, mcp.InputRequestMap{inputKey(a.Brief): ask}
		}
	}
	return t
}

// inputKey returns the key of the question of a brief.
func inputKey(b *stage.Brief) string { return fmt.Sprint(b.Stage, "-", b.Run) }

// askFor returns the request for the answer to a brief: of the client's model or else of its
// user. It returns nil if the client has neither.
func askFor(c *mcp.ClientCapabilities, b *stage.Brief) mcp.InputRequest {
	switch {
	case c.Sampling != nil:
		return &mcp.CreateMessageParams{SystemPrompt: stage.AnswerSystem, MaxTokens: 2000, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: b.Prompt()}}}}
	case c.Elicitation != nil:
		var w strings.Builder
		fmt.Fprintf(&w, "%s\n\nAnswer from these passages and cite their numbers, such as [1].\n", b.Query)
		for i, p := range b.Passages {
			fmt.Fprintf(&w, "\n[%d] %s\n%s\n", i+1, p.Heading, p.Text)
		}
		return &mcp.ElicitParams{Message: w.String(), RequestedSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"answer":{"type":"string","title":"Answer"},"not_found":{"type":"boolean","title":"The passages do not contain the answer","default":false}}}`)}
	}
	return nil
}

// answerTask answers a request of the Tasks extension, about a question task or a plan. It calls
// the tools on question tasks, so that their limits, permissions and records apply.
func (s *Server) answerTask(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
	p, err := mcptask.ReadParams(req)
	if err != nil {
		return nil, err
	}
	if plan, err := s.planTask(req, p.ID); err != nil {
		return nil, err
	} else if plan != nil {
		return plan.answer(method), nil
	}
	a, err := s.callFor(ctx, req, "task_dag_get", map[string]any{"task_id": p.ID})
	switch {
	case err != nil:
	case method == "tasks/get":
		return mcptask.Answer(questionTask(req, a)), nil
	case method == "tasks/cancel" && !a.Task.Status.Final():
		_, err = s.callFor(ctx, req, "task_dag_abort", map[string]any{"task_id": p.ID, "reason": "cancelled by the client"})
	case method == "tasks/update" && a.Brief != nil:
		err = s.updateQuestion(ctx, req, p.ID, a.Brief, p.Answers())
	}
	if err != nil {
		return nil, err
	}
	return mcptask.Answer(nil), nil
}

// updateQuestion submits the answer to a brief, if it is among answers.
func (s *Server) updateQuestion(ctx context.Context, req mcp.Request, id string, b *stage.Brief, answers mcp.InputResponseMap) error {
	response, ok := answers[inputKey(b)]
	if !ok {
		return nil // an answer to no question, or to an earlier one
	}
	args := map[string]any{"task_id": id, "stage": b.Stage, "run": b.Run, "wait_seconds": 0}
	if declined, ok := response.(*mcp.ElicitResult); ok && declined.Action != "accept" {
		args["success"], args["reason"] = false, "the user did not answer: "+declined.Action
	} else {
		answered, err := readResponse(b, response)
		if err != nil {
			return invalid("inputResponses: %s", err).wire()
		}
		args["success"], args["output"], args["needs_web_search"] = true, answered.Draft, answered.NeedsWebSearch
		if answered.Confidence != nil {
			args["confidence"] = answered.Confidence
		}
	}
	_, err := s.callFor(ctx, req, "task_dag_advance", args)
	return err
}

// readResponse parses the answer of a client to askFor.
func readResponse(b *stage.Brief, response mcp.InputResponse) (*stage.Answered, error) {
	switch r := response.(type) {
	case *mcp.ElicitResult:
		text, _ := r.Content["answer"].(string)
		absent, _ := r.Content["not_found"].(bool)
		return b.ReadAnswer(text, stage.Answered{Draft: stage.Draft{NotFound: absent}})
	case *mcp.CreateMessageWithToolsResult:
		for _, c := range r.Content {
			t, ok := c.(*mcp.TextContent)
			if !ok {
				continue
			}
			text := t.Text
			if first, last := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}'); first >= 0 && json.Valid([]byte(text[first:max(first, last+1)])) {
				text = text[first : last+1] // some models write the object in a code block
			}
			return b.ReadAnswer(text, stage.Answered{By: r.Model})
		}
	}
	return nil, fmt.Errorf("%s: want text", inputKey(b))
}

// callFor calls a tool on a question task for the client of a request.
func (s *Server) callFor(ctx context.Context, req mcp.Request, name string, args map[string]any) (*stageAnswer, error) {
	raw, err := marshal(args)
	if err != nil {
		return nil, err
	}
	t, ok := s.find(name)
	if !ok {
		return nil, mcptask.Unknown(fmt.Sprint(args["task_id"]))
	}
	f := allowed(req.GetExtra(), t, raw)
	if f == nil {
		var answer any
		if answer, f = s.do(ctx, "", t, newCall(req, raw)); f == nil {
			return answer.(*stageAnswer), nil
		}
	}
	wire := f.wire()
	if f.Code == CodeNotFound {
		wire.Code = jsonrpc.CodeInvalidParams
	}
	return nil, wire
}
