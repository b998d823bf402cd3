package tools

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/toolbox/planrun"
	"cairn/tools/gateway"
	"cairn/tools/mcptask"
)

const (
	// maxPlans bounds the plans that run in the background.
	maxPlans = 16
	planTTL  = 24 * time.Hour
)

// planTask is a plan that runs as a task of the protocol.
type planTask struct {
	cancel context.CancelFunc

	mu   sync.Mutex
	task mcptask.Task
}

// state returns the present state.
func (t *planTask) state() *mcptask.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return new(t.task)
}

// change changes the state.
func (t *planTask) change(fn func(*mcptask.Task)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fn(&t.task)
	t.task.LastUpdatedAt = time.Now().UTC()
}

// background runs a checked plan as a task, whose state is kept in a file.
func (p *Proxy) background(ctx context.Context, c *checked, o RunOptions, peer gateway.Peer) (*planTask, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.plans) >= maxPlans {
		return nil, &Failure{Code: CodeUnavailable, Message: "too many plans are running"}
	}
	// The request ends before the plan, so that nothing can be sent for it.
	peer = gateway.Peer{Name: peer.Name}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	now := time.Now().UTC()
	t := &planTask{cancel: cancel, task: mcptask.Task{
		ID: rand.Text(), Status: mcptask.Working, CreatedAt: now, LastUpdatedAt: now, TTL: new(planTTL.Milliseconds()), PollInterval: questionPoll,
	}}
	if err := planrun.KeepTask(p.Records, t.task.ID, t.task); err != nil {
		cancel()
		return nil, err
	}
	o.Progress = func(line string) { t.change(func(state *mcptask.Task) { state.StatusMessage = line }) }
	if p.plans == nil {
		p.plans = map[string]*planTask{}
	}
	p.plans[t.task.ID] = t
	go func() {
		defer cancel()
		ran, err := p.run(ctx, c, o, peer)
		end := t.state()
		end.Status, end.LastUpdatedAt = mcptask.Completed, time.Now().UTC()
		switch {
		case ctx.Err() != nil:
			end.Status = mcptask.Cancelled
		case err != nil:
			end.Result, _ = toolResult(FailureOf(err), true) // a failure is JSON
		default:
			end.Result, _ = toolResult(ran, ran.State == planrun.Failed) // so is an answer
		}
		// A client sees the end only after it is kept, or if it cannot be.
		if planrun.KeepTask(p.Records, end.ID, end) != nil {
			t.change(func(state *mcptask.Task) { *state = *end })
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.plans, end.ID)
	}()
	return t, nil
}

// planTask returns the plan with the ID of a task, nil if there is none. Clients need the
// permission to run plans.
func (s *Server) planTask(req mcp.Request, id string) (*planTask, error) {
	run, ok := s.find("run_plan")
	if !ok {
		return nil, nil
	}
	p := s.options.Proxy
	p.mu.Lock()
	t := p.plans[id]
	p.mu.Unlock()
	if t == nil {
		t = &planTask{cancel: func() {}}
		if ok, err := planrun.KeptTask(p.Records, id, &t.task); !ok {
			return nil, err
		}
		if t.task.Status == mcptask.Working {
			t.task.Status, t.task.Error = mcptask.Failed, &jsonrpc.Error{Code: CodeUnavailable, Message: "cairn ended during the plan: run_plan with resume continues it"}
		}
	}
	if f := allowed(req.GetExtra(), run, nil); f != nil {
		return nil, f.wire()
	}
	return t, nil
}

// answer answers a request of the Tasks extension. A plan asks nothing, so it ignores answers.
func (t *planTask) answer(method string) mcp.Result {
	switch method {
	case "tasks/get":
		return mcptask.Answer(t.state())
	case "tasks/cancel":
		t.cancel()
	}
	return mcptask.Answer(nil)
}
