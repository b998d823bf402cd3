package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"cairn/internal/face/token"
	"cairn/tools"
)

const (
	cookieName = "cairn"
	// linkPrefix begins the names of the tokens of links, and of those that replace them.
	linkPrefix, browserPrefix = "link ", "browser "
	// linkFor is how long a link can be opened, and browserFor how long a browser stays signed in.
	linkFor, browserFor = 10 * time.Minute, 30 * 24 * time.Hour
	// wantedField is the field of the form with the address of the page to show next, which has at
	// most maxWanted bytes.
	wantedField = "wanted"
	maxWanted   = 2000
	maxLogin    = 10_000 // bytes of the form, in which a byte of the address may take three
)

// SignInPath returns the path and query of a link that signs a browser in once, to the servers
// that use store.
func SignInPath(ctx context.Context, store *token.Store) (string, error) {
	secret, _, err := store.New(ctx, linkPrefix+rand.Text()[:12], token.Write, nil, linkFor)
	if err != nil {
		return "", err
	}
	return "/login?link=" + secret, nil
}

// login signs a browser in: with a link, whose token is replaced by one for this browser, or
// with the token in a form, which leads back to the page that was refused without one.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if s.options.Tokens == nil {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	secret, maxAge := strings.TrimSpace(r.PostFormValue("token")), time.Duration(0)
	if link := r.URL.Query().Get("link"); r.Method == http.MethodGet && link != "" {
		t, err := s.options.Tokens.Check(link)
		if err == nil && !strings.HasPrefix(t.Name, linkPrefix) {
			err = token.ErrUnknown // a token that may be used often does not belong in an address
		}
		if err == nil {
			_, err = s.options.Tokens.Revoke(r.Context(), t.ID) // fails for all but one
		}
		if err == nil {
			maxAge = browserFor
			secret, _, err = s.options.Tokens.New(r.Context(), browserPrefix+t.ID, t.Scope, t.Workspaces, maxAge)
		}
		if err != nil {
			refuse(w, r, http.StatusUnauthorized, &tools.Failure{Code: tools.CodeInvalidParams, Message: "This link was used already, or is too old."})
			return
		}
	} else if t, err := s.options.Tokens.Check(secret); err != nil || strings.HasPrefix(t.Name, linkPrefix) {
		refuse(w, r, http.StatusUnauthorized, &tools.Failure{Code: tools.CodeInvalidParams, Message: "This token is unknown, revoked or expired."})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: secret, Path: "/", MaxAge: int(maxAge.Seconds()), HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, wanted(r), http.StatusSeeOther)
}
