package server

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"cairn/tools"
)

// refusedHTML is the template of the page for a refused request.
//
//go:embed refused.html
var refusedHTML string

// refusedCSS is the style of the page, with values of the other pages. It cannot be an asset of a
// workspace, because the server refuses before it knows the workspace.
//
//go:embed refused.css
var refusedCSS string

var refusedPage = template.Must(template.New("refused").Parse(refusedHTML))

var refusedPolicy = func() string {
	sum := sha256.Sum256([]byte(refusedCSS))
	return "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()

// refusedTitles has the titles of refusedPage by status.
var refusedTitles = map[int]string{
	http.StatusUnauthorized:       "Sign in",
	http.StatusForbidden:          "Not allowed",
	http.StatusNotFound:           "Not found",
	http.StatusTooManyRequests:    "Too many requests",
	http.StatusServiceUnavailable: "Too many requests",
}

// wantsPage reports whether a request comes from a person's browser.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !forPrograms(r)
}

// forPrograms reports whether an address is for programs, which send their token themselves.
func forPrograms(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/api/") || strings.HasSuffix(r.URL.Path, "/mcp") || r.URL.Path == "/metrics"
}

// refuse answers a request that it does not pass to a handler. It sends a browser a page
// with links to folders, and other clients JSON.
func refuse(w http.ResponseWriter, r *http.Request, status int, f *tools.Failure, folders ...Workspace) {
	if !wantsPage(r) {
		writeError(w, status, f)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", refusedPolicy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = refusedPage.Execute(w, struct { // the client may have left
		Title, Message, Address, Wanted string
		Style                           template.CSS
		Status                          int
		Folders                         []Workspace
	}{cmp.Or(refusedTitles[status], "That did not work"), f.Message, addressFlag(r), wanted(r), template.CSS(refusedCSS), status, folders})
}

// wanted returns the path and query of the page that a refused request was for, "/" if it changes
// something or is too long for a form.
func wanted(r *http.Request) string {
	address := r.URL
	if r.URL.Path == "/login" {
		address, _ = url.Parse(r.PostFormValue(wantedField)) // nil after an error
	} else if r.Method != http.MethodGet {
		address = nil
	}
	if address == nil || len(address.RequestURI()) > maxWanted {
		return "/"
	}
	// With one slash at the beginning it cannot name another host.
	local := "/" + strings.TrimLeft(address.EscapedPath(), "/")
	if address.RawQuery != "" {
		local += "?" + address.RawQuery
	}
	return local
}

// plainHost matches hosts that a shell takes as they are.
var plainHost = regexp.MustCompile(`^[\w.:-]+$`)

// addressFlag returns the flag of cairn open for the server that r was sent to, "" for the
// default address.
func addressFlag(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if r.Host == "127.0.0.1:7420" || r.Host == "localhost:7420" || !plainHost.MatchString(r.Host) {
		return ""
	}
	return " --url " + scheme + "://" + r.Host
}
