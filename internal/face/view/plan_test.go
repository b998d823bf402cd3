package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/toolbox/suggest"
)

func TestPlanSteps(t *testing.T) {
	s := &suggest.Suggestion{
		Mode: suggest.Advised, Confidence: .526,
		Tasks: []suggest.Task{
			{ID: "task_0", Tool: "fs:read", Confidence: .8, Part: "read a file", Remembered: true, Arguments: map[string]any{"path": "a.json"}},
			{ID: "task_1", Tool: "mail:send", Confidence: .4, Dangerous: true},
			{ID: "task_2", Tool: "log:close", Prerequisite: true, Rationale: "ends the session"},
		},
		Missing:  []suggest.Missing{{Task: "task_1", Input: "to"}},
		Warnings: []string{"low confidence 0.53: check", "no tool fits", "1 of 2 edges stand on types"},
	}
	s.DAG.Edges = []suggest.Edge{
		{FromTask: "task_0", ToTask: "task_1", DataPath: "output.content → input.body", Reason: "same name", Ambiguous: true},
		{FromTask: "task_1", ToTask: "task_2", Reason: "declared"},
	}
	want := []PlanStep{
		{ID: "task_0", Tool: "fs:read", Why: "fits “read a file” to 80 %, and was used for similar tasks", Takes: []string{`with “path” "a.json"`}},
		{ID: "task_1", Tool: "mail:send", Why: "fits 40 %", Dangerous: true, Takes: []string{"may take “body” from “content” of step 1: same name", "needs a value for “to”"}},
		{ID: "task_2", Tool: "log:close", Why: "included because it ends the session", Takes: []string{"after step 2: declared"}},
	}
	if diff := cmp.Diff(want, PlanSteps(s)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := PlanAdvice(&suggest.Suggestion{}); got != "no steps" {
		t.Errorf("a plan without steps: %s", got)
	}
	if got := PlanAdvice(s); got != "3 steps, 53 % sure: check it before you run it" {
		t.Errorf("advice %q", got)
	}
	s.Mode = suggest.Speculative
	if got := PlanAdvice(s); got != "3 steps, 53 % sure: you can run it when it has 1 missing value" {
		t.Errorf("advice %q", got)
	}
	s.Missing = nil
	if got := PlanAdvice(s); got != "3 steps, 53 % sure: you can run it as it is" {
		t.Errorf("advice %q", got)
	}
	if diff := cmp.Diff([]string{"no tool fits"}, PlanWarnings(s)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
