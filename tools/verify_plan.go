package tools

import (
	"context"
	"encoding/json"

	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/plancheck"
)

type verifyPlanArgs struct {
	Plan   json.RawMessage `json:"plan" jsonschema:"{calls:[{id,tool,arguments}],edges:[{from,to}]}, edges optional; or an answer of suggest_dag"`
	Intent string          `json:"intent,omitempty" schema:"max=8192" jsonschema:"The task in words"`
}

func verifyPlan(box *owner.Folder) tool {
	return tool{
		name: "verify_plan", title: "Check a plan of tool calls", groups: []Group{Catalog}, readOnly: true,
		description: `Check a plan of calls of tools of the catalogue before you run it: unknown tools, wrong or missing arguments, order, cycles, missing steps. It runs none.
Use it for your own plans and those of suggest_dag. Not for making a plan (suggest_dag). "$ID.output" in an argument is an output of call ID ("c0", "c1", … by default). Read "findings" before you follow "repaired".`,
		handler: codeHandler(func(ctx context.Context, a verifyPlanArgs) (*plancheck.Report, error) {
			if len(a.Plan) == 0 {
				return nil, invalid("Missing required parameter: 'plan'")
			}
			p, err := plancheck.ReadPlan(a.Plan)
			if err != nil {
				return nil, invalid("plan: %s", err)
			}
			if hasText(a.Intent) {
				p.Intent = a.Intent
			}
			return toolbox.CheckOp.Call(ctx, box, p, progressOf(ctx))
		}),
	}
}
