package planrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/text/secret"
	"cairn/internal/toolbox/plancheck"
)

// machine makes the calls of the tests. A call of the tool "fail" fails, of "flaky" the first
// two times, and of "lose" may have run.
type machine struct {
	mu    sync.Mutex
	calls []string
	at    []time.Time
}

func (m *machine) call(_ context.Context, c plancheck.Call, arguments json.RawMessage) Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.at = append(m.calls, c.ID+string(arguments)), append(m.at, time.Now())
	switch {
	case c.Tool == "fail", c.Tool == "flaky" && len(m.calls) < 3:
		return Result{State: Failed, Error: "it broke", Retry: true}
	case c.Tool == "lose":
		return Result{State: Lost, Error: "no answer"}
	case c.Tool == "long":
		text, _ := json.Marshal(strings.Repeat("x", 2*maxOutput))
		return Result{State: Done, Output: text}
	}
	return Result{State: Done, Output: fmt.Appendf(nil, `{"of":%q,"big":9007199254740993}`, c.ID)}
}

// try runs a plan in JSON and returns "ID state" of each step.
func (m *machine) try(t *testing.T, dir, plan string, change func(*Options)) ([]string, error) {
	t.Helper()
	p, err := plancheck.ReadPlan(json.RawMessage(plan))
	if err != nil {
		t.Fatal(err)
	}
	masks, err := secret.New()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Call: m.call, Masks: masks, Dir: dir}
	if change != nil {
		change(&o)
	}
	steps, err := Run(t.Context(), p, o)
	var states []string
	for _, s := range steps {
		states = append(states, s.ID+" "+string(s.State))
	}
	return states, err
}

const fork = `{"calls":[{"id":"a","tool":"t"},{"id":"b","tool":"MIDDLE","arguments":{"v":"$a.big"}},{"id":"c","tool":"t","arguments":{"v":"from ${a.of}"}},{"id":"d","tool":"t","arguments":{"v":"$b.of"}}],"edges":[]}`

func TestRun(t *testing.T) {
	resume := func(o *Options) { o.Resume = true }
	for _, c := range []struct {
		name, middle string
		change       func(*Options)
		want, calls  string
		again        string // the calls of a second run that resumes
	}{
		{"all", "t", nil, "a done,b done,c done,d done", `a{},b{"v":9007199254740993},c{"v":"from a"},d{"v":"b"}`, ""},
		{"fails", "fail", nil, "a done,b failed,c done,d skipped", `a{},b{"v":9007199254740993},c{"v":"from a"}`, `b{"v":9007199254740993}`},
		{"is lost", "lose", nil, "a done,b lost,c done,d skipped", `a{},b{"v":9007199254740993},c{"v":"from a"}`, "steps that may have run before: b; check what they did, then name those to repeat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, dir := &machine{}, t.TempDir()
				plan := strings.Replace(fork, "MIDDLE", c.middle, 1)
				got, err := m.try(t, dir, plan, func(o *Options) {
					o.KeepGoing = true
					if c.change != nil {
						c.change(o)
					}
				})
				slices.Sort(m.calls)
				if err != nil || strings.Join(got, ",") != c.want || strings.Join(m.calls, ",") != c.calls {
					t.Errorf("%v, %v after the calls %v", got, err, m.calls)
				}
				m.calls = nil
				_, err = m.try(t, dir, plan, resume)
				again := strings.Join(m.calls, ",")
				if err != nil {
					again += err.Error()
				}
				if again != c.again {
					t.Errorf("resumed: %s, want %s", again, c.again)
				}
			})
		})
	}
}

func TestStops(t *testing.T) {
	m := &machine{}
	got, err := m.try(t, t.TempDir(), `[{"tool":"t"},{"tool":"fail"},{"tool":"t"}]`, nil)
	if err != nil || strings.Join(got, ",") != "c0 done,c1 failed,c2 skipped" || len(m.calls) != 2 {
		t.Errorf("%v, %v, %v", got, err, m.calls)
	}
	m = &machine{}
	got, err = m.try(t, t.TempDir(), `{"calls":[{"tool":"fail"},{"tool":"t","arguments":{"v":"$c0"}},{"tool":"t"},{"id":"x","tool":"t","arguments":{"v":"$c2"}}],"edges":[]}`, nil)
	if err != nil || !slices.Contains(got, "x skipped") {
		t.Errorf("after a failed step: %v, %v", got, err)
	}
}

// TestRetry: an attempt follows after one second, then after two.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := &machine{}, t.TempDir()
		got, err := m.try(t, dir, `[{"tool":"flaky","retries":2}]`, nil)
		if err != nil || strings.Join(got, ",") != "c0 done" || len(m.at) != 3 || m.at[2].Sub(m.at[0]) != 3*time.Second {
			t.Errorf("%v, %v at %v", got, err, m.at)
		}
		m = &machine{}
		if got, err = m.try(t, dir, `[{"tool":"lose","retries":2}]`, nil); err != nil || len(m.calls) != 1 {
			t.Errorf("a call that may have run was repeated: %v, %v, %v", got, err, m.calls)
		}
	})
}

// TestCrash cuts the record at and between the ends of its lines, as a crash there leaves it. A step that is done
// in the rest is not called again, and one that may have run is named.
func TestCrash(t *testing.T) {
	m, dir := &machine{}, t.TempDir()
	plan := strings.Replace(fork, "MIDDLE", "t", 1)
	if _, err := m.try(t, dir, plan, nil); err != nil {
		t.Fatal(err)
	}
	p, _ := plancheck.ReadPlan(json.RawMessage(plan))
	path := Record(dir, &p)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if near := whole[max(0, n-1):min(n+2, len(whole))]; n%37 > 0 && !bytes.Contains(near, []byte("\n")) {
			continue
		}
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		before, ended, err := read(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = m.try(t, dir, plan, nil); (err == nil) != ended {
			t.Fatalf("after %d bytes: %v, but the run ended: %v", n, err, ended)
		}
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		m.calls = nil
		got, err := m.try(t, dir, plan, func(o *Options) { o.Resume = true })
		var unsure *UnsureError
		started := slices.ContainsFunc([]string{"a", "b", "c", "d"}, func(id string) bool { return before[id].State == Started })
		if errors.As(err, &unsure) != started {
			t.Fatalf("after %d bytes: %v, want an error for a step that may have run: %v", n, err, started)
		}
		if started {
			if got, err = m.try(t, dir, plan, func(o *Options) { o.Resume, o.Repeat = true, unsure.Steps }); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Join(got, ",") != "a done,b done,c done,d done" {
			t.Fatalf("after %d bytes: %v", n, got)
		}
		for _, call := range m.calls {
			if before[call[:1]].State == Done {
				t.Fatalf("after %d bytes, %s was called again", n, call)
			}
		}
	}
}

func TestRecord(t *testing.T) {
	m, dir := &machine{}, t.TempDir()
	plan := `[{"tool":"long","arguments":{"password":"hunter2","text":"sk-abcdefghijklmnopqrstuvwx","long":"` + strings.Repeat("y", 2*maxArguments) + `"}},{"tool":"fail","arguments":{"v":"$c0"}}]`
	if _, err := m.try(t, dir, plan, nil); err != nil {
		t.Fatal(err)
	}
	p, _ := plancheck.ReadPlan(json.RawMessage(plan))
	text, err := os.ReadFile(Record(dir, &p))
	if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "sk-abc") || len(text) > 5*maxArguments {
		t.Errorf("the record has %d bytes, %v", len(text), err)
	}
	if info, err := os.Stat(Record(dir, &p)); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// The output of c0 is not in the record.
	m.calls = nil
	if got, err := m.try(t, dir, plan, func(o *Options) { o.Resume = true }); err != nil || len(m.calls) > 0 {
		t.Errorf("%v, %v, %v", got, err, m.calls)
	}
	if _, err := m.try(t, dir, plan, func(o *Options) { o.Resume, o.Repeat = true, []string{"c0"} }); err != nil || len(m.calls) != 2 {
		t.Errorf("%v, %v", m.calls, err)
	}
	if _, err := m.try(t, dir, plan, func(o *Options) { o.Resume, o.Repeat = true, []string{"zz"} }); err == nil {
		t.Error("a step that the plan lacks is repeated")
	}
	for i := range maxRecords + 5 {
		name := filepath.Join(dir, fmt.Sprint("old", i))
		if err := errors.Join(os.Mkdir(name, 0o700), os.WriteFile(filepath.Join(name, recordName), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.try(t, dir, `[{"tool":"t"}]`, nil); err != nil {
		t.Fatal(err)
	}
	if all, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(all) > maxRecords+1 {
		t.Errorf("%d records, %v", len(all), err)
	}
}

// TestOnce: the same plan does not run twice at once.
func TestOnce(t *testing.T) {
	m, dir := &machine{}, t.TempDir()
	var second error
	_, err := m.try(t, dir, `[{"tool":"t"}]`, func(o *Options) {
		o.Call = func(context.Context, plancheck.Call, json.RawMessage) Result {
			_, second = m.try(t, dir, `[{"tool":"t"}]`, nil)
			return Result{State: Done, Output: json.RawMessage(`1`)}
		}
	})
	if err != nil || len(m.calls) > 0 || second == nil || !strings.HasPrefix(second.Error(), "this plan is running") {
		t.Errorf("%v, %v, %v", err, second, m.calls)
	}
}
