package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cairn/benchmarks"
	"cairn/benchmarks/agent"
)

// turn is the number of queries that one side answers before the other. Spinning threads of
// a peer then take processor time only from the first answers of a turn.
const turn = 25

// report is the output of the command. Latencies are in milliseconds.
type report struct {
	Workspace     string             `json:"workspace"`
	Mode          string             `json:"mode"`
	Queries       int                `json:"queries"`
	Empty         int                `json:"empty_answers"`
	FirstAnswerMS float64            `json:"start_to_first_answer_ms"`
	ReadContext   map[string]float64 `json:"read_context_ms"`
	Processor     float64            `json:"processor_ms_per_query,omitempty"` // of the server, with -read=false; Linux only
	ReadDoc       map[string]float64 `json:"read_doc_ms,omitempty"`
	Peer          map[string]float64 `json:"peer_ms,omitempty"`
	Ratio         map[string]float64 `json:"read_context_by_peer,omitempty"`
	Index         json.RawMessage    `json:"index"`
	PeakRSSMiB    float64            `json:"server_peak_rss_mib,omitempty"` // Linux only
}

// options are the flags.
type options struct {
	cairn, dir, mode, peer string
	queries, warm          int
	seed                   uint64
	read                   bool
}

// stdio measures what an agent waits for. It starts `cairn mcp` on an indexed workspace and
// sends read_context with queries made from the folder's own lines
// (benchmarks.SampleQueries). It opens the first hit of each with read_doc. It prints
// latencies as the client sees them, the time from process start to the first answer, and
// the server's peak memory.
//
// With -peer COMMAND that command also answers the queries, 25 at a time after cairn's answers
// to them, so that both see the same machine: see exact.py.
func stdio(flags *flag.FlagSet) func() error {
	var o options
	flags.StringVar(&o.cairn, "cairn", "./cairn", "the cairn `program`")
	flags.StringVar(&o.dir, "C", ".", "the indexed workspace `folder`")
	flags.IntVar(&o.queries, "queries", 1000, "how many queries, all different")
	flags.IntVar(&o.warm, "warm", 50, "queries asked before measuring")
	flags.StringVar(&o.mode, "mode", "hybrid", "search mode")
	flags.BoolVar(&o.read, "read", true, "open the first hit of each query")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the choice of queries")
	flags.StringVar(&o.peer, "peer", "", "a `command` that answers each query too: a JSON string a line in, a line out")
	return func() error {
		r, err := o.run()
		if err != nil {
			return err
		}
		out, err := json.MarshalIndent(r, "", "  ")
		fmt.Println(string(out))
		return err
	}
}

func (o options) run() (*report, error) {
	queries, err := benchmarks.SampleQueries(o.dir, o.queries+o.warm, o.seed)
	if err != nil {
		return nil, err
	}
	var peer *agent.Client
	if words := strings.Fields(o.peer); len(words) > 0 {
		if peer, _, err = agent.Start(words[0], words[1:]...); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	s := &server{}
	if s.Client, s.process, err = agent.Start(o.cairn, "mcp", "-C", o.dir); err != nil {
		return nil, err
	}
	defer s.Close()
	err = s.Call("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "stdio-benchmark", "version": "1"},
	}, nil)
	if err = errors.Join(err, s.Notify("notifications/initialized")); err != nil {
		return nil, err
	}
	r := &report{Workspace: filepath.Base(o.dir), Mode: o.mode, Queries: o.queries}
	var search, read, others []float64
	var before float64 // processor time
	asked := 0         // number of queries that the peer has answered
	for i, q := range queries {
		if i == o.warm {
			before = processor(s.process.Pid)
		}
		var a answer
		took, err := s.tool("read_context", map[string]any{"query": q, "mode": o.mode, "format": "json"}, &a)
		if err != nil {
			return nil, fmt.Errorf("read_context %q: %w", q, err)
		}
		if i == 0 {
			r.FirstAnswerMS = milliseconds(time.Since(began))
		}
		if (i+1)%turn == 0 || i == len(queries)-1 {
			for ; peer != nil && asked <= i; asked++ {
				began := time.Now()
				if _, err := peer.Ask(queries[asked]); err != nil {
					return nil, fmt.Errorf("the peer, %q: %w", queries[asked], err)
				}
				if asked >= o.warm {
					others = append(others, milliseconds(time.Since(began)))
				}
			}
		}
		if i < o.warm {
			continue
		}
		search = append(search, took)
		r.Index = a.Index
		if len(a.Results) == 0 {
			r.Empty++
			continue
		}
		if !o.read {
			continue
		}
		place := strings.TrimSuffix(a.Results[0].Path+"#"+a.Results[0].Anchor, "#")
		took, err = s.tool("read_doc", map[string]any{"path": place, "max_tokens": 8000, "format": "json"}, &struct{ Content string }{})
		if err != nil {
			return nil, fmt.Errorf("read_doc %s: %w", place, err)
		}
		read = append(read, took)
	}
	r.ReadContext, r.ReadDoc = percentiles(search), percentiles(read)
	if !o.read {
		r.Processor = (processor(s.process.Pid) - before) / float64(o.queries)
	}
	if peer != nil {
		r.Peer, r.Ratio = percentiles(others), map[string]float64{}
		for at, took := range r.Peer {
			r.Ratio[at] = r.ReadContext[at] / took
		}
	}
	r.PeakRSSMiB = peakRSS(s.process.Pid)
	return r, nil
}

// server is a running `cairn mcp`.
type server struct {
	*agent.Client
	process *os.Process
}

// tool calls a tool and decodes its structured content. The time ends when the
// whole answer has arrived, before it is decoded.
func (s *server) tool(name string, arguments, answer any) (float64, error) {
	began := time.Now()
	line, err := s.Line("tools/call", map[string]any{"name": name, "arguments": arguments})
	took := milliseconds(time.Since(began))
	if err != nil {
		return 0, err
	}
	var result struct {
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := agent.Decode(name, line, &result); err != nil {
		return 0, err
	}
	if result.IsError {
		return 0, errors.New(string(result.Structured))
	}
	return took, json.Unmarshal(result.Structured, answer)
}

type answer struct {
	Results []struct{ Path, Anchor string }
	Index   json.RawMessage
}

func percentiles(v []float64) map[string]float64 {
	if len(v) == 0 {
		return nil
	}
	at := func(p float64) float64 { return benchmarks.Percentile(v, p) }
	return map[string]float64{"p50": at(50), "p95": at(95), "p99": at(99), "max": at(100)}
}

// processor returns the processor time of a process in milliseconds, 0 if it is unknown.
func processor(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // after the name
	const user, system = 11, 12
	var ticks int
	for _, field := range fields[user : system+1] {
		n, _ := strconv.Atoi(field)
		ticks += n
	}
	return 10 * float64(ticks)
}

// peakRSS returns the largest resident set of the process in MiB, 0 if it is unknown.
func peakRSS(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	return 0
}
