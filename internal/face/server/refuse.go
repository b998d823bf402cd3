package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"regexp"
	"strings"

	"cairn/tools"
)

// refusedStyle is the style of refusedPage, with values of the other pages. It cannot be an
// asset of a workspace, because the server refuses before it knows the workspace.
const refusedStyle = `:root{color-scheme:light dark;--ink:light-dark(#1c2429,#e4e8ea);--paper:light-dark(#fff,#14191c);--ground:light-dark(#f3f5f6,#1b2226);--rim:light-dark(#7d8a92,#74828a);--link:light-dark(#0b5a8a,#7cc1ea)}body{font:.9375rem/1.5 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:40rem;overflow-wrap:anywhere;background:var(--paper);color:var(--ink)}a{color:var(--link)}nav a{font-weight:700;text-decoration:none}h1{font-size:1.5rem}h2{font-size:1.0625rem;margin:1.5rem 0 .5rem}pre{padding:.6rem;white-space:pre-wrap;background:var(--ground);border-radius:6px}input,button{font:inherit;color:inherit;background:var(--paper);padding:.25rem .6rem;border:1px solid var(--rim);border-radius:6px}footer{font-size:.8125rem;margin-top:2rem}:focus-visible{outline:3px solid var(--link);outline-offset:2px}`

var refusedPage = template.Must(template.New("refused").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} – cairn</title>
<link rel="icon" href="data:,">
<style>` + refusedStyle + `</style>
</head>
<body>
<header><nav aria-label="Pages"><a href="/">cairn</a></nav></header>
<main>
<h1>{{.Title}}</h1>
<p role="alert">{{.Message}}</p>
{{if eq .Status 401}}<h2>On your own computer</h2>
<p>Run this command in a terminal and open the link that it prints, which works once:</p>
<pre><code>cairn open --web{{.Address}}</code></pre>
<h2>With a token</h2>
<p>The owner of the server makes one for you with <code>cairn token new NAME</code>.</p>
<form action="/login" method="post"><label>Token <input type="password" name="token" required maxlength="200" autocomplete="current-password"></label> <button type="submit">Sign in</button></form>{{end}}
{{if .Folders}}<h2>Where to go</h2>
<ul>{{range .Folders}}<li><a href="/w/{{.}}/">{{.}}</a></li>{{end}}</ul>{{end}}
</main>
<footer><p>cairn, status {{.Status}}</p></footer>
</body>
</html>
`))

var refusedPolicy = func() string {
	sum := sha256.Sum256([]byte(refusedStyle))
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
func refuse(w http.ResponseWriter, r *http.Request, status int, f *tools.Failure, folders ...string) {
	if !wantsPage(r) {
		writeError(w, status, f)
		return
	}
	title := cmp.Or(refusedTitles[status], "That did not work")
	var b bytes.Buffer
	err := refusedPage.Execute(&b, struct {
		Title, Message, Address string
		Status                  int
		Folders                 []string
	}{title, f.Message, addressFlag(r), status, folders})
	if err != nil {
		writeError(w, status, f) // unreachable: the template takes any text
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", refusedPolicy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the client may have left
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
