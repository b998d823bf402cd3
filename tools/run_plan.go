package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/job"
	"cairn/internal/text/fit"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/plancheck"
	"cairn/internal/toolbox/planrun"
	"cairn/internal/toolbox/usage"
	"cairn/tools/gateway"
)

// RunOptions configures Proxy.Run, which sets the fields about calls and records.
type RunOptions struct {
	planrun.Options
	DryRun bool
	Tokens int // of the answer, 0 for the default

	background bool // answer with a task
}

// Ran is the answer for a plan.
type Ran struct {
	State  planrun.State `json:"state"` // done, failed, or pending for a dry run
	Layers [][]string    `json:"layers"`
	Steps  []RanStep     `json:"steps"` // in the order of the layers
	// Findings are doubts about the plan that did not prevent the run.
	Findings []plancheck.Finding `json:"findings,omitempty"`

	Trace  usage.Trace `json:"-"` // the calls, to learn from
	Record string      `json:"-"` // its path

	task *planTask // in which the plan runs; nil unless the answer is a task
}

// RanStep is a step in an answer.
type RanStep struct {
	ID         string             `json:"id"`
	Tool       string             `json:"tool"`
	State      planrun.State      `json:"state"`
	Permission gateway.Permission `json:"permission,omitempty"` // in a dry run
	Output     string             `json:"output,omitempty"`
	Rest       *Rest              `json:"rest,omitempty"` // for read_result
	Error      string             `json:"error,omitempty"`
	Attempts   int                `json:"attempts,omitempty"`
	MS         int64              `json:"ms,omitempty"`
}

// checked is a plan whose calls may run.
type checked struct {
	plan        plancheck.Plan
	tools       []catalog.Tool // by position of the call
	layers      [][]string
	findings    []plancheck.Finding
	permissions []gateway.Permission
	late        map[int]bool // calls that the user confirms when their arguments are known
}

// check returns a plan that the schemas, the catalogue and the permissions allow.
func (p *Proxy) check(ctx context.Context, plan plancheck.Plan) (*checked, error) {
	for name, value := range plan.Parameters {
		if value == nil {
			return nil, invalid("plan: the parameter %s has no value", name)
		}
	}
	for i := range plan.Calls {
		if c := &plan.Calls[i]; c.Arguments == nil {
			c.Arguments = map[string]any{} // checks the missing ones
		}
	}
	report, err := toolbox.CheckOp.Call(ctx, p.Box, plan, nil)
	if err != nil {
		return nil, err
	}
	if sure := slices.DeleteFunc(slices.Clone(report.Findings), func(f plancheck.Finding) bool { return f.Confidence < 1 }); len(sure) > 0 {
		f := invalid("plan: %s: %s", cmp.Or(sure[0].Call, "edges"), sure[0].Evidence)
		f.Data = map[string]any{"findings": sure, "repaired": report.Repaired}
		return nil, f
	}
	c := &checked{plan: plan, findings: report.Findings}
	for i := range plan.Calls {
		t, err := lookup(ctx, p.Box, fmt.Sprintf("calls[%d].tool", i), plan.Calls[i].Tool)
		if err != nil {
			return nil, err
		}
		permission, err := p.Gateway.Permission(&t)
		if err == nil && permission == gateway.Deny {
			err = fmt.Errorf("the user denies calls of %s", t.ID)
		}
		if err != nil {
			return nil, invalid("plan: %s: %s", plan.Calls[i].ID, err)
		}
		plan.Calls[i].Tool, plan.Calls[i].Takes = t.ID, t.Takes
		c.tools, c.permissions = append(c.tools, t), append(c.permissions, permission)
	}
	c.layers, err = plan.Layers()
	return c, err
}

// Run checks a plan, asks for permission once, and runs it.
func (p *Proxy) Run(ctx context.Context, plan plancheck.Plan, o RunOptions, peer gateway.Peer) (*Ran, error) {
	c, err := p.check(ctx, plan)
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		ran := &Ran{State: planrun.Pending, Layers: c.layers, Findings: c.findings}
		for _, id := range slices.Concat(c.layers...) {
			i := plan.Position(id)
			ran.Steps = append(ran.Steps, RanStep{ID: id, Tool: plan.Calls[i].Tool, State: planrun.Pending, Permission: c.permissions[i]})
		}
		return ran, nil
	}
	if err := p.confirm(ctx, c, peer); err != nil {
		return nil, err
	}
	o.Resume = o.Resume || peer.Again && len(c.late) > 0
	if o.background && len(c.late) == 0 {
		task, err := p.background(ctx, c, o, peer)
		return &Ran{State: planrun.Started, task: task}, err
	}
	return p.run(ctx, c, o, peer)
}

// confirm asks the user once for all calls that need it and whose arguments are known.
func (p *Proxy) confirm(ctx context.Context, c *checked, peer gateway.Peer) error {
	c.late = map[int]bool{}
	var asked, tools []string
	for i, call := range c.plan.Calls {
		if c.permissions[i] != gateway.Ask {
			continue
		}
		tools = append(tools, call.Tool)
		if arguments, err := c.plan.Fill(call.ID, map[string]any{}); err == nil {
			text, _ := marshal(arguments) // it was JSON
			asked = append(asked, call.Tool+" with "+fit.Cut(string(text), 500))
		} else {
			c.late[i] = true
		}
	}
	if len(tools) > 0 && peer.Confirm == nil {
		return invalid("plan: calls of %s need the user's consent, and this client cannot ask: ask them to run `cairn tools permit TOOL allow`", strings.Join(tools, ", "))
	}
	if len(asked) == 0 {
		return nil
	}
	yes, err := peer.Confirm(ctx, "Run a plan that calls "+strings.Join(asked, "; ")+"?")
	if err == nil && !yes {
		err = invalid("plan: the user declined it")
	}
	return err
}

// run runs a checked plan, to whose calls the user has agreed.
func (p *Proxy) run(ctx context.Context, c *checked, o RunOptions, peer gateway.Peer) (*Ran, error) {
	o.Masks, o.Dir = p.Masks, p.Records
	asking := make(chan error, len(c.late)) // requests for an answer, with which the client repeats the call
	o.Call = func(ctx context.Context, call plancheck.Call, arguments json.RawMessage) planrun.Result {
		i := c.plan.Position(call.ID)
		to := peer
		to.Confirm = nil // the call needed no consent before the run
		switch {
		case c.late[i]:
			to.Confirm = func(ctx context.Context, question string) (bool, error) {
				yes, err := peer.Confirm(ctx, question)
				if err != nil && len(asking) < cap(asking) {
					asking <- err
				}
				return yes, err
			}
		case c.permissions[i] == gateway.Ask:
			to.Confirm = func(context.Context, string) (bool, error) { return true, nil }
		}
		return p.step(ctx, &c.tools[i], call, arguments, to)
	}
	steps, err := planrun.Run(ctx, c.plan, o.Options)
	if len(asking) > 0 {
		return nil, <-asking
	}
	if unsure, ok := errors.AsType[*planrun.UnsureError](err); ok {
		f := invalid("plan: %s", err)
		f.Data = map[string]any{"repeat": unsure.Steps}
		return nil, f
	}
	if steps == nil && err != nil {
		return nil, invalid("plan: %s", err)
	}
	if err != nil {
		return nil, err
	}
	ran := p.answer(c, steps, o.Tokens)
	record(ctx, func(s *usage.Session) {
		if len(ran.Trace.Calls) > 0 {
			s.Ran(ran.Trace)
		}
	})
	return ran, nil
}

// step makes one call of a plan. Its output is the structured content of the result or else its
// text, with secrets masked.
func (p *Proxy) step(ctx context.Context, t *catalog.Tool, call plancheck.Call, arguments json.RawMessage, peer gateway.Peer) planrun.Result {
	r, err := p.Gateway.Call(ctx, gateway.Call{Server: t.Server, Tool: t.BareName(), Arguments: arguments, Timeout: time.Duration(call.Timeout) * time.Second, Peer: peer})
	if err != nil {
		masked, _ := p.Masks.Mask([]byte(err.Error()))
		result := planrun.Result{State: planrun.Failed, Error: string(masked)}
		refused, ok := errors.AsType[*gateway.Error](err)
		switch {
		case ok && refused.Outcome == gateway.Down:
			result.State, result.Retry = planrun.Down, true
		case ok && refused.Outcome == gateway.Lost, ctx.Err() != nil:
			result.State = planrun.Lost
		}
		return result
	}
	text, _ := p.read(r)
	if r.IsError {
		return planrun.Result{State: planrun.Failed, Error: text, Retry: true}
	}
	output, _ := marshal(text) // never fails: it is text
	if raw, err := marshal(r.StructuredContent); err == nil && r.StructuredContent != nil {
		if masked, _ := p.Masks.Mask(raw); json.Valid(masked) {
			output = masked
		}
		var repeated any // the text has all digits of a number, which its decoded form lacks
		if json.Unmarshal([]byte(text), &repeated) == nil && reflect.DeepEqual(repeated, r.StructuredContent) {
			output = []byte(text)
		}
	}
	return planrun.Result{State: planrun.Done, Output: output}
}

// answer returns the answer for the steps of a plan, with what the calls teach.
func (p *Proxy) answer(c *checked, steps []planrun.Step, tokens int) *Ran {
	ran := &Ran{State: planrun.Done, Layers: c.layers, Findings: c.findings, Record: planrun.Record(p.Records, &c.plan)}
	ran.Trace.Intent = c.plan.Intent
	if len(ran.Trace.Intent) > usage.MaxIntent {
		ran.Trace.Intent = ""
	}
	share := max(100, cmp.Or(tokens, defaultResult)/len(steps))
	called := map[string]int{} // the positions in the trace
	for _, s := range steps {
		step := RanStep{ID: s.ID, Tool: s.Tool, State: s.State, Error: s.Error, Attempts: s.Attempts, MS: s.MS}
		var text string
		if json.Unmarshal(s.Output, &text) != nil {
			text = string(s.Output)
		}
		step.Output, step.Rest = p.part(text, share)
		ran.Steps = append(ran.Steps, step)
		if s.State != planrun.Done {
			ran.State = planrun.Failed
		}
		if len(s.Sent) > 0 && s.State != planrun.Lost && s.State != planrun.Down {
			called[s.ID] = len(ran.Trace.Calls)
			ran.Trace.Calls = append(ran.Trace.Calls, usage.Call{Tool: s.Tool, Success: new(s.State == planrun.Done), Arguments: s.Sent})
		}
	}
	for _, w := range c.plan.Waits() {
		from, ok := called[c.plan.Calls[w[0]].ID]
		if to, also := called[c.plan.Calls[w[1]].ID]; ok && also && c.plan.Edges != nil {
			ran.Trace.Edges = append(ran.Trace.Edges, [2]int{from, to})
		}
	}
	return ran
}

type runPlanArgs struct {
	Plan      json.RawMessage `json:"plan" jsonschema:"As for verify_plan; a call may have retries and timeout_s, a saved plan its parameters"`
	DryRun    bool            `json:"dry_run,omitempty"`
	KeepGoing bool            `json:"keep_going,omitempty" jsonschema:"Run what does not need a failed step"`
	Resume    bool            `json:"resume,omitempty" jsonschema:"Continue the last run of this plan"`
	Restart   bool            `json:"restart,omitempty" jsonschema:"Ignore a run that did not end"`
	Repeat    []string        `json:"repeat,omitempty" schema:"max=60" jsonschema:"With resume: steps to call again that may have run"`
	MaxTokens *integer        `json:"max_tokens,omitempty" schema:"min=100,max=100000"`
}

func (p *Proxy) runPlan(ctx context.Context, a runPlanArgs) (*Ran, error) {
	plan, err := plancheck.ReadPlan(objectOf(a.Plan))
	if err != nil {
		return nil, invalid("plan: %s", err)
	}
	o := RunOptions{DryRun: a.DryRun, Tokens: a.MaxTokens.given(), background: originOf(ctx).tasks}
	o.KeepGoing, o.Resume, o.Restart, o.Repeat = a.KeepGoing, a.Resume, a.Restart, a.Repeat
	peer := originOf(ctx).peer
	if report := originOf(ctx).progress; report != nil {
		o.Progress = func(line string) { report(job.Progress{Phase: line}) }
		peer.Progress = func(n mcp.ProgressNotificationParams) { o.Progress(cmp.Or(n.Message, fmt.Sprint(n.Progress))) }
	}
	return p.Run(ctx, plan, o, peer)
}
