package benchmarks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cairn/benchmarks/agent"
	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/tools"
)

// DAGOptions configures DAG.
type DAGOptions struct {
	Cards    int               // number of cards of the first board
	Chain    int               // number of cards of the second board, which form a chain
	Large    int               // number of cards of a third, large board; less than 1 means none
	Calls    int               // calls of each operation; a tenth of them on the large board
	Dir      string            // folder of the boards; "" means the system's folder for temporary files
	Progress func(what string) // receives the current step
}

// DAGReport is the result of DAG.
type DAGReport struct {
	Operations []DAGOperation `json:"operations"`
}

// DAGOperation is the latency of one operation, from the request on the wire to the complete
// answer. Every call reads the files.
type DAGOperation struct {
	Board   string `json:"board"` // cards, chain or large
	Cards   int    `json:"cards"`
	Name    string `json:"operation"`
	Calls   int    `json:"calls"`
	Bytes   int    `json:"answer_bytes"` // of the last answer
	Latency `json:"latency_ms"`
	// Wanted is the bound of the median in milliseconds; 0 means none.
	Wanted float64 `json:"wanted_ms,omitempty"`
}

// dagCall is one operation to measure.
type dagCall struct {
	name   string // the name of the tool and of the variant of the call
	tool   string
	wanted float64
	// args returns the arguments of call i.
	args func(i int) string
	// before runs before call i and is not measured; nil does nothing.
	before func(i int) error
	// holds returns a text that the answer must have; nil accepts all answers.
	holds func(i int) string
}

// DAG measures the tools for cards and their graph on boards of synthetic cards. It calls the
// server as an agent does, but in the same process.
func DAG(ctx context.Context, o DAGOptions) (*DAGReport, error) {
	if o.Cards < 20 || o.Chain < 2 || o.Large > 0 && o.Large < 20 || o.Calls < 1 {
		return nil, errors.New("measuring the task graph: want at least 20 cards, a chain of 2 and 1 call")
	}
	report := &DAGReport{}
	for _, b := range []struct {
		name  string
		cards int
		calls int
		make  func(dir string, n int) error
		ops   func(dir string, n int) []dagCall
	}{
		{"cards", o.Cards, o.Calls, makeBoard, boardCalls},
		{"chain", o.Chain, o.Calls, func(dir string, n int) error { // each card depends on the one before it
			return makeCards(dir, n, func(i int) []byte {
				var deps []string
				if i > 0 {
					deps = []string{cardID(i - 1)}
				}
				return cardText(fmt.Sprintf("Link %d", i), "todo", "medium", deps)
			})
		}, chainCalls},
		{"large", o.Large, max(o.Calls/10, 1), makeBoard, func(dir string, n int) []dagCall {
			ops := boardCalls(dir, n)
			for i := range ops {
				ops[i].wanted = 300
			}
			return ops
		}},
	} {
		if b.cards < 1 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(o.Dir, "cairn-dag-")
		if err != nil {
			return nil, err
		}
		o.Progress(fmt.Sprintf("making %d cards", b.cards))
		err = b.make(dir, b.cards)
		if err == nil {
			err = report.measure(ctx, dir, b.name, b.cards, b.calls, b.ops(dir, b.cards), o.Progress)
		}
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return nil, fmt.Errorf("measuring %d cards: %w", b.cards, err)
		}
	}
	return report, nil
}

// measure runs the operations on one board.
func (r *DAGReport) measure(ctx context.Context, dir, board string, cards, calls int, ops []dagCall, progress func(string)) error {
	s, err := serveTasks(ctx, dir)
	if err != nil {
		return err
	}
	for _, op := range ops {
		progress(fmt.Sprintf("%d cards: %s", cards, op.name))
		var took []float64
		size := 0
		for i := range calls + 1 { // the first warms up
			if op.before != nil {
				if err := op.before(i); err != nil {
					return errors.Join(err, s.close())
				}
			}
			start := time.Now()
			answer, err := s.call(op.tool, op.args(i))
			elapsed := time.Since(start)
			if err == nil && op.holds != nil && !strings.Contains(string(answer), op.holds(i)) {
				err = fmt.Errorf("answer %.200q, want %q in it", answer, op.holds(i))
			}
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", op.name, err), s.close())
			}
			if size = len(answer); i > 0 {
				took = append(took, elapsed.Seconds()*1e3)
			}
		}
		r.Operations = append(r.Operations, DAGOperation{Board: board, Cards: cards, Name: op.name, Calls: calls, Bytes: size,
			Latency: percentiles(took), Wanted: op.wanted})
	}
	return s.close()
}

// always returns dagCall.args or dagCall.holds for the same text in each call.
func always(text string) func(int) string { return func(int) string { return text } }

func boardCalls(dir string, n int) []dagCall {
	words := []string{"low", "medium", "high", "critical"}
	tenth := make([]string, 10)
	for i := range tenth {
		tenth[i] = fmt.Sprintf("%q", cardID(i*(n/10)))
	}
	deps := strings.Join(tenth, ",")
	fresh := func(i int) string { return fmt.Sprintf("edited by hand %d", i) }
	byHand := func(i int) error {
		id := cardID(n / 2)
		return os.WriteFile(cardPath(dir, id), cardText(fresh(i), "todo", "critical", nil), 0o644)
	}
	return []dagCall{
		{"list_tasks", "list_tasks", 20, always(`{}`), nil, nil},
		{"list_tasks, 50 active", "list_tasks", 20, always(`{"status":"active","limit":50}`), nil, nil},
		{"list_tasks, 50 after an edit by hand", "list_tasks", 20, always(`{"priority":"critical","status":"todo"}`), byHand, fresh},
		{"dag_get_ready_tasks, 100", "dag_get_ready_tasks", 30, always(`{"limit":100}`), nil, always(`"success":true`)},
		{"dag_get_ready_tasks, after an edit by hand", "dag_get_ready_tasks", 30, always(`{"limit":100}`), byHand, nil},
		{"dag_get_ready_tasks, with details", "dag_get_ready_tasks", 0, always(`{"limit":100,"details":true}`), nil, nil},
		{"update_task, durable", "update_task", 30, func(i int) string {
			return fmt.Sprintf(`{"id":%q,"updates":{"priority":%q}}`, cardID(n/3), words[i%4])
		}, nil, always(`"updated_fields"`)},
		{"update_task, with 10 new dependencies", "update_task", 30, func(i int) string {
			list := deps
			if i%2 == 1 {
				list = ""
			}
			return fmt.Sprintf(`{"id":%q,"updates":{"depends_on":[%s]}}`, cardID(n-1), list)
		}, nil, always(`"updated_fields"`)},
		{"create_task, 10 dependencies, durable", "create_task", 10, func(i int) string {
			return fmt.Sprintf(`{"title":"made %d","depends_on":[%s]}`, i, deps)
		}, nil, always(`"created"`)},
		{"dag_get_stats", "dag_get_stats", 0, always(`{}`), nil, always(`"success":true`)},
		{"dag_get_execution_order", "dag_get_execution_order", 0, always(`{}`), nil, nil},
		{"dag_get_parallel_groups", "dag_get_parallel_groups", 0, always(`{}`), nil, nil},
		{"dag_get_critical_path", "dag_get_critical_path", 0, always(`{}`), nil, nil},
	}
}

func chainCalls(dir string, n int) []dagCall {
	first, last := cardID(0), cardID(n-1)
	edge := fmt.Sprintf(`{"dependentTaskId":%q,"dependencyTaskId":%q}`, first, last)
	closed := func(i int) error { // a new title each time, so that no answer is cached
		return os.WriteFile(cardPath(dir, first), cardText(fmt.Sprintf("closed by hand %d", i), "todo", "low", []string{last}), 0o644)
	}
	return []dagCall{
		{"dag_validate_dependency, closing the chain", "dag_validate_dependency", 5, always(edge), nil, always("CYCLE_DETECTED")},
		{"validate_task_graph", "validate_task_graph", 5, always(`{}`), nil, always(`"valid":true`)},
		{"dag_get_critical_path", "dag_get_critical_path", 20, always(`{}`), nil, always(fmt.Sprintf(`"pathLength":%d`, n))},
		{"dag_get_ready_tasks", "dag_get_ready_tasks", 0, always(`{}`), nil, nil},
		{"validate_task_graph, the chain closed by hand before each call", "validate_task_graph", 0, always(`{}`), closed, always(`"valid":false`)},
	}
}

// cardID returns the ID of card i.
func cardID(i int) string { return fmt.Sprintf("t%05d", i) }

func cardPath(dir, id string) string { return filepath.Join(dir, ".cairn", "cards", id+".md") }

func cardText(title, status, priority string, deps []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %s\nstatus: %s\npriority: %s\ntags: [auth, backend]\n", title, status, priority)
	if len(deps) > 0 {
		fmt.Fprintf(&b, "depends_on: [%s]\n", strings.Join(deps, ", "))
	}
	b.WriteString("created: 2026-01-02T10:43:00Z\n---\n\n# " + title + "\n\n## Description\n\n<!-- What is to be done, and how to tell that it is done. -->\n")
	return []byte(b.String())
}

// makeBoard writes n cards. Each depends on up to three of the 200 cards before it. The first
// two fifths are done.
func makeBoard(dir string, n int) error {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	return makeCards(dir, n, func(i int) []byte {
		status := "todo"
		switch {
		case i < n*2/5:
			status = "done"
		case i%40 == 0:
			status = "active"
		}
		var deps []string
		for range r.IntN(4) {
			if i > 0 {
				deps = append(deps, cardID(max(0, i-200)+r.IntN(min(i, 200))))
			}
		}
		priority := "medium"
		switch k := r.IntN(100); {
		case k == 0:
			priority = "critical"
		case k < 20:
			priority = "high"
		case k < 50:
			priority = "low"
		}
		return cardText(fmt.Sprintf("Task number %d", i), status, priority, deps)
	})
}

func makeCards(dir string, n int, text func(i int) []byte) error {
	if err := os.MkdirAll(filepath.Join(dir, ".cairn", "cards"), 0o755); err != nil {
		return err
	}
	for i := range n {
		if err := os.WriteFile(cardPath(dir, cardID(i)), text(i), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// taskServer is a server of the task tools in this process, and its client.
type taskServer struct {
	client *agent.Client
	ended  chan error
	stop   func() error
}

func serveTasks(ctx context.Context, dir string) (*taskServer, error) {
	sel, err := config.Select(dir)
	if err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.DAG.Enabled = true
	w, err := workspace.Open(ctx, sel, cfg, workspace.Reading, workspace.Options{Command: "cairn bench dag"})
	if err != nil {
		return nil, err
	}
	t, err := w.Tasks(nil)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	s := &taskServer{client: agent.New(in, out), ended: make(chan error, 1), stop: func() error { return errors.Join(t.Close(), w.Close()) }}
	go func() {
		err := tools.New(w.Folder, &tools.Options{NoRateLimit: true, Groups: []tools.Group{tools.All}, Scan: w.Scan, Tasks: t}).ServeStdio(ctx, requests, answers)
		answers.CloseWithError(io.EOF)
		s.ended <- err
	}()
	return s, nil
}

// call calls a tool by its bare method and returns the line of the answer.
func (s *taskServer) call(tool, args string) ([]byte, error) {
	line, err := s.client.Line(tool, json.RawMessage(args))
	if err == nil && strings.Contains(string(line[:min(len(line), 100)]), `"error"`) {
		err = agent.Decode(tool, line, nil)
	}
	return line, err
}

// close ends the session and closes the folder.
func (s *taskServer) close() error {
	return errors.Join(s.client.Close(), <-s.ended, s.stop())
}
