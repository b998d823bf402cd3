package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
)

// Limits on the tools of a live server.
const (
	MaxPages     = 1000
	MaxLiveBytes = 24 << 20 // of tool definitions, over all pages
)

// Page is one answer to tools/list.
type Page struct {
	Tools []json.RawMessage // in the server's order, in the format of the protocol
	Next  string            // the cursor of the next page; "" after the last
}

// Lister is a connected MCP server.
type Lister interface {
	// Server returns the server's own name, "" if it has none.
	Server() string
	// ListTools returns the page at a cursor, "" for the first.
	ListTools(ctx context.Context, cursor string) (Page, error)
}

// FromServer lists the tools of a server, page by page. server, unless it is "", replaces
// the server's own name. FromServer fails if a cursor repeats or the list exceeds the limits.
func FromServer(ctx context.Context, l Lister, server string) (*Batch, error) {
	if server == "" {
		server = oneLine(clean(l.Server(), MaxName))
	}
	return newBatch(ctx, definitions(ctx, l), server)
}

// definitions yields the tools of a server, page by page.
func definitions(ctx context.Context, l Lister) iter.Seq2[definition, error] {
	return func(yield func(definition, error) bool) {
		fail := func(format string, args ...any) { yield(definition{}, fmt.Errorf(format, args...)) }
		size, tools, seen := 0, 0, map[string]bool{"": true}
		for cursor, pages := "", 1; ; pages++ {
			if pages > MaxPages {
				fail("the server has more than %d pages of tools", MaxPages)
				return
			}
			page, err := l.ListTools(ctx, cursor)
			if err != nil {
				fail("listing tools: %w", err)
				return
			}
			for _, raw := range page.Tools {
				tools++
				if size += len(raw); size > MaxLiveBytes {
					fail("the server's tools are larger than %d MiB", MaxLiveBytes>>20)
					return
				}
				var d definition
				if err := json.Unmarshal(raw, &d); err != nil {
					fail("tool %d: %w", tools, err)
					return
				}
				d.Server = "" // a server lists only its own tools
				if !yield(d, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			if seen[page.Next] {
				fail("the server repeats the cursor %q", shorten(page.Next))
				return
			}
			seen[page.Next] = true
			cursor = page.Next
		}
	}
}
