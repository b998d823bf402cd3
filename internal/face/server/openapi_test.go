package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"cairn/internal/face/token"
	"cairn/internal/stage"
	"cairn/internal/stage/rest"
)

// described loads and validates the description below a prefix.
func described(t *testing.T, s http.Handler, prefix string, header ...string) *openapi3.T {
	t.Helper()
	r := ask(t, s, "GET", prefix+"/api/openapi.json", "", header...)
	text := body(t, r)
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("%s/api/openapi.json: %d %s", prefix, r.StatusCode, text)
	}
	doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("the description is no OpenAPI document: %v", err)
	}
	if doc.OpenAPI != "3.1.0" || len(doc.Servers) != 1 || doc.Servers[0].URL != max(prefix, "/") {
		t.Errorf("version %s, servers %v, want 3.1.0 and %q", doc.OpenAPI, doc.Servers[0].URL, prefix)
	}
	return doc
}

// TestOpenAPI sends requests to every described path and validates the answers,
// whatever their status, against the description.
func TestOpenAPI(t *testing.T) {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	w, opened := open(t, "a", map[string]string{"a.md": "# Alpha\n\nThe aardvark sleeps.\n\n## Second\n\nMore.\n"})
	stages, err := opened.Stages(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stages.Close() })
	tokens := token.Open(filepath.Join(t.TempDir(), "tokens.json"), nil)
	secret := map[token.Scope]string{}
	for _, scope := range []token.Scope{token.Read, token.Write} {
		if secret[scope], _, err = tokens.New(t.Context(), string(scope), scope, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(t, []Workspace{w}, &Options{Tokens: tokens})
	s.Handle("a", "/tasks/", rest.Handler(stages.Engine))
	writer := "Bearer " + secret[token.Write]
	doc := described(t, s, "", "Authorization", writer)
	described(t, s, "/w/a", "Authorization", writer)
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	c := checker{t: t, s: s, router: router, seen: map[string]bool{}}
	made := c.ask("POST", "/tasks/create", `{"user_id":"ann","query":"who sleeps?"}`, 201, writer)
	id := regexp.MustCompile(`"task_id":"([^"]+)"`).FindStringSubmatch(made)[1]
	if _, err := stages.Create(t.Context(), stage.Request{ID: "asked", UserID: "ann", Query: "who sleeps?", Plan: []stage.Stage{stage.IntentAnalysis, stage.ExecutorReasoning, stage.ResponsePackaging}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stages.Watch(t.Context(), "asked", nil, stage.NeedsCaller); err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/tasks/asked/answer", `{"answer":"The aardvark sleeps."}`, 200},
		{"GET", "/api/search?q=aardvark&limit=2&mode=keyword&explain=true&tags=x&tags=y&path_prefix=a&context=a.md&max_tokens=300", "", 200},
		{"GET", "/api/search?query=aardvark", "", 200},
		{"POST", "/api/search", `{"query":"aardvark","filters":{"path_prefix":"a"},"max_tokens":400}`, 200},
		{"GET", "/api/read?path=a.md%23second", "", 200},
		{"GET", "/api/read?paths=a.md&paths=b.md", "", 200},
		{"POST", "/api/read", `{"path":"a.md:1-2"}`, 200},
		{"GET", "/api/status", "", 200},
		{"POST", "/api/status", `{}`, 200},
		{"GET", "/api/openapi.json", "", 200},
		{"GET", "/tasks/" + id + "/status", "", 200},
		{"POST", "/tasks/" + id + "/answer", `{"answer":"late","run":99}`, 409},
		{"POST", "/tasks/none/answer", `{"not_found":true}`, 404},
		{"POST", "/tasks/" + id + "/answer", `{"answer":""}`, 400},
		{"POST", "/tasks/" + id + "/abort", `{"reason":"enough"}`, 200},
		{"GET", "/tasks/" + id + "/progress", "", 200}, // the task has ended, and the stream too
		// The description includes errors.
		{"GET", "/api/search", "", 400},
		{"GET", "/api/search?q=a&limit=many", "", 400},
		{"POST", "/api/search", `{"query":""}`, 400},
		{"POST", "/api/search", `{"query":"` + strings.Repeat("a", maxAPIBody) + `"}`, 413},
		{"GET", "/api/read?path=none.md", "", 404},
		{"POST", "/api/read", `{"path":"a.md","expected_hash":"00"}`, 409},
		{"POST", "/api/status", `{"x":1}`, 400},
		{"GET", "/tasks/none/status", "", 404},
		{"GET", "/tasks/none/progress", "", 404},
		{"POST", "/tasks/none/abort", `{}`, 404},
		{"POST", "/tasks/" + id + "/abort", `{}`, 409},
		{"POST", "/tasks/create", `{"user_id":"ann"}`, 400},
		{"POST", "/tasks/create", `{"user_id":"ann","query":"x","template":"none"}`, 400},
	} {
		c.ask(r.method, r.path, r.body, r.status, writer)
	}
	c.ask("GET", "/api/search?q=a", "", 401, "")
	c.ask("POST", "/tasks/create", `{"user_id":"ann","query":"x"}`, 403, "Bearer "+secret[token.Read])
	for path, p := range doc.Paths.Map() {
		for method := range p.Operations() {
			if !c.seen[method+" "+path] {
				t.Errorf("%s %s is described and was not asked", method, path)
			}
		}
	}
	var raw struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body(t, ask(t, s, "GET", "/api/openapi.json", "", "Authorization", writer))), &raw); err != nil {
		t.Fatal(err)
	}
	for path, tool := range apiTools {
		if p := doc.Paths.Find("/api/" + path); p == nil || p.Get == nil || p.Post == nil {
			t.Errorf("/api/%s is served and not described", path)
		}
		input, output, ok := w.Tools.Schemas(tool)
		if !ok || !sameJSON(t, input, raw.Components.Schemas[tool]) || !sameJSON(t, output, raw.Components.Schemas[tool+"_answer"]) {
			t.Errorf("%s takes %s and is described as taking %s", tool, input, raw.Components.Schemas[tool])
		}
	}
	// A URL can have every argument of a tool, under its own name.
	for path, tool := range apiTools {
		input, _, _ := w.Tools.Schemas(tool)
		var schema struct {
			Properties map[string]struct{ Properties map[string]any }
		}
		if err := json.Unmarshal(input, &schema); err != nil {
			t.Fatal(err)
		}
		var want []string
		for name, p := range schema.Properties {
			if len(p.Properties) == 0 && name != "format" { // every answer over HTTP is JSON
				want = append(want, name)
			}
			for inner := range p.Properties {
				want = append(want, inner)
			}
		}
		var have []string
		for _, p := range doc.Paths.Find("/api/" + path).Get.Parameters {
			if p.Value.Name != "q" { // short for query
				have = append(have, p.Value.Name)
			}
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("GET /api/%s is described with %v, and %s takes %v", path, have, tool, want)
		}
	}
	// The description leaves out question tasks that are not mounted.
	if plain := described(t, newServer(t, two(t), nil), "/w/b"); plain.Paths.Len() != 4 {
		t.Errorf("%d addresses without tasks, want 4", plain.Paths.Len())
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y) // fmt prints maps in order
}

// checker sends requests and validates the answers against the description.
type checker struct {
	t      *testing.T
	s      http.Handler
	router routers.Router
	seen   map[string]bool // operations with a successful answer
}

func (c *checker) ask(method, path, text string, want int, authorization string) (answer string) {
	c.t.Helper()
	request := func() *http.Request {
		r := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader(text))
		r.Host = "localhost:7420"
		if text != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		return r
	}
	r := request()
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		c.t.Errorf("%s %s is not described: %v", method, path, err)
		return ""
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
		IncludeResponseStatus: true, MultiError: true,
		AuthenticationFunc: func(context.Context, *openapi3filter.AuthenticationInput) error { return nil },
	}}
	if err := openapi3filter.ValidateRequest(c.t.Context(), in); err != nil && want < 300 {
		c.t.Errorf("%s %s is not as described: %v", method, path, err)
	}
	w := httptest.NewRecorder()
	c.s.ServeHTTP(w, request())
	answer = w.Body.String()
	if w.Code != want {
		c.t.Errorf("%s %s: %d %.300s, want %d", method, path, w.Code, answer, want)
	}
	if err := openapi3filter.ValidateResponse(c.t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: w.Code, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())), Options: in.Options,
	}); err != nil {
		c.t.Errorf("%s %s: the answer %d %.300s is not as described: %v", method, path, w.Code, answer, err)
	}
	if w.Code < 300 {
		c.seen[method+" "+route.Path] = true
	}
	return answer
}
