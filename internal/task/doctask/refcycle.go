package doctask

import (
	"context"
	"path"
	"strings"

	"cairn/internal/base/taskdag"
	"cairn/internal/text/markdown"
)

// ReferenceCycle returns the shortest cycle of documents, cards included, that refer to each
// other by "@/path" in their text or by refs in their front matter. The result lists the
// workspace paths from the smallest back to itself. It is nil if there is no cycle.
// ReferenceCycle ignores plain links, which may form cycles.
func (d *Docs) ReferenceCycle(ctx context.Context) ([]string, error) {
	all, err := d.list(ctx, "")
	if err != nil {
		return nil, err
	}
	nodes := make([]taskdag.Task, 0, len(all))
	for _, p := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		src, _, err := d.files.Read(p)
		if err != nil {
			continue // removed meanwhile, or not a text
		}
		n := taskdag.Task{ID: p}
		for _, r := range markdown.References(src) {
			if r.Path != "" {
				n.DependsOn = append(n.DependsOn, r.Path)
			}
		}
		for _, ref := range markdown.ReadFrontMatter(src).Strings("refs") {
			ref, _, _ = strings.Cut(strings.TrimPrefix(ref, "/"), "#")
			n.DependsOn = append(n.DependsOn, path.Clean(ref))
		}
		nodes = append(nodes, n)
	}
	g, err := taskdag.New(nodes)
	if err != nil {
		return nil, err // unreachable: paths are distinct
	}
	if c := g.Cycle(); c != nil {
		return c.Path, nil
	}
	return nil, nil
}
