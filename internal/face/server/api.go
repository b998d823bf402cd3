package server

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/tools"
)

const (
	// maxAPIBody bounds the body of a request to the API in bytes.
	maxAPIBody = 64 << 10
	// apiTimeout bounds the duration of a request to the API.
	apiTimeout = 30 * time.Second
)

// apiTools has the tools of the API, by the last part of the path.
var apiTools = map[string]string{"search": "read_context", "read": "read_doc", "status": "status"}

// api adds the paths that call a tool without MCP, and their description.
func (v *served) api() {
	for path, tool := range apiTools {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { v.call(w, r, tool) })
		v.handle("GET /api/"+path, h)
		v.handle("POST /api/"+path, h)
	}
	v.handle("GET /api/openapi.json", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, v.openAPI(Prefix(r)))
	}))
	v.handle("/api/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, &tools.Failure{Code: tools.CodeNotFound, Message: fmt.Sprintf("%s %s: no such address, want GET or POST of {/api/search,/api/read,/api/status}, described by GET /api/openapi.json", r.Method, r.URL.Path)})
	}))
}

// call answers a request by calling a tool. The arguments are the body of a POST
// or the query of a GET.
func (v *served) call(w http.ResponseWriter, r *http.Request, tool string) {
	args, err := arguments(w, r)
	if err != nil {
		status := http.StatusBadRequest
		if _, long := errors.AsType[*http.MaxBytesError](err); long {
			status = http.StatusRequestEntityTooLarge
		} else if errors.Is(err, errMediaType) {
			status = http.StatusUnsupportedMediaType
		}
		writeError(w, status, &tools.Failure{Code: tools.CodeInvalidParams, Message: "Invalid params: " + err.Error()})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), apiTimeout)
	defer cancel()
	answer, f := v.Tools.Call(ctx, tool, args)
	if f != nil {
		writeError(w, cmp.Or(statuses[f.Code], http.StatusInternalServerError), f)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// statuses are the HTTP statuses of failures by code, except for 500.
var statuses = map[int]int{
	tools.CodeNotFound:      http.StatusNotFound,
	tools.CodeInvalidParams: http.StatusBadRequest,
	tools.CodeTokenLimit:    http.StatusRequestEntityTooLarge,
	tools.CodeStale:         http.StatusConflict,
	tools.CodeLock:          http.StatusConflict,
	tools.CodeRateLimit:     http.StatusTooManyRequests,
	tools.CodeUnavailable:   http.StatusServiceUnavailable,
}

var errMediaType = errors.New("the body has to be application/json")

// arguments returns the arguments of a request as a JSON object.
func arguments(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	if r.Method != http.MethodPost {
		return fromQuery(r.URL.Query())
	}
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(media) != "application/json" {
		return nil, fmt.Errorf("%w, not %q", errMediaType, r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAPIBody))
	if err != nil {
		return nil, err
	}
	if !json.Valid(body) {
		return nil, errors.New("the body is not JSON")
	}
	return body, nil
}

// kinds has the types of the arguments in a URL, except for strings. The tools check names
// and values.
var kinds = map[string]string{
	"limit": "integer", "max_tokens": "integer", "exhaustive": "boolean", "explain": "boolean", "semantic": "boolean", "paths": "strings", "context": "strings",
}

// filters has the types of the arguments that are in the object filters of a body.
var filters = map[string]string{"tags": "strings", "priority": "string", "assignee": "string", "path_prefix": "string", "kind": "string"}

// fromQuery converts the query of a URL to arguments. q is an alias of query, and the
// filters are parameters like the others.
func fromQuery(values url.Values) (json.RawMessage, error) {
	args, filter := map[string]any{}, map[string]any{}
	for name, list := range values {
		into, kind := args, kinds[name]
		if k, ok := filters[name]; ok {
			into, kind = filter, k
		}
		if name == "q" {
			name = "query"
		}
		if len(list) > 1 && kind != "strings" {
			return nil, fmt.Errorf("%s: occurs %d times, want once", name, len(list))
		}
		var err error
		switch text := list[0]; kind {
		case "integer":
			into[name], err = strconv.Atoi(text)
		case "boolean":
			into[name], err = strconv.ParseBool(text)
		case "strings":
			into[name] = list
		default:
			into[name] = text
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %q, want %s", name, list[0], kind)
		}
	}
	if len(filter) > 0 {
		args["filters"] = filter
	}
	return json.Marshal(args)
}

// writeJSON answers with a value. It forbids caching, because answers depend on the index.
func writeJSON(w http.ResponseWriter, status int, value any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		status = http.StatusInternalServerError
		b.Reset()
		b.WriteString(`{"code":-32603,"message":"the answer cannot be written as JSON"}` + "\n") // unreachable: answers are plain
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have left
}

func writeError(w http.ResponseWriter, status int, f *tools.Failure) {
	if seconds, ok := f.Data["retry_after_seconds"].(int); ok {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	writeJSON(w, status, f)
}

// description is the OpenAPI document of the API and of question tasks. openAPI
// adds the schemas of the tools and the address of the server.
//
//go:embed openapi.json
var description []byte

// openAPI returns the description for requests below a prefix. It omits question tasks if
// they are not mounted.
func (v *served) openAPI(prefix string) map[string]any {
	var doc map[string]any
	_ = json.Unmarshal(description, &doc) // never fails: the tests read it
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
	return doc
}

// tasksPattern is the path of question tasks, see internal/stage/rest.
const tasksPattern = "/tasks/"
