package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/stage"
	"cairn/internal/stage/embedded"
	"cairn/internal/store/kv"
)

// serve serves a store in a file, with workers for the stages that need no library.
func serve(t *testing.T) (*httptest.Server, *stage.Engine) {
	file := kv.NewFile(filepath.Join(t.TempDir(), "stage.db"), nil)
	e := stage.NewEngine(embedded.Open(file), &stage.Options{
		Work: stage.Works(stage.WorkOptions{}), Rules: stage.Rules{Delegated: []stage.Stage{stage.ExecutorReasoning}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx, stage.Stages, 2) })
	srv := httptest.NewServer(Handler(e))
	t.Cleanup(func() { srv.Close(); cancel(); running.Wait(); file.Close() })
	return srv, e
}

func ask(t *testing.T, method, url, body string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" || strings.HasSuffix(url, "/create") {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var v map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&v)
	return resp.StatusCode, v
}

func TestWay(t *testing.T) {
	srv, e := serve(t)
	code, made := ask(t, "POST", srv.URL+"/tasks/create", `{"user_id":"u","query":"who?","plan":["intent_analysis","executor_reasoning","response_packaging"]}`)
	id, _ := made["task_id"].(string)
	if code != 201 || id == "" || made["status"] != "created" || made["template"] != "custom" || made["user_id"] != "u" {
		t.Fatalf("creating answers %d %v", code, made)
	}
	resp, err := http.Get(srv.URL + "/tasks/" + id + "/progress")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("progress is %v", resp.Header)
	}
	lines, last := bufio.NewScanner(resp.Body), ""
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		last = data
		if strings.Contains(data, `"status":"waiting"`) && strings.Contains(data, `"current_stage":"executor_reasoning"`) {
			a := stage.Answered{Draft: stage.Draft{Answer: "Ann."}}
			r, err := a.Result(&stage.State{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Submit(t.Context(), id, stage.Event{Kind: stage.Done, Stage: stage.ExecutorReasoning, Result: r}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !strings.Contains(last, `"status":"complete"`) || !strings.Contains(last, `"answer":"Ann."`) {
		t.Errorf("the last event is %s", last)
	}
	if code, s := ask(t, "GET", srv.URL+"/tasks/"+id+"/status", ""); code != 200 || s["status"] != "complete" || s["progress_percentage"] != 100.0 || s["machine"] != nil {
		t.Errorf("status answers %d %v", code, s)
	}
	if code, s := ask(t, "POST", srv.URL+"/tasks/"+id+"/abort", ""); code != 409 || s["code"] != "INVALID_STATUS_TRANSITION" {
		t.Errorf("aborting what is complete answers %d %v", code, s)
	}
}

// TestAnswer: a person answers over HTTP, and the stream has every transition.
func TestAnswer(t *testing.T) {
	srv, _ := serve(t)
	_, made := ask(t, "POST", srv.URL+"/tasks/create", `{"user_id":"u","query":"What is the capital of Mongolia?","plan":["intent_analysis","executor_reasoning","moderation","response_packaging"]}`)
	id, _ := made["task_id"].(string)
	testutil.Await(t, func() string {
		_, s := ask(t, "GET", srv.URL+"/tasks/"+id+"/status", "")
		if s["status"] != "waiting" || s["current_stage"] != "executor_reasoning" {
			return fmt.Sprintf("the task does not wait for an answer: %v", s)
		}
		return ""
	})
	if code, s := ask(t, "POST", srv.URL+"/tasks/"+id+"/answer", `{"answer":"It is not in these documents.","run":1}`); code != 409 || s["code"] != "LATE_RESULT" {
		t.Errorf("an answer to another run: %d %v", code, s)
	}
	if code, s := ask(t, "POST", srv.URL+"/tasks/"+id+"/answer", `{"answer":" "}`); code != 400 || s["code"] != "INVALID_PARAMETER" {
		t.Errorf("a blank answer: %d %v", code, s)
	}
	if code, s := ask(t, "POST", srv.URL+"/tasks/"+id+"/answer", `{"answer":"It is not in these documents.","confidence":0.9}`); code != 200 || s["task_id"] != id {
		t.Fatalf("answering: %d %v", code, s)
	}
	resp, err := http.Get(srv.URL + "/tasks/" + id + "/progress")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var ids, names []string
	last := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			ids = append(ids, value)
		case "event":
			names = append(names, value)
		case "data":
			last = value
		}
	}
	if got := strings.Join(ids, " "); got != "1 2 3 4 5 6 7 8" {
		t.Errorf("the stream has the transitions %s", got)
	}
	if got := strings.Join(names, " "); got != "waiting in_progress waiting waiting in_progress waiting in_progress complete" {
		t.Errorf("their statuses are %s", got)
	}
	if !strings.Contains(last, `"not_found":true`) {
		t.Errorf("the last event is %s", last)
	}
}

func TestRefused(t *testing.T) {
	srv, e := serve(t)
	if resp, err := http.Post(srv.URL+"/tasks/create", "text/plain", strings.NewReader(`{"user_id":"u","query":"q"}`)); err != nil || resp.StatusCode != 415 {
		t.Errorf("plain text: %v, %v, want 415", resp, err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/tasks/create", `{}`, 400, "INVALID_PARAMETER"},
		{"POST", "/tasks/create", ``, 400, "INVALID_PARAMETER"},
		{"POST", "/tasks/create", `{"query":"q"}`, 400, "INVALID_PARAMETER"},
		{"POST", "/tasks/create", `{"user_id":"u","query":7}`, 400, "INVALID_PARAMETER"},
		{"POST", "/tasks/create", `{"user_id":"u","query":"q"}{}`, 400, "INVALID_PARAMETER"},
		{"POST", "/tasks/create", `{"user_id":"u","query":"q","x":1}`, 400, "INVALID_PARAMETER"},
		{"POST", "/tasks/create", `{"user_id":"u","query":"` + strings.Repeat("a", 1<<20) + `"}`, 400, "INVALID_PARAMETER"},
		{"POST", "/tasks/create", `{"user_id":"u","query":"q","template":"nope"}`, 400, "UNKNOWN_TEMPLATE"},
		{"POST", "/tasks/create", `{"user_id":"u","query":"q","plan":["dream"]}`, 400, "INVALID_PLAN"},
		{"GET", "/tasks/missing/status", ``, 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/missing/progress", ``, 404, "TASK_NOT_FOUND"},
		{"POST", "/tasks/missing/abort", `{}`, 404, "TASK_NOT_FOUND"},
		{"POST", "/tasks/missing/answer", `{"answer":"a"}`, 404, "TASK_NOT_FOUND"},
		{"POST", "/tasks/missing/answer", `{"reply":"a"}`, 400, "INVALID_PARAMETER"},
		{"POST", "/tasks/missing/abort", `[]`, 400, "INVALID_PARAMETER"},
	} {
		status, v := ask(t, c.method, srv.URL+c.path, c.body)
		if status != c.status || v["code"] != c.code || v["success"] != false {
			t.Errorf("%s %s %.60s answers %d %v, want %d %s", c.method, c.path, c.body, status, v, c.status, c.code)
		}
	}
	if list, err := e.List(t.Context(), stage.Query{}); err != nil || len(list) != 0 {
		t.Errorf("%d tasks are made of it, %v", len(list), err)
	}
}
