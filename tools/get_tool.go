package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cairn/internal/base/owner"
	"cairn/internal/text/fit"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
)

type getToolArgs struct {
	MaxTokens *integer `json:"max_tokens,omitempty" schema:"min=200"`
	Name      string   `json:"name" schema:"min=1,max=401" jsonschema:"Such as 'github:create_issue', or 'create_issue' if only one server has it"`
}

// toolAnswer is the answer of get_tool.
type toolAnswer struct {
	ToolID       string          `json:"tool_id"`
	ServerID     string          `json:"server_id,omitempty"`
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
	// Example is the shortest known arguments of a successful call, with secrets masked.
	Example     json.RawMessage `json:"example,omitempty"`
	DependsOn   []string        `json:"depends_on,omitempty"`
	SchemaError string          `json:"schema_error,omitempty"`
	Flags       []catalog.Flag  `json:"flags,omitempty"`
	// Omitted counts the lines of the description and the properties of each schema that
	// did not fit into max_tokens.
	Omitted map[string]int `json:"omitted,omitempty"`
}

// parts returns the parts of the answer that can be shortened, the most important first.
func (a *toolAnswer) parts() []fit.Part {
	omit := func(name string, n int) {
		if a.Omitted == nil {
			a.Omitted = map[string]int{}
		}
		if a.Omitted[name] = n; n == 0 {
			delete(a.Omitted, name)
		}
	}
	description := fit.Lines(&a.Description, func(kept, all int) { omit("description", all-kept) })
	description.Half = true
	parts := []fit.Part{description}
	for _, s := range []struct {
		name   string
		schema *json.RawMessage
	}{{"input_schema", &a.InputSchema}, {"output_schema", &a.OutputSchema}, {"annotations", &a.Annotations}, {"example", &a.Example}} {
		if *s.schema != nil {
			parts = append(parts, schemaPart(s.schema, func(n int) { omit(s.name, n) }))
		}
	}
	return parts
}

// schemaPart returns the part for a schema, whose units are its properties, the required
// ones first. Keep calls omitted with the number of omitted properties.
func schemaPart(schema *json.RawMessage, omitted func(n int)) fit.Part {
	whole := *schema
	var s struct {
		Type       json.RawMessage            `json:"type,omitempty"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required,omitempty"`
	}
	_ = json.Unmarshal(whole, &s) // a schema without properties is one unit
	names := slices.SortedFunc(maps.Keys(s.Properties), func(x, y string) int {
		need := func(name string) int { return slices.Index(append(slices.Clone(s.Required), name), name) }
		return cmp.Or(cmp.Compare(need(x), need(y)), cmp.Compare(x, y))
	})
	properties := s.Properties
	units := max(1, len(names))
	return fit.Part{
		Units: units,
		Unit: func(i int) any {
			if len(names) == 0 {
				return whole
			}
			return map[string]json.RawMessage{names[i]: properties[names[i]]}
		},
		Keep: func(n int) {
			omitted(units - n)
			if n == units {
				*schema = whole
				return
			}
			s.Properties = map[string]json.RawMessage{}
			for _, name := range names[:n] {
				s.Properties[name] = properties[name]
			}
			*schema, _ = json.Marshal(s) // never fails: its values were JSON
		},
	}
}

func (c *catalogTools) get(ctx context.Context, a getToolArgs) (*toolAnswer, error) {
	t, err := lookup(ctx, c.box, "name", a.Name)
	if err != nil {
		return nil, err
	}
	record(ctx, func(s *usage.Session) { s.Fetched(t.ID) })
	example, err := toolbox.ExampleOp.Call(ctx, c.box, t.ID, nil)
	if err != nil {
		return nil, err
	}
	answer := &toolAnswer{
		ToolID: t.ID, ServerID: t.Server, Name: t.Name, Title: t.Title, Description: t.Description,
		InputSchema: object(t.Input), OutputSchema: object(t.Output), Annotations: object(t.Annotations),
		Example: example, DependsOn: t.DependsOn, SchemaError: t.SchemaError, Flags: t.Flags,
	}
	if err := c.o.budget(a.MaxTokens).Fit(answer, answer.parts()); err != nil {
		return nil, invalid("%s", err)
	}
	return answer, nil
}

// object returns a schema, or nil if it is neither an object nor true or false. The
// field schema_error describes the fault.
func object(raw json.RawMessage) json.RawMessage {
	if s := string(raw); len(raw) > 0 && raw[0] == '{' || s == "true" || s == "false" {
		return raw
	}
	return nil
}

// lookup returns the tool of a name, which is the value of an argument.
func lookup(ctx context.Context, box *owner.Folder, argument, name string) (catalog.Tool, error) {
	if name == "" {
		return catalog.Tool{}, invalid("Missing required parameter: '%s'", argument)
	}
	t, err := toolbox.LookupOp.Call(ctx, box, name, nil)
	if e, ok := errors.AsType[*catalog.UnknownError](err); ok {
		data := map[string]any{"name": e.Name, "nearest": append([]string{}, e.Nearest...), "suggestion": "Use one of nearest"}
		if len(e.Nearest) == 0 {
			data["suggestion"] = "Import the tool's server with `cairn tools import`"
		}
		return t, &Failure{Code: CodeNotFound, Message: "Tool Not Found", Data: data}
	}
	if e, ok := errors.AsType[*catalog.AmbiguousError](err); ok {
		return t, &Failure{Code: CodeNotFound, Message: fmt.Sprintf("Tool Not Found: %d servers have a tool of this name", len(e.Candidates)),
			Data: map[string]any{"name": e.Name, "candidates": e.Candidates[:min(len(e.Candidates), maxRelated)]}}
	}
	return t, err
}
