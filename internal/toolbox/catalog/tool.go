// Package catalog stores descriptions of tools. It does not run tools.
//
// It imports them from MCP servers, tools/list documents, JSON lines and OpenAPI
// descriptions. It trusts none of these: sizes are bounded, references out of a document
// are never followed, and a tool with an invalid schema is kept without parameters.
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
	MaxName        = 200       // runes of a server's or a tool's name
	MaxDescription = 64 << 10  // bytes; longer text is truncated
	MaxSchema      = 512 << 10 // bytes of one schema; a larger one is invalid
	MaxAnnotations = 64 << 10  // bytes; larger annotations are dropped
	MaxDependsOn   = 1000      // tools that one tool can be declared to need
)

// DocumentServer is not allowed as a server's name, because in the co-usage graph the IDs
// "doc:path" are documents.
const DocumentServer = "doc"

// Tool is one tool of a server.
type Tool struct {
	// ID is "server:name", or the name alone if the server is unknown. A second import
	// does not change it.
	ID     string `json:"id"`
	Server string `json:"server,omitempty"`
	Name   string `json:"name"`
	Title  string `json:"title,omitempty"`
	// Description is the text from the source.
	Description string `json:"description,omitempty"`
	// Input and Output are the imported JSON Schemas; nil if there are none.
	Input  json.RawMessage `json:"inputSchema,omitempty"`
	Output json.RawMessage `json:"outputSchema,omitempty"`
	// Annotations are the imported hints of the server.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	// DependsOn lists the names of the tools that this one is declared to need.
	DependsOn []string `json:"dependsOn,omitempty"`
	// SchemaError is the error of an invalid schema.
	SchemaError string `json:"schemaError,omitempty"`
	// Flags lists signs of hostile text, which does not change the tool.
	Flags []Flag `json:"flags,omitempty"`
	// Takes and Gives are the parameters of the input and of the output schema.
	Takes []Parameter `json:"takes,omitempty"`
	Gives []Parameter `json:"gives,omitempty"`
}

// Parameter is a property of a tool's input or output.
type Parameter struct {
	// Name is the property's name. Path is the names from the root to it, joined by dots;
	// "[]" follows the name of an array that contains it.
	Name string `json:"name"`
	Path string `json:"path"`
	// Types lists JSON types, sorted. Empty means any.
	Types       []string `json:"types,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Description string   `json:"description,omitempty"`
	// Settled reports that the schema supplies the value: a default, a constant, or an
	// enumeration of one value.
	Settled bool `json:"settled,omitempty"`
}

// MakeID returns the ID of a tool, given the names of its server and of the tool.
func MakeID(server, name string) string {
	if server == "" || strings.HasPrefix(name, server+":") {
		return name
	}
	return server + ":" + name
}

// BareName returns the name without the name of the server.
func (t *Tool) BareName() string {
	if t.Server == "" {
		return t.Name
	}
	return strings.TrimPrefix(t.Name, t.Server+":")
}

// New completes a tool that has names, texts and schemas: it checks the names, truncates the
// texts, reads the schemas and sets the ID. It appends the error of an invalid schema to
// SchemaError and does not fail.
func New(t Tool) (Tool, error) { return newTool(t, newSchemas(2)) }

// newTool is New with a cache of schemas.
func newTool(t Tool, schemas *schemaCache) (Tool, error) {
	t.Name, t.Server = strings.TrimSpace(t.Name), strings.TrimSpace(t.Server)
	switch {
	case t.Name == "":
		return Tool{}, errors.New("it has no name")
	case utf8.RuneCountInString(t.Name) > MaxName || utf8.RuneCountInString(t.Server) > MaxName:
		return Tool{}, fmt.Errorf("the name of tool %.40q is longer than %d characters", t.Name, MaxName)
	case hasControl(t.Name) || hasControl(t.Server):
		return Tool{}, fmt.Errorf("the name of tool %.40q holds control characters", t.Name)
	case t.Server == DocumentServer || strings.HasPrefix(t.Name, DocumentServer+":"):
		return Tool{}, fmt.Errorf("tool %.40q: the server name %q is reserved for documents, use another one", t.Name, DocumentServer)
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
		schema, params, err := schemas.read(schema)
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

// clean returns s as valid UTF-8 without control characters except tabs and line ends,
// truncated to at most n bytes.
func clean(s string, n int) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), n)], "") // without a cut character at the end
}
