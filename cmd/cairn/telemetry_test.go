//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestServeIsSeen: one request to a running server shows in its metrics, its
// log, a trace and its profiles; what was asked in none of them.
func TestServeIsSeen(t *testing.T) {
	book, _ := indexed(t)
	traces := make(chan []byte, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		traces <- text
	}))
	defer receiver.Close()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	s := startServe(t, "-C", book, "--pprof", "127.0.0.1:0", "--otlp", receiver.URL, "--log-level", "debug")
	if code, text := get(t, s.url+"/api/search?q=rotate+a+xylophone", "X-Request-Id", "mine", "traceparent", "00-"+trace+"-00f067aa0ba902b7-01"); code != 200 {
		t.Fatalf("search: %d %s", code, text)
	}
	code, page := get(t, s.url+"/metrics")
	for _, want := range []string{
		`cairn_call_seconds_count{status="ok",tool="read_context",workspace="default"} 1`,
		`cairn_http_request_seconds_count{route="GET /api/search",status="ok"} 1`,
		`cairn_stage_seconds_count{stage="embed",workspace="default"} 1`,
		`cairn_query_cache_total{result="miss",workspace="default"} 1`,
		`cairn_index_ready{workspace="default"} 1`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("/metrics (%d) lacks %s", code, want)
		}
	}
	// The page for the browser searches by the same engine.
	if code, text := get(t, s.url+"/?q=rotate+a+token"); code != 200 {
		t.Fatalf("page: %d %s", code, text)
	}
	if _, page := get(t, s.url+"/metrics"); !strings.Contains(page, `cairn_stage_seconds_count{stage="blend",workspace="default"} 2`+"\n") {
		t.Errorf("a search from the page is not counted:\n%s", page)
	}
	if err := s.stop(t); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, s.log)
	}
	log := s.log.String()
	for _, want := range []string{
		`level=INFO msg=call id=mine tool=read_context workspace=default status=ok took_ms=[0-9.]+ trace=` + trace,
		`level=DEBUG msg=request id=mine method=GET route="GET /api/search" workspace=default status=ok code=200 took_ms=[0-9.]+ trace=` + trace,
		`msg="serving profiles" url=http://127.0.0.1:\d+/debug/pprof/`,
	} {
		if !regexp.MustCompile(want).MatchString(log) {
			t.Errorf("the log lacks %s", want)
		}
	}
	sent := <-traces // at the end at the latest
	for len(traces) > 0 {
		sent = append(sent, <-traces...)
	}
	for _, want := range []string{"tool read_context", "GET /api/search", "embed", "keyword", "vectors", "blend"} {
		if !bytes.Contains(sent, []byte(want)) {
			t.Errorf("the traces lack %q", want)
		}
	}
	for where, text := range map[string]string{"the log": log, "the traces": string(sent), "the metrics": page} {
		if strings.Contains(text, "xylophone") {
			t.Errorf("%s tells what was asked:\n%s", where, text)
		}
	}
}

// TestMCPIsSeen: the log of a session is JSON where that is asked for, and holds
// what was asked only where that is.
func TestMCPIsSeen(t *testing.T) {
	book, _ := indexed(t)
	const call = `{"jsonrpc":"2.0","id":1,"method":"read_context","params":{"query":"rotate a token"}}` + "\n"
	for name, c := range map[string]struct {
		args, env []string
		want      string // part of the line of the call; "" for no line
		not       string
	}{
		"as it comes":         {nil, nil, "", "msg=call"},
		"information":         {[]string{"--log-level", "info"}, nil, "msg=call ", "rotate"},
		"JSON":                {[]string{"--log-level", "info", "--log-format", "json"}, nil, `"tool":"read_context","status":"ok"`, "rotate"},
		"by the environment":  {nil, []string{"CAIRN_LOG__LEVEL", "info", "CAIRN_LOG__FORMAT", "json"}, `"msg":"call"`, "rotate"},
		"flag over it":        {[]string{"--log-level", "error"}, []string{"CAIRN_LOG__LEVEL", "info"}, "", "msg=call"},
		"queries":             {[]string{"--log-level", "info", "--log-queries"}, nil, "rotate a token", "\x00"},
		"queries by variable": {[]string{"--log-level", "info"}, []string{"CAIRN_LOG_QUERIES", "1"}, "rotate a token", "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := 0; i < len(c.env); i += 2 {
				t.Setenv(c.env[i], c.env[i+1])
			}
			var out, log bytes.Buffer
			if code := run(append([]string{"mcp", "-C", book, "--no-index"}, c.args...), strings.NewReader(call), &out, &log); code != 0 || !strings.Contains(out.String(), "access/rotate-a-token.md") {
				t.Fatalf("exit %d: %s\n%s", code, out.String(), log.String())
			}
			if !strings.Contains(log.String(), c.want) || strings.Contains(log.String(), c.not) {
				t.Errorf("the log is %q, want %q in it and not %q", log.String(), c.want, c.not)
			}
			if strings.Contains(strings.Join(append(c.args, c.env...), " "), "json") {
				for line := range strings.Lines(log.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("a line is not JSON: %s", line)
					}
				}
			}
		})
	}
}

// TestSeeRefuses: what cannot be is refused before anything is opened.
func TestSeeRefuses(t *testing.T) {
	t.Setenv("CAIRN_LOG_QUERIES", os.Getenv("CAIRN_LOG_QUERIES"))
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"want one like 127.0.0.1:6060":     {"--pprof", "0.0.0.0:6060"},
		"want {text,json}":                 {"--log-format", "xml"},
		"want {debug,info,warn,error}":     {"--log-level", "loud"},
		"want a URL such as http://127.0.": {"--otlp", "localhost:4318"},
	} {
		for _, command := range []string{"serve", "mcp"} {
			var out, log bytes.Buffer
			if code := run(append([]string{command, "-C", dir}, args...), strings.NewReader(""), &out, &log); code != exitUsage || !strings.Contains(log.String(), want) {
				t.Errorf("%s %v: exit %d and %q, want %d and %q", command, args, code, log.String(), exitUsage, want)
			}
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v in the folder, want nothing", entries, err)
	}
	t.Setenv("CAIRN_LOG__LEVEL", "loud")
	var out, log bytes.Buffer
	if code := run([]string{"status", "-C", dir}, strings.NewReader(""), &out, &log); code != 0 || !strings.Contains(log.String(), "warning: CAIRN_LOG__LEVEL") {
		t.Errorf("a level that is none in the environment, which is a warning: exit %d and %q", code, log.String())
	}
}
