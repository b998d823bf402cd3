package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
)

// Limits on one import.
const (
	MaxDocument = 24 << 20 // bytes
	MaxTools    = 200_000
	maxSchemas  = 32 << 20 // bytes of schemas made of one OpenAPI description
	maxWarnings = 100      // kept warnings; the rest are counted
)

// wanted describes the formats of Read.
const wanted = "want an answer to tools/list, one tool a line, or OpenAPI 3"

var errSwagger = errors.New("a Swagger 2 description: convert it to OpenAPI 3 first")

// Batch has the tools of one source.
type Batch struct {
	// Server is the server of tools that named none.
	Server string
	// Tools have distinct ids and are in the source's order.
	Tools []Tool
	// Warnings are about single tools: refused ones and duplicates. There are at most
	// a hundred, and a last one that counts the rest.
	Warnings []string
	// Refused counts the tools that could not be kept.
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

// needs are names of tools, each alone or in an object with more about it.
type needs []string

func (n *needs) UnmarshalJSON(text []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("depends_on: %w", err)
	}
	for _, raw := range list {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(raw, &named.Name) != nil {
			if err := json.Unmarshal(raw, &named); err != nil {
				return fmt.Errorf("depends_on: %w", err)
			}
		}
		*n = append(*n, named.Name)
	}
	return nil
}

func (d *definition) tool(server string) Tool {
	t := Tool{Name: d.Name, Server: d.Server, Title: d.Title, Description: d.Description, Input: d.Input, Output: d.Output, Annotations: d.Annotations, DependsOn: d.DependsOn}
	if t.Server == "" {
		t.Server = server
	}
	if t.Server == "" { // "server:tool" as the name
		if s, rest, ok := strings.Cut(t.Name, ":"); ok && s != "" && rest != "" && !strings.Contains(s, " ") {
			t.Server = s
		}
	}
	for _, other := range []json.RawMessage{d.Input2, d.Parameters} {
		if t.Input == nil {
			t.Input = other
		}
	}
	if t.Output == nil {
		t.Output = d.Output2
	}
	if t.DependsOn == nil {
		t.DependsOn = d.DependsOn2
	}
	if t.Title == "" && len(d.Annotations) > 0 {
		var hints struct {
			Title string `json:"title"`
		}
		if json.Unmarshal(d.Annotations, &hints) == nil {
			t.Title = hints.Title
		}
	}
	return t
}

// Read reads a document that describes tools: an answer to tools/list (a bare
// array, {"tools": […]} or the whole JSON-RPC response), one tool a line, or an
// OpenAPI 3.0 or 3.1 description in JSON or YAML. server names the server of
// tools without one; "" leaves them without. A document that cannot be read is an
// error that says where; a single tool that cannot be kept is a warning.
func Read(r io.Reader, server string) (*Batch, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxDocument {
		return nil, fmt.Errorf("the document is larger than %d MiB", MaxDocument>>20)
	}
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	switch {
	case len(text) == 0:
		return nil, errors.New("the document is empty")
	case text[0] == '[':
		return readList(text, server)
	case text[0] != '{':
		if looksLikeOpenAPI(text) {
			return readOpenAPI(text, server)
		}
		if bytes.HasPrefix(text, []byte("swagger:")) || bytes.Contains(text, []byte("\nswagger:")) {
			return nil, errSwagger
		}
		return nil, errors.New("neither JSON nor an OpenAPI description in YAML; " + wanted)
	}
	var d struct {
		OpenAPI json.RawMessage `json:"openapi"`
		Swagger json.RawMessage `json:"swagger"`
		Tools   json.RawMessage `json:"tools"`
		Result  *struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&d); err != nil || len(bytes.TrimSpace(text[dec.InputOffset():])) > 0 {
		return readLines(text, server) // which finds the line of the error
	}
	switch {
	case d.OpenAPI != nil:
		return readOpenAPI(text, server)
	case d.Swagger != nil:
		return nil, errSwagger
	case d.Tools != nil:
		return readList(d.Tools, server)
	case d.Result != nil && d.Result.Tools != nil:
		return readList(d.Result.Tools, server)
	case d.Error != nil:
		return nil, fmt.Errorf("the document is an error answer: %s", shorten(d.Error.Message))
	}
	return readLines(text, server)
}

func readList(text []byte, server string) (*Batch, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("reading the list of tools: %w", err)
	}
	defs := make([]definition, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &defs[i]); err != nil {
			return nil, fmt.Errorf("tool %d of the list: %w", i+1, err)
		}
	}
	return newBatch(context.Background(), defs, server)
}

func readLines(text []byte, server string) (*Batch, error) {
	var defs []definition
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var d definition
		if err := json.Unmarshal(line, &d); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		defs = append(defs, d)
	}
	return newBatch(context.Background(), defs, server)
}

// schemaSet shares equal schemas.
type schemaSet struct {
	known map[[sha256.Size]byte]json.RawMessage
	made  int // bytes of all, also of equal ones
}

func (s *schemaSet) shared(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return schema
	}
	s.made += len(schema)
	key := sha256.Sum256(schema)
	if same, ok := s.known[key]; ok {
		return same
	}
	if s.known == nil {
		s.known = map[[sha256.Size]byte]json.RawMessage{}
	}
	s.known[key] = schema
	return schema
}

// schemaCache holds the parameters of schemas. It is safe for concurrent use.
type schemaCache struct{ known sync.Map } // of the hash of a schema

func (c *schemaCache) parameters(schema []byte) ([]Parameter, error) {
	type result struct {
		found []Parameter
		err   error
	}
	key := sha256.Sum256(schema)
	if r, ok := c.known.Load(key); ok {
		return r.(result).found, r.(result).err
	}
	found, err := Parameters(schema)
	c.known.Store(key, result{found, err})
	return found, err
}

// newBatch completes the tools and keeps one of each id, the last. It ends early with ctx.
func newBatch(ctx context.Context, defs []definition, server string) (*Batch, error) {
	tools := make([]Tool, len(defs))
	for i := range defs {
		tools[i] = defs[i].tool(server)
	}
	return complete(ctx, tools, server)
}

func complete(ctx context.Context, tools []Tool, server string) (*Batch, error) {
	if len(tools) > MaxTools {
		return nil, fmt.Errorf("%d tools, want at most %d in one import", len(tools), MaxTools)
	}
	errs := make([]error, len(tools))
	// Compiling schemas is nearly all the work, and tools of one server have many in common.
	var wg sync.WaitGroup
	var known schemaCache
	workers := min(runtime.GOMAXPROCS(0), len(tools))
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(tools) && ctx.Err() == nil; i += workers {
				tools[i], errs[i] = newTool(tools[i], known.parameters)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("reading the schemas: %w", err)
	}
	b := &Batch{Server: server}
	last := make(map[string]int, len(tools))
	for i := range tools {
		last[tools[i].ID] = i
	}
	for i := range tools {
		switch {
		case errs[i] != nil:
			b.Refused++
			b.warn("tool %d is refused: %v", i+1, errs[i])
		case last[tools[i].ID] != i:
			b.warn("tool %q stands twice; the later one is kept", tools[i].ID)
		default:
			b.Tools = append(b.Tools, tools[i])
		}
	}
	if len(b.Tools) == 0 && b.Refused > 0 {
		return nil, fmt.Errorf("no tool can be kept; %s; %s", b.Warnings[0], wanted)
	}
	if b.more > 0 {
		b.Warnings = append(b.Warnings, fmt.Sprintf("and %d more", b.more))
	}
	return b, nil
}

func (b *Batch) warn(format string, args ...any) {
	if len(b.Warnings) == maxWarnings {
		b.more++
		return
	}
	b.Warnings = append(b.Warnings, fmt.Sprintf(format, args...))
}
