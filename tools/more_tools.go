package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// moreTools is the name of the tool that calls tools that are not listed.
const moreTools = "more_tools"

type moreArgs struct {
	Action    string          `json:"action,omitempty" jsonschema:"Tool to call; omit to list all"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"Its arguments; without required ones, it is described"`
}

// describedTool is a tool that more_tools can call.
type describedTool struct {
	Action      string          `json:"action"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

type moreAnswer struct {
	Tools []describedTool `json:"tools"`
}

// more is the tool more_tools, which calls the hidden tools.
func (s *Server) more(hidden []tool) tool {
	return tool{
		name: moreTools, title: "Further tools", groups: []Group{Auto}, notIdempotent: true, noSchema: true,
		description: fmt.Sprintf(`Call an unlisted tool, by its name as action: %s.
Use it when one fits better; without arguments it is described.`, strings.Join(names(hidden), ", ")),
		handler: codeHandler(func(context.Context, moreArgs) (*moreAnswer, error) {
			answer := &moreAnswer{Tools: []describedTool{}}
			for _, t := range hidden {
				first, _, _ := strings.Cut(t.description, ". ")
				first, _, _ = strings.Cut(first, "\n")
				answer.Tools = append(answer.Tools, describedTool{Action: t.name, Description: first})
			}
			return answer, nil
		}),
	}
}

func (t tool) describe() describedTool {
	return describedTool{t.name, t.description, schemaJSON(argumentSchema(t.args))}
}

// unwrap returns the tool and the arguments of a call. For a call of more_tools it returns
// the tool that the call names, so that its limits and permissions apply.
func (s *Server) unwrap(t tool, raw json.RawMessage) (tool, json.RawMessage, *Failure) {
	if t.name != moreTools {
		return t, raw, nil
	}
	t.readOnly = true // unless it calls another tool
	var a moreArgs
	if err := decode(raw, &a); err != nil {
		return t, raw, FailureOf(err)
	}
	if a.Action == "" {
		return t, raw, nil
	}
	inner, ok := s.find(a.Action)
	if !ok || a.Action == moreTools {
		f := invalid("action: no tool %q", a.Action)
		if how := s.turnOn(a.Action); how != "" {
			f = invalid("action: %s", how)
		}
		return t, raw, f
	}
	if len(a.Arguments) == 0 && len(argumentSchema(inner.args).Required) > 0 {
		t.call = func(context.Context, json.RawMessage) (any, error) {
			return &moreAnswer{Tools: []describedTool{inner.describe()}}, nil
		}
		return t, raw, nil
	}
	return inner, a.Arguments, nil
}
