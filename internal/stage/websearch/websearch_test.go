package websearch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSearch: the forms of answers, and the results that are dropped.
func TestSearch(t *testing.T) {
	var asked string
	answer := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("q")
		fmt.Fprint(w, answer)
	}))
	defer srv.Close()
	c, err := New(srv.URL + "/search?q={query}&key=geheim")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"SearXNG": `{"query":"x","results":[{"url":"https://a.example","title":"A","content":"Ulan Bator"},{"url":"javascript:alert(1)"}]}`,
		"Brave":   `{"web":{"results":[{"url":"https://a.example","title":"A","description":"Ulan Bator"}]}}`,
		"Google":  `{"items":[{"link":"https://a.example","title":"A","snippet":"Ulan Bator"}]}`,
		"a list":  `[{"url":"https://a.example","title":"A","text":"Ulan Bator"}]`,
	} {
		answer = text
		got, err := c.SearchWeb(t.Context(), "capital of Mongolia? & more")
		if err != nil || len(got.Results) != 1 || got.Results[0].URL != "https://a.example" || got.Results[0].Text != "Ulan Bator" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if asked != "capital of Mongolia? & more" {
			t.Errorf("%s: the engine is asked %q", name, asked)
		}
	}
	answer = "<html>"
	if _, err := c.SearchWeb(t.Context(), "x"); err == nil {
		t.Error("HTML counts as results")
	}
	srv.Close()
	if _, err := c.SearchWeb(t.Context(), "x"); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("an engine that is down: %v, want an error without the key", err)
	}
}

// TestCommand: a command gets the query as one argument.
func TestCommand(t *testing.T) {
	name := filepath.Join(t.TempDir(), "engine")
	script := "#!/bin/sh\nprintf '[{\"url\":\"https://a.example\",\"title\":\"%s\",\"text\":\"%s\"}]' \"$1\" \"$2\"\n"
	if err := os.WriteFile(name, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := New(name + " --json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.SearchWeb(t.Context(), "--rm; touch $HOME")
	if err != nil || len(got.Results) != 1 || got.Results[0].Title != "--json" || got.Results[0].Text != "rm; touch $HOME" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNew(t *testing.T) {
	if c, err := New(" "); c != nil || err != nil {
		t.Errorf("nothing configured: %v, %v", c, err)
	}
	for _, spec := range []string{"https://example.com/search", "ftp://example.com/{query}", "https:///{query}"} {
		if _, err := New(spec); err == nil {
			t.Errorf("%s is taken", spec)
		}
	}
}
