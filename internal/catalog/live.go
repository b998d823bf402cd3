package catalog

import (
	"context"
	"encoding/json"
	"fmt"
)

// Limits on what a live server may say.
const (
	MaxPages     = 1000
	MaxLiveBytes = 24 << 20 // of tool definitions, over all pages
)

// Page is one answer to tools/list.
type Page struct {
	Tools []json.RawMessage // in the server's order, each as the protocol writes a tool
	Next  string            // the cursor of the next page; "" after the last
}

// Lister is a connected MCP server. The client over the protocol's SDK is one.
type Lister interface {
	// Server is the server's own name, "" without one.
	Server() string
	// ListTools returns the page at a cursor, "" for the first.
	ListTools(ctx context.Context, cursor string) (Page, error)
}

// FromServer lists the tools of a server, page by page. server replaces the server's
// own name, unless it is "". A repeated cursor and a list beyond the limits are
// errors.
func FromServer(ctx context.Context, l Lister, server string) (*Batch, error) {
	if server == "" {
		server = oneLine(clean(l.Server(), MaxName))
	}
	var defs []definition
	size, seen := 0, map[string]bool{"": true}
	for cursor, pages := "", 1; ; pages++ {
		if pages > MaxPages {
			return nil, fmt.Errorf("the server has more than %d pages of tools", MaxPages)
		}
		page, err := l.ListTools(ctx, cursor)
		if err != nil {
			return nil, fmt.Errorf("listing tools: %w", err)
		}
		for _, raw := range page.Tools {
			if size += len(raw); size > MaxLiveBytes {
				return nil, fmt.Errorf("the server's tools are larger than %d MiB", MaxLiveBytes>>20)
			}
			if len(defs) == MaxTools {
				return nil, fmt.Errorf("the server has more than %d tools", MaxTools)
			}
			var d definition
			if err := json.Unmarshal(raw, &d); err != nil {
				return nil, fmt.Errorf("tool %d: %w", len(defs)+1, err)
			}
			d.Server = "" // a server lists its own tools only
			defs = append(defs, d)
		}
		if page.Next == "" {
			return newBatch(ctx, defs, server)
		}
		if seen[page.Next] {
			return nil, fmt.Errorf("the server repeats the cursor %q", shorten(page.Next))
		}
		seen[page.Next] = true
		cursor = page.Next
	}
}
