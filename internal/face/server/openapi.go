package server

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// description is the OpenAPI document of the API and of question tasks. openAPI
// adds the schemas of the tools and the address of the server.
//
//go:embed openapi.json
var description []byte

// describe adds the path /api/openapi.json.
func (v *served) describe() {
	v.handle("GET /api/openapi.json", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc, err := v.openAPI(Prefix(r))
		if err != nil {
			panic(err) // unreachable: the tests describe every tool the API uses
		}
		writeJSON(w, http.StatusOK, doc)
	}))
}

// openAPI returns the description for requests below a prefix. It omits question tasks if
// they are not mounted.
func (v *served) openAPI(prefix string) (map[string]any, error) {
	var doc map[string]any
	if err := json.Unmarshal(description, &doc); err != nil {
		return nil, fmt.Errorf("reading the description of the API: %w", err)
	}
	prefix = cmp.Or(prefix, "/")
	doc["servers"] = []any{map[string]any{"url": prefix}}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for _, tool := range apiTools {
		input, output, ok := v.Tools.Schemas(tool)
		if !ok {
			// The tool is not offered, so its path answers 404.
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

// tasksPattern is the path of question tasks, see internal/stage/rest.
const tasksPattern = "/tasks/"
