package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"
)

// Limits on one import.
const (
	MaxDocument  = 24 << 20 // bytes
	MaxTools     = 200_000
	maxSchemas   = 32 << 20 // bytes of schemas made of one OpenAPI description
	maxReadBytes = 32 << 20 // size of the parameters of all tools
	maxWarnings  = 100      // kept warnings; the rest are counted
)

// Timeout bounds the processing of a document after it has been read.
const Timeout = 2 * time.Minute

// wanted describes the formats of Read.
const wanted = "want a list of tools as in tools/list or in requests to models, one tool per line, or OpenAPI 3"

var errSwagger = errors.New("a Swagger 2 description: convert it to OpenAPI 3 first")

// Batch holds the tools of one source.
type Batch struct {
	// Tools holds tools with distinct IDs in the source's order.
	Tools []Tool
	// Warnings reports refused tools and duplicates. It has at most a hundred warnings,
	// and a last one that counts the rest.
	Warnings []string
	// Refused counts the invalid tools.
	Refused int

	more int // warnings beyond maxWarnings
}

// definition is a tool in the format of a source.
type definition struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Input2      json.RawMessage `json:"input_schema"`
	Parameters  json.RawMessage `json:"parameters"`
	Output      json.RawMessage `json:"outputSchema"`
	Output2     json.RawMessage `json:"output_schema"`
	Annotations json.RawMessage `json:"annotations"`
	DependsOn   needs           `json:"depends_on"`
	DependsOn2  needs           `json:"dependsOn"`
}

// needs is a list of names of tools, in JSON of strings or of objects with a name.
type needs []string

func (n *needs) UnmarshalJSON(text []byte) error {
	if text[0] != '[' && string(text) != "null" {
		return errors.New("depends_on: want a list of names")
	}
	for _, raw := range members(text) {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(raw, &named.Name) != nil {
			if err := json.Unmarshal(raw, &named); err != nil {
				return fmt.Errorf("depends_on: %w", err)
			}
		}
		if named.Name != "" && len(*n) < MaxDependsOn {
			*n = append(*n, named.Name)
		}
	}
	return nil
}

func (d *definition) tool(server string) Tool {
	t := Tool{Name: d.Name, Server: d.Server, Title: d.Title, Description: d.Description, Annotations: d.Annotations,
		Input: first(d.Input, d.Input2, d.Parameters), Output: first(d.Output, d.Output2), DependsOn: first(d.DependsOn, d.DependsOn2)}
	if inner := member(t.Input, "json"); inner != nil {
		t.Input = inner // as in a toolSpec
	}
	t.Server = cmp.Or(t.Server, server)
	if t.Server == "" { // "server:tool" as the name
		if s, rest, ok := strings.Cut(t.Name, ":"); ok && s != "" && rest != "" && !strings.Contains(s, " ") {
			t.Server = s
		}
	}
	if t.Title == "" {
		_ = json.Unmarshal(member(d.Annotations, "title"), &t.Title) // an error leaves ""
	}
	return t
}

// first returns the first list that is not nil.
func first[L ~[]E, E any](lists ...L) L {
	i := slices.IndexFunc(lists, func(l L) bool { return l != nil })
	return lists[max(i, 0)]
}

// Read reads a document that describes tools. It is an answer to tools/list (a bare array,
// {"tools": […]} or the whole JSON-RPC response), a request to a model, one tool per line, or an
// OpenAPI 3.0 or 3.1 description in JSON or YAML. server is the server of tools that name none;
// it may be "". An unreadable document is an error with the place of the fault, an invalid tool
// a warning.
func Read(ctx context.Context, r io.Reader, server string) (*Batch, error) {
	text, err := readAll(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("the document takes longer than %v", Timeout))
	defer cancel()
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	switch {
	case len(text) == 0:
		return nil, errors.New("the document is empty")
	case text[0] != '{' && text[0] != '[':
		if looksLikeOpenAPI(text) {
			return readOpenAPI(ctx, text, server)
		}
		if bytes.HasPrefix(text, []byte("swagger:")) || bytes.Contains(text, []byte("\nswagger:")) {
			return nil, errSwagger
		}
		return nil, errors.New("neither JSON nor an OpenAPI description in YAML; " + wanted)
	case text[0] == '[':
		return readList(ctx, text, server)
	case !json.Valid(text):
		return readPieces(ctx, bytes.Lines(text), "line %d", server) // its error has the line
	}
	list := first(member(text, "tools"), member(member(text, "result"), "tools"))
	failure := member(text, "error")
	switch {
	case member(text, "openapi") != nil:
		return readOpenAPI(ctx, text, server)
	case member(text, "swagger") != nil:
		return nil, errSwagger
	case list != nil:
		return readList(ctx, list, server)
	case failure != nil:
		var message string
		_ = json.Unmarshal(member(failure, "message"), &message) // an error leaves ""
		return nil, fmt.Errorf("the document is an error answer: %s", shorten(message))
	}
	return readPieces(ctx, slices.Values([][]byte{text}), "value %d", server)
}

// readAll reads a document. For a file it allocates one buffer of the file's size.
func readAll(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	if f, ok := r.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := f.Stat(); err == nil {
			b.Grow(int(min(max(info.Size(), 0), MaxDocument)) + bytes.MinRead)
		}
	}
	if _, err := b.ReadFrom(io.LimitReader(r, MaxDocument+1)); err != nil {
		return nil, err
	}
	if b.Len() > MaxDocument {
		return nil, fmt.Errorf("the document is larger than %d MiB", MaxDocument>>20)
	}
	return b.Bytes(), nil
}

func readList(ctx context.Context, text []byte, server string) (*Batch, error) {
	if !json.Valid(text) || text[0] != '[' {
		var list []struct{}
		return nil, fmt.Errorf("reading the list of tools: %w", json.Unmarshal(text, &list))
	}
	return readPieces(ctx, func(yield func([]byte) bool) {
		for _, raw := range members(text) {
			if !yield(raw) {
				return
			}
		}
	}, "tool %d of the list", server)
}

// readPieces reads the tools in pieces of JSON. It skips blank pieces. place is a format for the
// number of a piece in an error.
func readPieces(ctx context.Context, pieces iter.Seq[[]byte], place, server string) (*Batch, error) {
	return complete(ctx, server, func(add func(Tool) error) error {
		n := 0
		for piece := range pieces {
			n++
			if piece = bytes.TrimSpace(piece); len(piece) == 0 {
				continue
			}
			var d definition
			if err := json.Unmarshal(piece, &d); err != nil {
				return fmt.Errorf(place+": %w", n, err)
			}
			found := []definition{d}
			if d.Name == "" {
				if inner := wrapped(piece, 4); len(inner) > 0 {
					found = inner
				}
			}
			for i := range found {
				if err := add(found[i].tool(server)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// wrapped returns the definitions in at most depth objects and lists of a piece without a name, as
// {"type":"function","function":{…}} and requests to models have.
func wrapped(piece []byte, depth int) (found []definition) {
	for _, inner := range members(piece) {
		var d definition
		switch {
		case depth == 0:
		case json.Unmarshal(inner, &d) == nil && d.Name != "" && (d.Description != "" || d.tool("").Input != nil):
			found = append(found, d)
		default:
			found = append(found, wrapped(inner, depth-1)...)
		}
	}
	return found
}

func (b *Batch) warn(format string, args ...any) {
	if len(b.Warnings) == maxWarnings {
		b.more++
		return
	}
	b.Warnings = append(b.Warnings, fmt.Sprintf(format, args...))
}

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
	server = cmp.Or(server, oneLine(clean(l.Server(), MaxName)))
	return complete(ctx, server, func(add func(Tool) error) error {
		size, tools, seen := 0, 0, map[string]bool{"": true}
		for cursor, pages := "", 1; ; pages++ {
			if pages > MaxPages {
				return fmt.Errorf("the server has more than %d pages of tools", MaxPages)
			}
			page, err := l.ListTools(ctx, cursor)
			if err != nil {
				return fmt.Errorf("listing tools: %w", err)
			}
			for _, raw := range page.Tools {
				tools++
				if size += len(raw); size > MaxLiveBytes {
					return fmt.Errorf("the server's tools are larger than %d MiB", MaxLiveBytes>>20)
				}
				var d definition
				if err := json.Unmarshal(raw, &d); err != nil {
					return fmt.Errorf("tool %d: %w", tools, err)
				}
				d.Server = "" // a server lists only its own tools
				if err := add(d.tool(server)); err != nil {
					return err
				}
			}
			if page.Next == "" {
				return nil
			}
			if seen[page.Next] {
				return fmt.Errorf("the server repeats the cursor %q", shorten(page.Next))
			}
			seen[page.Next] = true
			cursor = page.Next
		}
	})
}
