package term

import (
	"cmp"
	"strings"
	"time"

	"cairn/internal/face/token"
)

// Token is the JSON output for a token, without its hash.
type Token struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Scope      token.Scope `json:"scope"`
	Workspaces []string    `json:"workspaces"`
	Created    time.Time   `json:"created"`
	Expires    time.Time   `json:"expires,omitzero"`
	Expired    bool        `json:"expired,omitempty"`
}

// NewToken returns the output for a token.
func NewToken(t token.Token) Token {
	return Token{t.ID, t.Name, t.Scope, append([]string{}, t.Workspaces...), t.Created, t.Expires, !t.Expires.IsZero() && !time.Now().Before(t.Expires)}
}

// Tokens writes a line per token.
func (o *Output) Tokens(list []Token) {
	if len(list) == 0 {
		o.Notes.Printf("there are no tokens; `cairn token new NAME` creates one\n")
	}
	for _, r := range list {
		until := "until revoked"
		switch {
		case r.Expired:
			until = "expired " + Time(r.Expires)
		case !r.Expires.IsZero():
			until = "until " + Time(r.Expires)
		}
		o.Printf("%s  %-5s  %-20s  %s, %s\n", r.ID, r.Scope, r.Name, cmp.Or(strings.Join(r.Workspaces, ","), "all workspaces"), until)
	}
}
