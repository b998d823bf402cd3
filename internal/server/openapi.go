package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// description is the OpenAPI document of everything beside MCP that programs
// use, without what follows from the tools: the schemas of their arguments and
// answers, by their names, and the address it is served at.
//
//go:embed openapi.json
var description []byte

// describe adds the description at /api/openapi.json.
func (v *served) describe() {
	v.handle("GET /api/openapi.json", forReaders, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc, err := v.openAPI(Prefix(r))
		if err != nil {
			panic(err) // unreachable: the tests describe every tool the API uses
		}
		writeJSON(w, http.StatusOK, doc)
	}))
}

// openAPI completes the description for requests below a prefix. Question
// tasks are in it where they are mounted.
func (v *served) openAPI(prefix string) (map[string]any, error) {
	var doc map[string]any
	if err := json.Unmarshal(description, &doc); err != nil {
		return nil, fmt.Errorf("reading the description of the API: %w", err)
	}
	if prefix == "" {
		prefix = "/"
	}
	doc["servers"] = []any{map[string]any{"url": prefix}}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for _, tool := range apiTools {
		input, output, ok := v.Tools.Schemas(tool)
		if !ok {
			// A server may offer other tools; the addresses of these answer 404 then.
			input, output = json.RawMessage(`{"type":"object"}`), json.RawMessage(`{"type":"object"}`)
		}
		schemas[tool], schemas[tool+"_answer"] = input, output
	}
	if !slices.Contains(v.mounted, tasksPattern) {
		paths := doc["paths"].(map[string]any)
		for path := range paths {
			if strings.HasPrefix(path, tasksPattern) {
				delete(paths, path)
			}
		}
	}
	return doc, nil
}

// tasksPattern is where question tasks are mounted, see internal/stage/rest.
const tasksPattern = "/tasks/"
