package tools

import (
	"context"

	"cairn/graphrank"
)

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
	if err := c.graph.Read(ctx, c.box, func(g *graphrank.Graph) error {
		known = g.Has(a.Tool)
		return nil
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
	err := c.graph.Read(ctx, c.box, func(g *graphrank.Graph) error {
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
		return nil
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
