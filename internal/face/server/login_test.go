package server

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/face/token"
)

// TestLogin: a link signs one browser in, once and for a while, and its token does nothing else.
func TestLogin(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	store := token.Open(filepath.Join(t.TempDir(), "tokens.json"), func() time.Time { return now })
	s := newServer(t, two(t), &Options{Tokens: store})
	for _, pattern := range []string{"GET /page", "POST /page"} {
		s.Handle("a", pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("the page")) }))
	}
	link := func() string {
		path, err := SignInPath(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	html := []string{"Accept", "text/html"}
	first := link()
	secret := strings.TrimPrefix(first, "/login?link=")
	if r := ask(t, s, "GET", "/page", "", "Authorization", "Bearer "+secret); r.StatusCode != 401 {
		t.Errorf("the token of a link as bearer token: %d, want 401", r.StatusCode)
	}
	r := ask(t, s, "GET", first, "", html...)
	cookies := r.Cookies()
	if r.StatusCode != 303 || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].Value == secret || cookies[0].MaxAge <= 0 {
		t.Fatalf("opening the link: %d %v", r.StatusCode, cookies)
	}
	cookie := []string{"Cookie", cookieName + "=" + cookies[0].Value}
	for path, want := range map[string]int{"/page": 200, "/w/a/page": 200, "/api/status": 401, "/mcp": 401, "/metrics": 401} {
		if r := ask(t, s, "GET", path, "", cookie...); r.StatusCode != want {
			t.Errorf("%s with the cookie: %d, want %d", path, r.StatusCode, want)
		}
	}
	if r := ask(t, s, "POST", "/page", "", append(cookie, "Origin", "http://elsewhere.example")...); r.StatusCode != 403 {
		t.Errorf("a form of another site: %d, want 403", r.StatusCode)
	}
	late := link()
	now = now.Add(linkFor)
	local, err := store.Local(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{"used": first, "old": late, "of another token": "/login?link=" + local, "wrong": "/login?link=x"} {
		if r := ask(t, s, "GET", path, "", html...); r.StatusCode != 401 || len(r.Cookies()) > 0 || !strings.Contains(body(t, r), "cairn open --web") {
			t.Errorf("a link that is %s: %d", what, r.StatusCode)
		}
	}
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if r := ask(t, s, "POST", "/login", url.Values{"token": {local}}.Encode(), form...); r.StatusCode != 303 || len(r.Cookies()) != 1 || r.Cookies()[0].Value != local {
		t.Errorf("a token in the form: %d %v", r.StatusCode, r.Cookies())
	}
	if r := ask(t, s, "POST", "/login", url.Values{"token": {"x"}}.Encode(), append(form, html...)...); r.StatusCode != 401 || len(r.Cookies()) > 0 {
		t.Errorf("a wrong token in the form: %d", r.StatusCode)
	}
	now = now.Add(browserFor)
	if r := ask(t, s, "GET", "/page", "", cookie...); r.StatusCode != 401 {
		t.Errorf("an old cookie: %d, want 401", r.StatusCode)
	}
}

// TestAddressFlag checks that the page for signing in names the server in the command, and
// nothing that a shell would read otherwise.
func TestAddressFlag(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1:7420": "", "localhost:7420": "", "127.0.0.1:7570": " --url http://127.0.0.1:7570", "docs.example:80": " --url http://docs.example:80",
		"a;b": "", "$(x)": "", "a b": "", "": "",
	} {
		if got := addressFlag(&http.Request{Host: host}); got != want {
			t.Errorf("addressFlag(%q) = %q, want %q", host, got, want)
		}
	}
}

// TestLoginReturns: the form of a refused page leads back to that page, and to no other host.
func TestLoginReturns(t *testing.T) {
	store := token.Open(filepath.Join(t.TempDir(), "tokens.json"), time.Now)
	s := newServer(t, two(t), &Options{Tokens: store})
	secret, _, err := store.New(t.Context(), "ann", token.Read, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	long := "/doc?path=" + strings.Repeat("x", maxWanted)
	for _, tt := range []struct{ asked, want string }{
		{"/w/a/doc?path=b%20c.md&line=3", "/w/a/doc?path=b%20c.md&line=3"},
		{"/", "/"},
		{long, "/"},
	} {
		page := body(t, ask(t, s, "GET", tt.asked, "", "Accept", "text/html"))
		if want := `name="wanted" value="` + strings.ReplaceAll(tt.want, "&", "&amp;") + `"`; !strings.Contains(page, want) {
			t.Errorf("the page at %.60s has no %s in\n%s", tt.asked, want, page)
		}
	}
	send := func(secret, wanted string) *http.Response {
		return ask(t, s, "POST", "/login", url.Values{"token": {secret}, "wanted": {wanted}}.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html")
	}
	for wanted, want := range map[string]string{
		"/w/a/doc?path=b%20c.md&line=3": "/w/a/doc?path=b%20c.md&line=3", "": "/", "//evil.example/x": "/x", "///evil.example": "/evil.example",
		`/\evil.example`: "/%5Cevil.example", "https://evil.example/x?y": "/x?y", "javascript:alert(1)": "/", "%": "/", long: "/",
	} {
		if r := send(secret, wanted); r.StatusCode != 303 || r.Header.Get("Location") != want {
			t.Errorf("signing in at %.60q: %d to %q, want %q", wanted, r.StatusCode, r.Header.Get("Location"), want)
		}
	}
	if page := body(t, send("wrong", "/w/a/tasks")); !strings.Contains(page, `name="wanted" value="/w/a/tasks"`) {
		t.Errorf("after a wrong token the page is lost:\n%s", page)
	}
}
