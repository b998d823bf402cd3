// Package catalog stores descriptions of tools. It does not run tools.
//
// It imports them from MCP servers, tools/list documents, JSON lines and OpenAPI
// descriptions. None of these is trusted: sizes are bounded, compiling a schema never
// follows a reference out of the document, and a tool with a broken schema is kept
// without parameters.
package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on one tool.
const (
	MaxName        = 200       // runes, of a server's or a tool's name
	MaxDescription = 64 << 10  // bytes; longer text is cut
	MaxSchema      = 512 << 10 // bytes of one schema; a larger one counts as broken
	MaxAnnotations = 64 << 10  // bytes; larger ones are left out
	MaxDependsOn   = 1000      // tools that one tool may be declared to need
)

// DocumentServer is not allowed as a server's name: in the co-usage graph the ids
// "doc:path" are documents.
const DocumentServer = "doc"

// Tool is one tool of a server.
type Tool struct {
	// ID is "server:name", or the name alone when the server is unknown. It
	// stays the same over re-imports.
	ID     string `json:"id"`
	Server string `json:"server,omitempty"`
	Name   string `json:"name"`
	Title  string `json:"title,omitempty"`
	// Description is the text from the source.
	Description string `json:"description,omitempty"`
	// Input and Output are JSON Schemas as imported; nil when there is none.
	Input  json.RawMessage `json:"inputSchema,omitempty"`
	Output json.RawMessage `json:"outputSchema,omitempty"`
	// Annotations are the server's hints, as imported.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	// DependsOn names the tools that this one is declared to need.
	DependsOn []string `json:"dependsOn,omitempty"`
	// SchemaError is the error of a broken schema; the tool is kept.
	SchemaError string `json:"schemaError,omitempty"`
	// Flags are signs of hostile text; the tool is kept unchanged.
	Flags []Flag `json:"flags,omitempty"`
	// Takes and Gives are the parameters of the input and the output schema.
	Takes []Parameter `json:"takes,omitempty"`
	Gives []Parameter `json:"gives,omitempty"`
}

// Parameter is a property of a tool's input or output.
type Parameter struct {
	// Name is the property's name, Path the names from the root to it, joined by
	// dots; "[]" follows the name of an array on the path.
	Name string `json:"name"`
	Path string `json:"path"`
	// Types are JSON types, sorted; empty means any.
	Types       []string `json:"types,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Description string   `json:"description,omitempty"`
	// Settled is true when the schema itself supplies the value: a default, a
	// constant, or an enumeration of one.
	Settled bool `json:"settled,omitempty"`
}

// MakeID joins a server's and a tool's name.
func MakeID(server, name string) string {
	if server == "" || strings.HasPrefix(name, server+":") {
		return name
	}
	return server + ":" + name
}

// BareName returns the name without that of the server.
func (t *Tool) BareName() string {
	if t.Server == "" {
		return t.Name
	}
	return strings.TrimPrefix(t.Name, t.Server+":")
}

// New completes a tool with names, texts and schemas: it checks the names, truncates
// the texts, reads the schemas and sets the ID. A broken schema is in SchemaError,
// after what is there, and is not an error.
func New(t Tool) (Tool, error) {
	return newTool(t, func(schema json.RawMessage) (json.RawMessage, []Parameter, error) {
		found, err := Parameters(schema)
		return schema, found, err
	})
}

// newTool is New with a function that reads schemas. It may return another copy of one.
func newTool(t Tool, parameters func(schema json.RawMessage) (json.RawMessage, []Parameter, error)) (Tool, error) {
	t.Name, t.Server = strings.TrimSpace(t.Name), strings.TrimSpace(t.Server)
	switch {
	case t.Name == "":
		return Tool{}, errors.New("it has no name")
	case utf8.RuneCountInString(t.Name) > MaxName || utf8.RuneCountInString(t.Server) > MaxName:
		return Tool{}, fmt.Errorf("the name of tool %.40q is longer than %d characters", t.Name, MaxName)
	case hasControl(t.Name) || hasControl(t.Server):
		return Tool{}, fmt.Errorf("the name of tool %.40q holds control characters", t.Name)
	case t.Server == DocumentServer || strings.HasPrefix(t.Name, DocumentServer+":"):
		return Tool{}, fmt.Errorf("tool %.40q: %q is kept for documents, name its server something else", t.Name, DocumentServer)
	}
	t.ID = MakeID(t.Server, t.Name)
	t.Title = clean(t.Title, MaxName)
	t.Description = clean(t.Description, MaxDescription)
	var problems []string
	if t.SchemaError != "" {
		problems = append(problems, t.SchemaError)
	}
	read := func(kind string, schema json.RawMessage) (json.RawMessage, []Parameter) {
		if len(schema) == 0 || string(schema) == "null" {
			return nil, nil
		}
		if len(schema) > MaxSchema {
			problems = append(problems, fmt.Sprintf("%s schema: %d bytes, want at most %d", kind, len(schema), MaxSchema))
			return nil, nil
		}
		schema, params, err := parameters(schema)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s schema: %v", kind, err))
		}
		return schema, params
	}
	t.Input, t.Takes = read("input", t.Input)
	t.Output, t.Gives = read("output", t.Output)
	// The separator prevents matches across texts.
	texts := []string{t.Name, t.Title, t.Description}
	for _, p := range slices.Concat(t.Takes, t.Gives) {
		texts = append(texts, p.Name, p.Description)
	}
	t.Flags = Scan(strings.Join(texts, " | "))
	if !json.Valid(t.Annotations) || len(t.Annotations) > MaxAnnotations || string(t.Annotations) == "null" {
		t.Annotations = nil
	}
	t.DependsOn = slices.DeleteFunc(slices.Clone(t.DependsOn), func(name string) bool {
		return name == "" || hasControl(name) || utf8.RuneCountInString(name) > 2*MaxName+1
	})
	t.DependsOn = t.DependsOn[:min(len(t.DependsOn), MaxDependsOn)]
	t.SchemaError = strings.Join(problems, "; ")
	return t, nil
}

func hasControl(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// clean makes s valid UTF-8 without control characters except tabs and line ends, of
// at most n bytes, truncated at a rune.
func clean(s string, n int) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
