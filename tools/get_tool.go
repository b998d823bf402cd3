package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cairn/graphrank"
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
			data["suggestion"] = "Find tools with search_tools; `cairn tools add` and `cairn tools import` add those of a server"
		}
		return t, &Failure{Code: CodeNotFound, Message: "Tool Not Found", Data: data}
	}
	if e, ok := errors.AsType[*catalog.AmbiguousError](err); ok {
		return t, &Failure{Code: CodeNotFound, Message: fmt.Sprintf("Tool Not Found: %d servers have a tool of this name", len(e.Candidates)),
			Data: map[string]any{"name": e.Name, "candidates": e.Candidates[:min(len(e.Candidates), maxRelated)]}}
	}
	return t, err
}

type relatedToolsArgs struct {
	Tool      string  `json:"tool" schema:"min=1,max=8192" jsonschema:"A tool's id or name, or 'doc:' and a document's path"`
	Limit     integer `json:"limit,omitempty" schema:"default=10,min=1,max=50"`
	Documents bool    `json:"documents,omitempty" schema:"default=false" jsonschema:"Also list documents"`
}

const (
	// maxRelated bounds the entries of an answer.
	maxRelated = 50
	// maxSkipped bounds the documents among the related nodes that a search for tools
	// skips.
	maxSkipped = 1000
)

// relatedAnswer is the answer of related_tools.
type relatedAnswer struct {
	ToolID  string        `json:"tool_id"`
	Related []relatedTool `json:"related"`
	Message string        `json:"message,omitempty"`
}

// relatedTool is a tool, or a document with its path instead of an id.
type relatedTool struct {
	ToolID   string  `json:"tool_id,omitempty"`
	Path     string  `json:"path,omitempty"`
	Relation string  `json:"relation"`
	Score    float64 `json:"score"`
	// Count is the number of times that the relation was recorded, after decay; 0 for an
	// indirect relation.
	Count float64 `json:"count,omitempty"`
}

func (c *catalogTools) related(ctx context.Context, a relatedToolsArgs) (*relatedAnswer, error) {
	answer := &relatedAnswer{ToolID: a.Tool, Related: []relatedTool{}}
	known := false
	// A recorded tool may be missing from the catalogue, which contains no documents.
	if err := c.graph.Read(ctx, c.box, func(g *graphrank.Graph) {
		known = g.Has(a.Tool)
	}); err != nil {
		return nil, err
	}
	if _, document := graphrank.DocumentPath(a.Tool); !known && !document {
		t, err := lookup(ctx, c.box, "tool", a.Tool)
		if err != nil {
			return nil, err
		}
		answer.ToolID = t.ID
	}
	err := c.graph.Read(ctx, c.box, func(g *graphrank.Graph) {
		k := int(a.Limit)
		if !a.Documents {
			k += maxSkipped // many of the first nodes may be documents
		}
		for _, s := range g.Related(answer.ToolID, k) {
			r := relatedTool{ToolID: s.ID, Score: s.Score, Relation: "related"}
			if path, ok := graphrank.DocumentPath(s.ID); ok {
				if !a.Documents {
					continue
				}
				r.ToolID, r.Path = "", path
			}
			r.Relation, r.Count = relation(g, answer.ToolID, s.ID)
			if answer.Related = append(answer.Related, r); len(answer.Related) == int(a.Limit) {
				break
			}
		}
	})
	if len(answer.Related) == 0 {
		answer.Message = "no use together with other tools is recorded"
	}
	return answer, err
}

// relation returns the relation of other to id, by the heavier of the edges between them.
func relation(g *graphrank.Graph, id, other string) (name string, count float64) {
	to, after := g.Edge(id, other)
	from, before := g.Edge(other, id)
	switch {
	case !after && !before:
		return "related", 0
	case after && (!before || to.Weight() >= from.Weight()):
		if to.Type == graphrank.Dependency {
			return "needs_this", to.Count
		}
		return "often_after", to.Count
	case from.Type == graphrank.Dependency:
		return "needed", from.Count
	}
	return "often_before", from.Count
}
