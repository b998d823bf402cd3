package stage

import (
	"cmp"
	"slices"
	"strings"
)

// A Template is a named plan.
type Template struct {
	Name string
	Plan []Stage
}

// defaultTemplate is the template of requests with neither a template nor a plan.
const defaultTemplate = "standard_query"

// custom is the template name of tasks with their own plan.
const custom = "custom"

// Templates are the named plans. Every plan starts with intent_analysis, as the
// specification requires, although two plans of its reference implementation do not.
var Templates = []Template{
	{"standard_query", []Stage{IntentAnalysis, EmbeddingLookup, ExecutorReasoning, Moderation, ResponsePackaging}},
	{"simple_lookup", []Stage{IntentAnalysis, EmbeddingLookup, ResponsePackaging}},
	{"complex_research", []Stage{IntentAnalysis, EmbeddingLookup, WebSearch, ExecutorReasoning, Moderation, ResponsePackaging}},
	{"web_enhanced", []Stage{IntentAnalysis, WebSearch, EmbeddingLookup, ExecutorReasoning, Moderation, ResponsePackaging}},
	{"quick_answer", []Stage{IntentAnalysis, EmbeddingLookup, ExecutorReasoning, ResponsePackaging}},
}

// plan returns the stages of a named template; "" means defaultTemplate.
func plan(name string) ([]Stage, error) {
	name = cmp.Or(name, defaultTemplate)
	names := make([]string, len(Templates))
	for i, t := range Templates {
		if t.Name == name {
			return slices.Clone(t.Plan), nil
		}
		names[i] = t.Name
	}
	return nil, refuse(CodeTemplate, "unknown template %.80q, want {%s}", name, strings.Join(names, ","))
}

// checkPlan returns an error if a plan cannot end with a response.
func checkPlan(p []Stage) error {
	if len(p) < 2 || p[0] != IntentAnalysis || p[len(p)-1] != ResponsePackaging {
		return refuse(CodePlan, "a plan starts with %s and ends with %s", IntentAnalysis, ResponsePackaging)
	}
	for i, s := range p {
		if !slices.Contains(Stages, s) {
			return refuse(CodePlan, "unknown stage %.80q in the plan, want {%s}", s, joinStages(Stages))
		}
		if slices.Contains(p[:i], s) {
			return refuse(CodePlan, "stage %q is in the plan twice", s)
		}
	}
	// Moderation sends the task back to the executor.
	if m := slices.Index(p, Moderation); m >= 0 && !slices.Contains(p[:m], ExecutorReasoning) {
		return refuse(CodePlan, "%s needs %s before it", Moderation, ExecutorReasoning)
	}
	return nil
}

func joinStages(list []Stage) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}
