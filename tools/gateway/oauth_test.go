//go:build unix

package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/home"
)

// authorizing is an authorization server with the MCP server that trusts it.
type authorizing struct {
	*httptest.Server
	mu        sync.Mutex
	challenge string // of PKCE
	valid     string // the access token that counts
	issued    int
	lifetime  int // of a token in seconds
	revoked   bool
}

func startAuthorizing(t *testing.T) *authorizing {
	a := &authorizing{lifetime: 3600}
	sdk := testServer("plain")
	protected := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)
	mux := http.NewServeMux()
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	answer := func(w http.ResponseWriter, status int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		ok := a.valid != "" && r.Header.Get("Authorization") == "Bearer "+a.valid
		a.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		protected.ServeHTTP(w, r)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
			"registration_endpoint": a.URL + "/register", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]any
		_ = json.NewDecoder(r.Body).Decode(&asked)
		asked["client_id"], asked["token_endpoint_auth_method"] = "cairn-test", "none"
		answer(w, 201, asked)
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		a.mu.Lock()
		a.challenge = q.Get("code_challenge")
		a.mu.Unlock()
		http.Redirect(w, r, q.Get("redirect_uri")+"?code=the-code&state="+q.Get("state"), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		verified := r.FormValue("code") == "the-code" && base64.RawURLEncoding.EncodeToString(sum[:]) == a.challenge
		refreshed := r.FormValue("grant_type") == "refresh_token" && r.FormValue("refresh_token") == fmt.Sprintf("refresh-secret-%d", a.issued)
		if a.revoked || !verified && !refreshed {
			answer(w, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		a.issued++
		a.valid = fmt.Sprintf("access-secret-%d", a.issued)
		answer(w, 200, map[string]any{"access_token": a.valid, "token_type": "Bearer", "expires_in": a.lifetime, "refresh_token": fmt.Sprintf("refresh-secret-%d", a.issued)})
	})
	return a
}

// TestOAuth: the user logs in on a page; the login is in a private file and in no other, is
// refreshed, and is not repeated by itself after the server has ended it.
func TestOAuth(t *testing.T) {
	a := startAuthorizing(t)
	a.lifetime = 1 // a token counts as expired some seconds before
	audit := filepath.Join(t.TempDir(), "calls.jsonl")
	g := open(t, "", func(s *Server, o *Options) {
		*s, o.Audit = Server{Name: "test", URL: a.URL + "/mcp", OAuth: true}, audit
	})
	if _, err := g.Definitions(t.Context(), Server{Name: "test", URL: a.URL + "/mcp", OAuth: true}); !strings.Contains(fmt.Sprint(err), "requires a login") {
		t.Errorf("before the login: %v", err)
	}
	g = New(g.Store(), g.o) // without the wait after the failure
	t.Cleanup(g.Close)
	page := ""
	err := g.Login(t.Context(), Server{Name: "test", URL: a.URL + "/mcp", OAuth: true}, func(url string) {
		page = url
		if resp, err := http.Get(url); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("the page: %v", err)
		} else {
			resp.Body.Close()
		}
	})
	if err != nil || !strings.Contains(page, "/authorize?") || !strings.Contains(page, "code_challenge_method=S256") {
		t.Fatalf("page %q, %v", page, err)
	}
	approve(t, g)
	before := a.issued
	if got, err := call(t, g, "echo", `{"text":"hi"}`); err != nil || got != "hi" || a.issued == before {
		t.Errorf("%q, %v with %d tokens, want one that was refreshed", got, err, a.issued)
	}
	found := 0
	err = filepath.WalkDir(filepath.Dir(os.Getenv(home.Variable)), func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if info, _ := e.Info(); strings.Contains(string(text), "-secret-") {
			found++
			if filepath.Ext(path) != ".login" || info.Mode().Perm() != 0o600 {
				t.Errorf("%s with the mode %v has a token", path, info.Mode())
			}
		}
		return err
	})
	if err != nil || found != 1 {
		t.Errorf("%d files have a token, %v, want one", found, err)
	}
	// Another process continues with the saved login.
	other := New(g.Store(), Options{})
	t.Cleanup(other.Close)
	if got, err := call(t, other, "echo", `{"text":"ho"}`); err != nil || got != "ho" {
		t.Errorf("another process: %q, %v", got, err)
	}
	a.mu.Lock()
	a.revoked, a.valid = true, ""
	a.mu.Unlock()
	last := New(g.Store(), Options{})
	t.Cleanup(last.Close)
	if _, err := call(t, last, "echo", `{"text":"hi"}`); !strings.Contains(fmt.Sprint(err), "requires a login") || strings.Contains(fmt.Sprint(err), "-secret-") {
		t.Errorf("after the end of the login: %v", err)
	}
	if err := g.Store().Forget(&Server{Name: "test", URL: a.URL + "/mcp"}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(g.Store().dir, "*.login")); len(left) > 0 {
		t.Errorf("after Forget: %v", left)
	}
	if text, _ := os.ReadFile(audit); strings.Contains(string(text), "-secret-") {
		t.Errorf("the log of calls has a token: %s", text)
	}
}
